//! Transactions, waiting for the right to write, and retries while the database is unavailable.
//!
//! Everything that a transaction needs is set within it, because a pooler keeps no session state.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnection, Postgres};
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgPool, Row as _, Transaction, raw_sql};

use super::address::PostgresAddress;
use super::dialect::Reader;
use super::write_connection::{self, ServerSuccession, WriterCommits};
use crate::high_water_mark::HighWaterMark;

/// Begins a read transaction with a snapshot of the ledger.
const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO campaign";

/// Begins a write transaction with limits for lock waits and idle time, so that a suspended process loses its
/// transaction and blocks no other. Commits are durable, even if the server's default differs.
macro_rules! write {
    () => {
        "BEGIN; SET LOCAL search_path TO campaign; SET LOCAL lock_timeout TO '60s';
         SET LOCAL idle_in_transaction_session_timeout TO '10s'; SET LOCAL synchronous_commit TO on"
    };
}

/// Selects the current time, in microseconds since 1970. The start of the transaction would be too early, because the
/// transaction might have waited.
macro_rules! moment {
    () => {
        "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
    };
}

/// Takes the turn to write until the transaction ends. The same message reads the time, the mark, the version of the
/// tables and the server. The number of the ledger's only advisory lock spells `campaign`.
const BEGIN_WRITE: &str = concat!(
    write!(),
    "; SELECT pg_advisory_xact_lock(7161125211933861742); ",
    moment!(),
    " AS now, id, generation, (SELECT max(version) FROM _sqlx_migrations) AS version, ",
    write_connection::columns!(),
    " FROM meta"
);

/// The time for which the record of a writer without new commits is kept, in microseconds.
const WRITER_RETENTION: i64 = 7 * 24 * 3_600_000_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct WriteTurn {
    /// The time of the database, in microseconds since 1970.
    pub(super) now: i64,
    /// The identity and generation of the ledger.
    pub(super) mark: HighWaterMark,
    /// The version of the tables.
    pub(super) version: i64,
    /// The current and the previous server.
    pub(super) succession: ServerSuccession,
}

/// Opens a connection outside the pool.
pub(super) async fn open_connection(address: &PostgresAddress) -> sqlx::Result<PgConnection> {
    let connection = address.options().connect().await?;
    address.mark_reached();
    Ok(connection)
}

/// Begins a read transaction.
pub(super) async fn begin_read(pool: &PgPool) -> sqlx::Result<Reader> {
    pool.begin_with(READ).await
}

/// Begins a write transaction without waiting for a turn, for records that only this process writes.
pub(super) async fn begin_unordered_write(pool: &PgPool) -> sqlx::Result<Transaction<'static, Postgres>> {
    pool.begin_with(write!()).await
}

/// Begins a write transaction and takes the advisory lock that orders writers.
pub(super) async fn begin_write(connection: &mut PgConnection) -> sqlx::Result<WriteTurn> {
    let answers = raw_sql(BEGIN_WRITE).fetch_all(connection).await?;
    let answer = answers.last().ok_or(sqlx::Error::RowNotFound)?;
    let mark = HighWaterMark { id: answer.try_get("id")?, generation: answer.try_get("generation")? };
    let succession = ServerSuccession::from_row(answer)?;
    Ok(WriteTurn { now: answer.try_get("now")?, mark, version: answer.try_get("version")?, succession })
}

/// The time of the database, in microseconds since 1970.
pub(super) async fn load_time(connection: &mut PgConnection) -> sqlx::Result<i64> {
    raw_sql(moment!()).fetch_one(connection).await?.try_get(0)
}

/// Increments the commit counts of the ledger and of this writer, and commits, in one message to the server. The
/// first commit of a writer also deletes old records of writers.
pub(super) async fn count_and_commit(
    connection: &mut PgConnection,
    commits: WriterCommits,
    now: i64,
) -> sqlx::Result<HighWaterMark> {
    let WriterCommits { writer, count } = commits;
    let cleanup = match count {
        1 => format!("DELETE FROM writers WHERE wrote_at < {};", now - WRITER_RETENTION),
        _ => String::new(),
    };
    let statement = format!(
        "{cleanup} INSERT INTO writers (writer, commits, wrote_at) VALUES ({writer}, {count}, {now})
         ON CONFLICT (writer) DO UPDATE SET commits = excluded.commits, wrote_at = excluded.wrote_at;
         UPDATE meta SET generation = generation + 1 RETURNING id, generation; COMMIT"
    );
    // Only numbers are inserted into the statement.
    let answers = raw_sql(AssertSqlSafe(statement)).fetch_all(connection).await?;
    let row = answers.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok(HighWaterMark { id: row.try_get(0)?, generation: row.try_get(1)? })
}

/// The number of commits of a writer that the database has recorded. `None` if the database does not know the writer.
pub(super) async fn count_writer_commits(connection: &mut PgConnection, writer: i64) -> sqlx::Result<Option<i64>> {
    let statement = sqlx::query_scalar("SELECT commits FROM writers WHERE writer = $1").persistent(false);
    statement.bind(writer).fetch_optional(connection).await
}

/// The time that a change waits for an unresponsive database before it fails.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause between attempts to connect.
const RETRY_PAUSE: Duration = Duration::from_millis(200);
/// The time before a warning is logged.
const WARN_AFTER: Duration = Duration::from_secs(2);

/// A wait for a database that does not respond.
pub(super) struct DatabaseWait {
    place: Arc<str>,
    since: Instant,
    warned: bool,
}

impl DatabaseWait {
    pub(super) fn new(place: Arc<str>) -> Self {
        Self { place, since: Instant::now(), warned: false }
    }

    /// Waits a moment if the database might recover. Returns `false` if the caller must give up.
    pub(super) async fn wait_for_recovery(&mut self, error: &sqlx::Error) -> bool {
        if !is_transient(error) || self.since.elapsed() > OUTAGE_TIMEOUT {
            return false;
        }
        if self.since.elapsed() > WARN_AFTER && !std::mem::replace(&mut self.warned, true) {
            tracing::warn!("waiting for the ledger `{}` to respond", self.place);
        }
        tokio::time::sleep(RETRY_PAUSE).await;
        true
    }
}

/// Retries an operation while the database is unavailable.
pub(super) async fn retry_while_unavailable<T, F>(place: &Arc<str>, operation: impl Fn() -> F) -> sqlx::Result<T>
where
    F: Future<Output = sqlx::Result<T>>,
{
    let mut waiting = DatabaseWait::new(Arc::clone(place));
    loop {
        match operation().await {
            Err(error) if waiting.wait_for_recovery(&error).await => {}
            result => return result,
        }
    }
}

/// Retries an operation while opening a database. Fails at once if no server ever answered at this address, because the
/// address might be wrong.
pub(super) async fn retry_if_reached<T, F>(address: &PostgresAddress, operation: impl Fn() -> F) -> sqlx::Result<T>
where
    F: Future<Output = sqlx::Result<T>>,
{
    let mut waiting = DatabaseWait::new(address.display_name().into());
    loop {
        match operation().await {
            Err(error)
                if (address.was_reached() || proves_server_exists(&error))
                    && waiting.wait_for_recovery(&error).await => {}
            result => return result,
        }
    }
}

/// Whether the error is a failure of the network or the server, and not of this process.
fn is_network_error(kind: ErrorKind) -> bool {
    is_broken_connection(kind)
        || matches!(
            kind,
            ErrorKind::ConnectionRefused
                | ErrorKind::TimedOut
                | ErrorKind::HostUnreachable
                | ErrorKind::NetworkUnreachable
                | ErrorKind::NetworkDown
                // The Unix socket does not exist if the server is not running.
                | ErrorKind::NotFound
        )
}

/// Whether the error means that an existing connection broke.
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

/// The PostgreSQL error code for too many connections (PostgreSQL, Appendix A).
const TOO_MANY_CONNECTIONS: &str = "53300";

/// Whether the database might be back in a moment, for example after a restart or a network failure.
///
/// Among the server's own errors, these are the classes 08 (connection) and 57P (operator intervention), and too many
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

/// Whether an error proves that there is a server: it is starting, stopping or full, or it broke the connection.
fn proves_server_exists(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(error) => {
            let code = error.code().unwrap_or_default().into_owned();
            code.starts_with("57P") || code == TOO_MANY_CONNECTIONS
        }
        sqlx::Error::Io(error) => is_broken_connection(error.kind()),
        // The driver reports a connection that is closed before the first answer as a protocol error.
        sqlx::Error::Protocol(_) => true,
        _ => false,
    }
}
