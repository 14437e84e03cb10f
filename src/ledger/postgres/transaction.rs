//! How transactions begin and end: everything that they need is set within them, since a pooler keeps nothing of a session.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, ConnectOptions as _, PgPool, Row as _, raw_sql};

use super::address::PostgresAddress;
use super::dialect::Reader;
use super::pen::WriterCommits;
use super::succession::{self, ServerSuccession};
use crate::ledger::mark::HighWaterMark;

/// A transaction that reads, and sees one state of the ledger from its first look on.
const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path TO campaign";

/// A transaction that may wait for a lock, and may stand still, only so long; whoever is suspended in one is thrown out,
/// and is in nobody's way. What it commits is on the disk, whatever the server does by default.
macro_rules! write {
    () => {
        "BEGIN; SET LOCAL search_path TO campaign; SET LOCAL lock_timeout TO '60s';
         SET LOCAL idle_in_transaction_session_timeout TO '10s'; SET LOCAL synchronous_commit TO on"
    };
}

/// Microseconds since 1970: of the moment, and not of the beginning of the transaction, which may have waited.
macro_rules! moment {
    () => {
        "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)"
    };
}

/// With the turn to write, which a transaction has until it ends, and once it has it the time of the database, its mark, the
/// version of its tables and the server: all in one message. The number is the one lock of the ledger: the letters `campaign`.
const TURN: &str = concat!(
    write!(),
    "; SELECT pg_advisory_xact_lock(7161125211933861742); ",
    moment!(),
    " AS now, id, generation, (SELECT max(version) FROM _sqlx_migrations) AS version, ",
    succession::columns!(),
    " FROM meta"
);

/// Who writes no more for so long is no writer any more, in microseconds.
const WRITER_RETENTION: i64 = 7 * 24 * 3_600_000_000;

/// The turn to write.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteTurn {
    /// The time of the database, in microseconds.
    pub(super) now: i64,
    /// Which ledger it is, and how far it has come.
    pub(super) mark: HighWaterMark,
    /// The version of its tables.
    pub(super) version: i64,
    /// The server, and the one before.
    pub(super) succession: ServerSuccession,
}

/// A connection of its own.
pub(super) async fn open_connection(address: &PostgresAddress) -> sqlx::Result<PgConnection> {
    let connection = address.options().connect().await?;
    address.record_reached();
    Ok(connection)
}

/// A connection of a pool that reads.
pub(super) async fn begin_read(pool: &PgPool) -> sqlx::Result<Reader> {
    pool.begin_with(READ).await
}

/// A transaction that writes beside others: only single records of its own process.
pub(super) async fn begin_unordered_write(pool: &PgPool) -> sqlx::Result<Reader> {
    pool.begin_with(write!()).await
}

/// Begins a transaction that has the turn to write.
pub(super) async fn begin_write(connection: &mut PgConnection) -> sqlx::Result<WriteTurn> {
    let answers = raw_sql(TURN).fetch_all(connection).await?;
    let turn = answers.last().ok_or(sqlx::Error::RowNotFound)?;
    let mark = HighWaterMark { id: turn.try_get("id")?, generation: turn.try_get("generation")? };
    let succession = ServerSuccession::from_row(turn)?;
    Ok(WriteTurn { now: turn.try_get("now")?, mark, version: turn.try_get("version")?, succession })
}

/// The time of the database.
pub(super) async fn load_time(connection: &mut PgConnection) -> sqlx::Result<i64> {
    raw_sql(moment!()).fetch_one(connection).await?.try_get(0)
}

/// Counts the commit, as the ledger's and as this writer's, and makes it: in one message.
pub(super) async fn count_and_commit(
    connection: &mut PgConnection,
    commits: WriterCommits,
    now: i64,
) -> sqlx::Result<HighWaterMark> {
    let WriterCommits { writer, made } = commits;
    let forgotten = match made {
        1 => format!("DELETE FROM writers WHERE wrote_at < {};", now - WRITER_RETENTION),
        _ => String::new(),
    };
    let counted = format!(
        "{forgotten} INSERT INTO writers (writer, commits, wrote_at) VALUES ({writer}, {made}, {now})
         ON CONFLICT (writer) DO UPDATE SET commits = excluded.commits, wrote_at = excluded.wrote_at;
         UPDATE meta SET generation = generation + 1 RETURNING id, generation; COMMIT"
    );
    // Numbers alone are put into it.
    let answers = raw_sql(AssertSqlSafe(counted)).fetch_all(connection).await?;
    let counted = answers.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok(HighWaterMark { id: counted.try_get(0)?, generation: counted.try_get(1)? })
}

/// How many commits of a writer the database has.
pub(super) async fn count_writer_commits(connection: &mut PgConnection, writer: i64) -> sqlx::Result<Option<i64>> {
    let known = sqlx::query_scalar("SELECT commits FROM writers WHERE writer = $1").persistent(false);
    known.bind(writer).fetch_optional(connection).await
}
