//! The single PostgreSQL write connection, and the checks that detect an outdated ledger.
//!
//! The connection is replaced when it breaks. It refuses a ledger that is older than the state that this process has
//! seen. It also refuses a ledger whose server was replaced, unless a replica had to confirm commits before that. Each
//! promotion of a replica and each point-in-time recovery starts a new timeline (PostgreSQL, "Continuous archiving and
//! point-in-time recovery: timelines"). The ledger records its last timeline and whether a replica had to confirm
//! commits on it. If no replica had to, the last commits might be missing, and the ledger itself cannot tell.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection as _, Row as _, query, raw_sql};

use super::address::PostgresAddress;
use super::dialect::storage_error;
use super::ledger::local_micros;
use super::opening;
use super::sql::Now;
use super::transaction::{self, DatabaseWait, WriteTurn, is_transient};
use crate::LedgerError;
use crate::high_water_mark::{HighWaterMark, MarkFile, MarkReading};
use campaign_core::failpoint;

/// The write connection of the writer task.
pub(super) struct WriteConnection {
    address: PostgresAddress,
    place: Arc<str>,
    pub(super) mark: MarkFile,
    /// The newest mark that this process knows.
    furthest: HighWaterMark,
    connection: Option<PgConnection>,
    pub(super) commits: WriterCommits,
    /// Whether the connection broke within a transaction that was not committed.
    connection_lost: bool,
    /// Whether the outcome of the last commit is unknown.
    commit_unknown: bool,
    /// The time of the database at the start of the turn, and the same moment on this machine's clock.
    began: (i64, Instant),
    database: Arc<DatabaseInfo>,
}

/// The properties that the database last reported.
pub(super) struct DatabaseInfo {
    /// The lead of the database's clock over this machine's clock, in microseconds.
    pub(super) clock_offset: AtomicI64,
    /// The schema version.
    pub(super) version: AtomicI64,
}

impl WriteConnection {
    pub(super) fn new(
        address: PostgresAddress,
        place: Arc<str>,
        mark: MarkFile,
        furthest: HighWaterMark,
        database: Arc<DatabaseInfo>,
    ) -> Self {
        let began = (0, Instant::now());
        let commits = WriterCommits::default();
        Self {
            address,
            place,
            mark,
            furthest,
            connection: None,
            commits,
            connection_lost: false,
            commit_unknown: false,
            began,
            database,
        }
    }

    /// Begins a transaction once it is this process's turn to write, and reconnects while the database is unavailable.
    pub(super) async fn begin_transaction(&mut self) -> Result<(), LedgerError> {
        let mut waiting = DatabaseWait::new(Arc::clone(&self.place));
        loop {
            let error = match self.try_begin().await {
                Ok(turn) => return self.accept_turn(turn),
                Err(error) => error,
            };
            self.connection = None;
            if !waiting.wait_for_recovery(&error).await {
                return Err(storage_error(&self.place, &error));
            }
        }
    }

    async fn try_begin(&mut self) -> sqlx::Result<WriteTurn> {
        let connection = match self.connection.take() {
            Some(connection) => self.connection.insert(connection),
            None => self.connection.insert(transaction::open_connection(&self.address).await?),
        };
        let turn = transaction::begin_write(connection).await?;
        if turn.succession.describe_doubt().is_none() {
            turn.succession.record_server(connection, turn.version).await?;
        }
        Ok(turn)
    }

    /// Accepts the turn, unless the database is older than before or its tables belong to a newer version.
    fn accept_turn(&mut self, WriteTurn { now, mark, version, succession }: WriteTurn) -> Result<(), LedgerError> {
        opening::check_version(version, &self.place)?;
        ensure_not_behind(&self.place, mark, self.furthest)?;
        ensure_no_doubt(&self.place, succession)?;
        (self.furthest, self.began) = (mark, (now, Instant::now()));
        self.database.clock_offset.store(now - local_micros(), Ordering::Relaxed);
        self.database.version.store(version, Ordering::Relaxed);
        Ok(())
    }

    /// The connection and the time of the next change. The time comes from the database's clock, so that all machines
    /// agree.
    pub(super) fn connection_and_time(&mut self) -> Result<(&mut PgConnection, Now), LedgerError> {
        let (began, since) = self.began;
        let elapsed = i64::try_from(since.elapsed().as_micros()).unwrap_or(i64::MAX);
        let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
        Ok((connection, Now(began.saturating_add(elapsed))))
    }

    /// Commits the transaction and counts the commit. If the connection breaks, asks the database whether the commit
    /// was made.
    pub(super) async fn commit(&mut self) -> Result<HighWaterMark, LedgerError> {
        let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
        failpoint::pass("commit.before");
        let committed = transaction::count_and_commit(connection, self.commits.count_next(), self.began.0).await;
        let mark = match committed {
            Ok(mark) => mark,
            // The server rolled the transaction back.
            Err(error @ sqlx::Error::Database(_)) if !is_transient(&error) => {
                return Err(storage_error(&self.place, &error));
            }
            Err(error) => self.resolve_commit(&error).await?,
        };
        self.furthest = mark;
        failpoint::pass("commit.after");
        Ok(mark)
    }

    /// Finds out whether the last commit was made. Returns the mark if so, and `error` otherwise.
    ///
    /// Once this connection has its turn to write, no earlier transaction can still be running. The change is not
    /// repeated while the outcome is unknown.
    pub(super) async fn resolve_commit(&mut self, error: &sqlx::Error) -> Result<HighWaterMark, LedgerError> {
        self.commit_unknown = true;
        let mut waiting = DatabaseWait::new(Arc::clone(&self.place));
        let known = loop {
            self.connection = None;
            self.begin_transaction().await?;
            let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
            match transaction::count_writer_commits(connection, self.commits.writer).await {
                Ok(known) => break known,
                Err(error) if waiting.wait_for_recovery(&error).await => {}
                Err(error) => return Err(storage_error(&self.place, &error)),
            }
        };
        self.commit_unknown = false;
        if known == Some(self.commits.count) {
            let connection = self.connection.as_mut().ok_or(LedgerError::Closed)?;
            // The transaction is empty, so it does not matter how it ends.
            let _ = raw_sql("ROLLBACK").execute(connection).await;
            return Ok(self.furthest);
        }
        self.connection_lost = true;
        Err(storage_error(&self.place, error))
    }

    /// Rolls the transaction back. Returns whether the transaction may be retried, because the connection broke and
    /// nothing was committed.
    pub(super) async fn roll_back(&mut self) -> bool {
        let (connection_lost, unknown) =
            (std::mem::take(&mut self.connection_lost), std::mem::take(&mut self.commit_unknown));
        if unknown {
            self.connection = None;
            return false;
        }
        let Some(mut connection) = self.connection.take() else { return connection_lost };
        if raw_sql("ROLLBACK").execute(&mut connection).await.is_err() {
            return true;
        }
        self.connection = Some(connection);
        connection_lost
    }

    /// Whether nothing may be written after this failure, because the database is outdated or its tables have a newer
    /// version.
    pub(super) fn is_fatal(error: &LedgerError) -> bool {
        matches!(error, LedgerError::Outdated { .. } | LedgerError::TooNew { .. })
    }

    /// Saves the high-water mark, then closes the connection.
    pub(super) async fn close(mut self) {
        if let Err(error) = self.mark.sync_slots() {
            tracing::warn!("cannot write the high-water mark of the ledger `{}`: {error}", self.place);
        }
        if let Some(connection) = self.connection {
            let _ = connection.close().await;
        }
    }
}

/// Refuses a ledger that is older than the state that this process has already seen.
pub(super) fn ensure_not_behind(place: &str, mark: HighWaterMark, known: HighWaterMark) -> Result<(), LedgerError> {
    mark.find_mismatch(&MarkReading::Marks(vec![known])).map_or(Ok(()), |reason| refuse_ledger(place, reason))
}

/// Refuses a ledger whose last commits might be missing.
pub(super) fn ensure_no_doubt(place: &str, succession: ServerSuccession) -> Result<(), LedgerError> {
    succession.describe_doubt().map_or(Ok(()), |reason| refuse_ledger(place, reason))
}

fn refuse_ledger(place: &str, reason: String) -> Result<(), LedgerError> {
    Err(LedgerError::Outdated { path: place.to_owned(), reason, mark: "this process".to_owned() })
}

/// The commits of one writer, which the database counts in the same transaction.
#[derive(Clone, Copy)]
pub(super) struct WriterCommits {
    pub(super) writer: i64,
    pub(super) count: i64,
}

impl Default for WriterCommits {
    fn default() -> Self {
        Self { writer: rand::random(), count: 0 }
    }
}

impl WriterCommits {
    /// Counts one more commit, and returns the new count.
    pub(super) fn count_next(&mut self) -> Self {
        self.count += 1;
        *self
    }
}

/// The newest state of the ledger that this process has seen, even if this machine never wrote to it.
///
/// Tasks read concurrently and can report in another order, so each result is compared with the mark that was known
/// before the read.
pub(super) struct FurthestMark(Mutex<HighWaterMark>);

impl FurthestMark {
    pub(super) fn new(mark: HighWaterMark) -> Self {
        Self(Mutex::new(mark))
    }

    /// The newest known mark. Callers must take this mark before they read the ledger.
    pub(super) fn current_mark(&self) -> HighWaterMark {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Advances to the mark that was read.
    ///
    /// # Errors
    /// If the ledger is older than the mark that was known before the read.
    pub(super) fn advance_to(&self, place: &str, before: HighWaterMark, now: HighWaterMark) -> Result<(), LedgerError> {
        ensure_not_behind(place, now, before)?;
        let mut furthest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another task might have seen a newer state meanwhile.
        if furthest.id != now.id || furthest.generation < now.generation {
            *furthest = now;
        }
        Ok(())
    }
}

/// Columns of `meta` and of the server. A replica has no timeline, and the tables of the first version have no columns
/// for the server.
macro_rules! columns {
    () => {
        "CASE WHEN NOT pg_is_in_recovery()
              THEN CAST(CAST(CAST('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS bit(32)) AS int) AS bigint)
         END AS timeline, current_setting('synchronous_standby_names') <> '' AS confirmed,
         CAST(to_jsonb(meta) ->> 'timeline' AS bigint) AS kept_timeline,
         CAST(to_jsonb(meta) ->> 'confirmed' AS boolean) AS kept_confirmed"
    };
}
pub(super) use columns;

/// The properties that distinguish a server from its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ServerTimeline {
    timeline: i64,
    /// Whether a replica must confirm its commits.
    confirmed: bool,
}

/// The current server, and the server that last wrote the ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerSuccession {
    /// `None` for a replica.
    current: Option<ServerTimeline>,
    /// `None` if the ledger has recorded no server yet.
    recorded: Option<ServerTimeline>,
}

impl ServerSuccession {
    /// Reads the current server and the recorded server from a row.
    pub(super) fn from_row(row: &PgRow) -> sqlx::Result<Self> {
        let read_server = |timeline, confirmed| -> sqlx::Result<Option<ServerTimeline>> {
            let timeline: Option<i64> = row.try_get(timeline)?;
            let confirmed: Option<bool> = row.try_get(confirmed)?;
            Ok(timeline.map(|timeline| ServerTimeline { timeline, confirmed: confirmed.unwrap_or(false) }))
        };
        let current = read_server("timeline", "confirmed")?;
        let recorded = read_server("kept_timeline", "kept_confirmed")?;
        Ok(Self { current, recorded })
    }

    /// Describes why the most recent commits might be missing. `None` if there is no reason to doubt them.
    pub(super) fn describe_doubt(self) -> Option<String> {
        let (current, recorded) = (self.current?, self.recorded?);
        (current.timeline > recorded.timeline && !recorded.confirmed).then(|| {
            format!(
                "its server was replaced (timeline {} after {}), and no replica had to confirm commits, so it might be an older \
                 copy",
                current.timeline, recorded.timeline
            )
        })
    }

    /// Records the current server in the ledger, if the tables have columns for it.
    pub(super) async fn record_server(self, connection: &mut PgConnection, version: i64) -> sqlx::Result<()> {
        let Some(current) = self.current.filter(|current| Some(*current) != self.recorded) else { return Ok(()) };
        if version < opening::WITH_SERVER {
            return Ok(());
        }
        let update = query("UPDATE meta SET timeline = $1, confirmed = $2").persistent(false);
        update.bind(current.timeline).bind(current.confirmed).execute(connection).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(generation: i64) -> HighWaterMark {
        HighWaterMark { id: 7, generation }
    }

    #[test]
    fn early_read_that_arrives_late_is_not_reported_as_outdated() {
        let furthest = FurthestMark::new(mark(4));
        let (early, late) = (furthest.current_mark(), furthest.current_mark());
        furthest.advance_to("here", late, mark(6)).unwrap();
        furthest.advance_to("here", early, mark(5)).unwrap();
        assert_eq!(furthest.current_mark(), mark(6));
        let error = furthest.advance_to("here", furthest.current_mark(), mark(5));
        assert!(matches!(error, Err(LedgerError::Outdated { .. })), "{error:?}");
        let other = furthest.advance_to("here", furthest.current_mark(), HighWaterMark { id: 8, generation: 9 });
        assert!(matches!(other, Err(LedgerError::Outdated { .. })), "{other:?}");
    }

    fn server(timeline: i64, confirmed: bool) -> Option<ServerTimeline> {
        Some(ServerTimeline { timeline, confirmed })
    }

    #[test]
    fn promoted_server_without_confirmed_commits_is_not_trusted() {
        for (current, recorded, doubted) in [
            (server(2, false), server(1, false), true),
            (server(2, true), server(1, false), true),
            (server(2, false), server(1, true), false),
            (server(2, false), server(2, false), false),
            // A server of a newer major version starts at timeline 1.
            (server(1, false), server(4, false), false),
            (server(2, false), None, false),
            (None, server(1, false), false),
        ] {
            let succession = ServerSuccession { current, recorded };
            assert_eq!(succession.describe_doubt().is_some(), doubted, "{succession:?}");
        }
    }
}
