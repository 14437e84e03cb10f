//! The address of a PostgreSQL ledger, which is displayed without its password.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Url;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// The address of a shared ledger, including its password.
#[derive(Clone)]
pub struct PostgresAddress {
    options: PgConnectOptions,
    display_name: String,
    url_without_password: String,
    /// Whether any connection ever succeeded.
    reached: Arc<AtomicBool>,
}

/// The reason why a text is not an address. Contains nothing that might be a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostgresAddressError {
    /// The text is not a PostgreSQL URL.
    #[error("the ledger address is not a PostgreSQL address; write it as `postgres://USER@HOST:PORT/DATABASE`")]
    Unreadable,
    /// The URL contains an unknown parameter.
    #[error(
        "the ledger address contains the unknown parameter `{0}`; known parameters: {list}",
        list = PARAMETERS.join(", ")
    )]
    UnknownParameter(String),
}

/// The default port of a server.
const DEFAULT_PORT: u16 = 5432;

/// The known URL parameters. Others are refused, so that a misspelling is noticed.
const PARAMETERS: [&str; 11] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "user",
];

impl PostgresAddress {
    /// Parses a URL. Missing parts come from the usual environment variables (`PGPASSWORD`, `PGSSLMODE` and so on) and
    /// `~/.pgpass`.
    ///
    /// A connection to another machine is encrypted and the server's certificate is verified, unless `sslmode` says
    /// otherwise.
    ///
    /// # Errors
    /// If the text is not a PostgreSQL URL, or has an unknown parameter.
    pub fn parse(url: &str) -> Result<Self, PostgresAddressError> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(PostgresAddressError::Unreadable);
        }
        let mut parsed = Url::parse(url).map_err(|_| PostgresAddressError::Unreadable)?;
        if let Some((key, _)) = parsed.query_pairs().find(|(key, _)| !PARAMETERS.contains(&key.as_ref())) {
            return Err(PostgresAddressError::UnknownParameter(key.into_owned()));
        }
        let mut options = PgConnectOptions::from_str(url).map_err(|_| PostgresAddressError::Unreadable)?;
        let has_ssl_mode =
            parsed.query_pairs().any(|(key, _)| key == "sslmode") || std::env::var_os("PGSSLMODE").is_some();
        if !has_ssl_mode && !is_local(&options) {
            options = options.ssl_mode(PgSslMode::VerifyFull);
        }
        let display_name = format_address(&options);
        // Connection poolers reject parameters that they do not know.
        let options = options.extra_float_digits(None).application_name("campaign").disable_statement_logging();
        let url_without_password = remove_password(&mut parsed);
        Ok(Self { options, display_name, url_without_password, reached: Arc::default() })
    }

    /// The connection options.
    pub(super) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Records that a connection succeeded.
    pub(super) fn mark_reached(&self) {
        self.reached.store(true, Ordering::Relaxed);
    }

    /// Whether any connection to this address ever succeeded. Clones of the address share this record.
    pub(super) fn was_reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }

    /// The URL as it was given, without its password.
    pub fn url_without_password(&self) -> &str {
        &self.url_without_password
    }

    /// A short form of the address without its password.
    pub fn display_name(&self) -> &str {
        &self.display_name
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.display_name)
    }
}

/// Whether the server is on this machine.
fn is_local(options: &PgConnectOptions) -> bool {
    let host = options.get_host().trim_matches(['[', ']']);
    let is_local_name = host == "localhost" || host.starts_with('/') || options.get_socket().is_some();
    is_local_name || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Removes the password from a URL, and returns the URL as text.
fn remove_password(url: &mut Url) -> String {
    // Fails only for an address without a host, which cannot have a password either.
    let _ = url.set_password(None);
    let parameters: Vec<_> = url
        .query_pairs()
        .filter(|(key, _)| key != "password")
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect();
    url.set_query(None);
    if !parameters.is_empty() {
        url.query_pairs_mut().extend_pairs(parameters);
    }
    url.as_str().to_owned()
}

/// A short form of the address without its password.
fn format_address(options: &PgConnectOptions) -> String {
    let user = options.get_username();
    let database = options.get_database().unwrap_or(user);
    match options.get_socket() {
        Some(folder) => {
            let port = Some(options.get_port()).filter(|port| *port != DEFAULT_PORT);
            let port = port.map(|port| format!("&port={port}")).unwrap_or_default();
            format!("postgres://{user}@/{database}?host={}{port}", folder.display())
        }
        None => format!("postgres://{user}@{}:{}/{database}", options.get_host(), options.get_port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_shown_without_its_password() {
        for (url, display_name, without_password) in [
            (
                "postgres://me:s3cret@db.example/campaigns",
                "postgres://me@db.example:5432/campaigns",
                "postgres://me@db.example/campaigns",
            ),
            (
                "postgresql://me:s3%40cret@127.0.0.1:6432/c?sslmode=disable",
                "postgres://me@127.0.0.1:6432/c",
                "postgresql://me@127.0.0.1:6432/c?sslmode=disable",
            ),
            (
                "postgres://me@%2Fvar%2Frun/c?password=s3cret",
                "postgres://me@/c?host=/var/run",
                "postgres://me@%2Fvar%2Frun/c",
            ),
            (
                "postgres://me@%2Fvar%2Frun:6432/c",
                "postgres://me@/c?host=/var/run&port=6432",
                "postgres://me@%2Fvar%2Frun:6432/c",
            ),
        ] {
            let address = PostgresAddress::parse(url).unwrap();
            assert_eq!((address.display_name(), address.url_without_password()), (display_name, without_password));
            assert!(!format!("{address:?}").contains("s3"), "{address:?}");
        }
    }

    #[test]
    fn invalid_address_is_refused_without_quoting_it() {
        for url in ["", "s3cret", "mysql://me:s3cret@db/c", "postgres://me:s3cret@db:port/c", "/var/ledger.sqlite"] {
            let error = PostgresAddress::parse(url).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn unknown_parameter_is_named_in_the_error() {
        let error = PostgresAddress::parse("postgres://me@db/c?sslmod=s3cret").unwrap_err().to_string();
        assert!(error.contains("`sslmod`") && error.contains("sslmode") && !error.contains("s3cret"), "{error}");
    }

    #[test]
    fn certificate_is_verified_by_default_except_on_loopback() {
        for (url, verified) in [
            ("postgres://me@db.example/c", true),
            ("postgres://me@10.0.0.7/c", true),
            ("postgres://me@db.example/c?sslmode=require", false),
            ("postgres://me@127.0.0.1/c", false),
            ("postgres://me@[::1]/c", false),
            ("postgres://me@localhost/c", false),
            ("postgres://me@%2Frun/c", false),
        ] {
            let mode = PostgresAddress::parse(url).unwrap().options.get_ssl_mode();
            assert_eq!(matches!(mode, PgSslMode::VerifyFull), verified, "{url}");
        }
    }
}
