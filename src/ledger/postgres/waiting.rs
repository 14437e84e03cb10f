//! Waiting for a database that is away: which errors may pass, and for how long.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::address::PostgresAddress;

/// How long a database that does not answer is waited for before a change fails.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the pause before another attempt to connect is.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// After what time a person is told that the process waits.
const WARN_AFTER: Duration = Duration::from_secs(2);

/// A wait for a database that is away.
pub(super) struct DatabaseWait {
    place: Arc<str>,
    since: Instant,
    told: bool,
}

impl DatabaseWait {
    pub(super) fn new(place: Arc<str>) -> Self {
        Self { place, since: Instant::now(), told: false }
    }

    /// Waits a moment if this error tells of a database that may be there afterwards.
    pub(super) async fn wait_for_recovery(&mut self, error: &sqlx::Error) -> bool {
        if !is_transient(error) || self.since.elapsed() > OUTAGE_TIMEOUT {
            return false;
        }
        if self.since.elapsed() > WARN_AFTER && !std::mem::replace(&mut self.told, true) {
            tracing::warn!("waiting for the ledger `{}` to respond", self.place);
        }
        tokio::time::sleep(RETRY_PAUSE).await;
        true
    }
}

/// Asks something, and asks it again as long as the database is away.
pub(super) async fn retry_while_away<T, F>(place: &Arc<str>, ask: impl Fn() -> F) -> sqlx::Result<T>
where
    F: Future<Output = sqlx::Result<T>>,
{
    let mut waiting = DatabaseWait::new(Arc::clone(place));
    loop {
        match ask().await {
            Err(error) if waiting.wait_for_recovery(&error).await => {}
            ended => return ended,
        }
    }
}

/// The same of a database that is being opened. An address at which no server ever answered fails at once, since it may be wrong.
pub(super) async fn retry_if_reached<T, F>(address: &PostgresAddress, ask: impl Fn() -> F) -> sqlx::Result<T>
where
    F: Future<Output = sqlx::Result<T>>,
{
    let mut waiting = DatabaseWait::new(address.display_name().into());
    loop {
        match ask().await {
            Err(error)
                if (address.was_reached() || proves_server(&error)) && waiting.wait_for_recovery(&error).await => {}
            ended => return ended,
        }
    }
}

/// Whether something is wrong with the way to the server, or no server is at its end; not with this process.
fn is_network_error(kind: ErrorKind) -> bool {
    is_broken_connection(kind)
        || matches!(
            kind,
            ErrorKind::ConnectionRefused
                | ErrorKind::TimedOut
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::NetworkDown
                // A server on a socket that is not there.
                | ErrorKind::NotFound
        )
}

/// Whether a connection that was there broke.
fn is_broken_connection(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::NotConnected
            | ErrorKind::BrokenPipe
            | ErrorKind::UnexpectedEof
    )
}

/// PostgreSQL's code for too many connections (PostgreSQL, Appendix A).
const TOO_MANY_CONNECTIONS: &str = "53300";

/// Whether a database that says this may be there in a moment: it restarts, or the way to it is broken.
///
/// Of its own words those of the classes 08 (connection) and 57P (operator intervention) say so, and that there are too many
/// connections (PostgreSQL, Appendix A).
pub(super) fn is_transient(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default().into_owned();
            code.starts_with("08") || code.starts_with("57P") || code == TOO_MANY_CONNECTIONS
        }
        sqlx::Error::Io(error) => is_network_error(error.kind()),
        sqlx::Error::Protocol(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed => true,
        _ => false,
    }
}

/// Whether an error shows that a server is at the address: it starts, ends or has no connection left, or it broke the connection.
fn proves_server(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default().into_owned();
            code.starts_with("57P") || code == TOO_MANY_CONNECTIONS
        }
        sqlx::Error::Io(error) => is_broken_connection(error.kind()),
        // The driver reads a connection that is closed before its first answer as an answer that it does not know.
        sqlx::Error::Protocol(_) => true,
        _ => false,
    }
}
