//! What an account may send.

use std::net::IpAddr;
use std::sync::Arc;

/// An account, and how fast it may be used; what shares the account's name shares its pace.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowance {
    /// The account's name.
    pub name: Arc<str>,
    /// Operations per second; nothing if there is no limit.
    pub rate: Option<f64>,
}

impl Allowance {
    /// The allowance of the account of that name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, rate: Option<f64>) -> Self {
        Self { name: name.into(), rate }
    }

    /// The allowance of an account; through loopback it is a separate one, so that a sandbox never slows a live gateway.
    ///
    /// An account that is named by its loopback address is separate already.
    #[must_use]
    pub fn of_account(account: &str, loopback: bool, rate: Option<f64>) -> Self {
        match loopback && !is_loopback_address(account) {
            true => Self::new(format!("{account} (loopback)"), rate),
            false => Self::new(account, rate),
        }
    }
}

fn is_loopback_address(account: &str) -> bool {
    let host = account.rsplit_once(':').map_or(account, |(host, _)| host).trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_an_allowance_of_its_own() {
        for (account, loopback, name) in [
            ("main", false, "main"),
            ("main", true, "main (loopback)"),
            ("gateway.example", true, "gateway.example (loopback)"),
            ("127.0.0.1:8025", true, "127.0.0.1:8025"),
            ("[::1]:8025", true, "[::1]:8025"),
            ("localhost:8025", true, "localhost:8025"),
        ] {
            assert_eq!(&*Allowance::of_account(account, loopback, None).name, name);
        }
    }
}
