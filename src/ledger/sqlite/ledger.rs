//! The adapter: opens the file and maps each call of the port to the queries beside it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use roaring::RoaringTreemap;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Row as _, SqliteConnection, SqlitePool};

use super::mark::{self, Mark, MarkFile};
use super::writer::{Writer, storage};
use super::{envelopes, events, runs, schema};
use crate::ledger::{
    Begun, EnvelopeRecord, EnvelopeSummary, Event, Intent, Ledger, LedgerError, LedgerFuture, LeftOut, NewEvent,
    NewRun, Owner, Question, Recorded, RetryOrder, Run, RunEnd, RunId, Settlement, Wait,
};
use crate::private::{self, Existing};

/// How long another process may hold the file before that counts as a failure.
const LONGEST_BUSY: Duration = Duration::from_secs(60);

/// How long a change may take, with the wait for another process.
const LONGEST_WRITE: Duration = Duration::from_secs(120);

/// How long the pause before another attempt to connect is.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// The wall clock.
pub(super) type Clock = fn() -> Timestamp;

/// The ledger in a SQLite file.
pub struct SqliteLedger {
    writer: Writer,
    readers: SqlitePool,
    path: Arc<str>,
    clock: Clock,
    /// Why nothing may be sent with this ledger, nor anything be written to it.
    stale: Option<LedgerError>,
}

impl SqliteLedger {
    /// That the ledger at `path` was deleted, if its mark still knows of one; opening it would begin a new one.
    #[must_use]
    pub fn deleted(path: &Path) -> Option<LedgerError> {
        let place = mark::place(path);
        (!path.exists() && place.exists()).then(|| LedgerError::NotNewest {
            path: path.display().to_string(),
            reason: "it was deleted",
            mark: place.display().to_string(),
        })
    }

    /// Opens the ledger at `path`, and creates it, readable by its owner alone, where there is none.
    ///
    /// # Errors
    /// When the file cannot be created, read or written, or belongs to a newer version.
    pub async fn open(path: &Path, clock: Clock) -> Result<Self, LedgerError> {
        let shown: Arc<str> = path.display().to_string().into();
        // Before the ledger, so that another process that writes both meanwhile does not make it look old.
        let place = mark::place(path);
        let known = mark::read(&place);
        // SQLite gives its companions the mode of the file.
        private::file(path, Existing::Kept)
            .map_err(|error| LedgerError::Storage { path: shown.to_string(), reason: error.to_string() })?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(LONGEST_BUSY)
            .disable_statement_logging();
        let mut connection = connect(&options).await.map_err(|error| storage(&shown, &error))?;
        schema::migrate(&mut connection).await.map_err(|error| match error {
            sqlx::migrate::MigrateError::VersionMissing(_) => LedgerError::TooNew { path: shown.to_string() },
            other => LedgerError::Storage { path: shown.to_string(), reason: other.to_string() },
        })?;
        let here = current_mark(&mut connection).await.map_err(|error| storage(&shown, &error))?;
        let stale = known.and_then(|known| here.against(known)).map(|reason| LedgerError::NotNewest {
            path: shown.to_string(),
            reason,
            mark: place.display().to_string(),
        });
        let readers = SqlitePoolOptions::new()
            .max_connections(2)
            .connect_with(options.read_only(true))
            .await
            .map_err(|error| storage(&shown, &error))?;
        let mark = MarkFile::new(place, stale.is_some());
        let writer = Writer::start(connection, shown.to_string(), mark);
        Ok(Self { writer, readers, path: shown, clock, stale })
    }

    /// Runs a change in the writer's next transaction.
    pub(super) async fn write<T, F>(&self, change: F) -> Result<T, LedgerError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection, Now) -> futures_util::future::BoxFuture<'c, Result<T, Failure>>
            + Send
            + 'static,
    {
        // Each commit would bring it nearer to the mark, until it passes for the newest.
        if let Some(stale) = &self.stale {
            return Err(stale.clone());
        }
        let path = Arc::clone(&self.path);
        let clock = self.clock;
        let written = self.writer.write(move |connection| {
            // Asked inside the transaction, so that the times of all processes follow one another.
            let result = change(connection, Now(clock().as_microsecond()));
            Box::pin(async move { result.await.map_err(|failure| failure.at(&path)) })
        });
        // A disk that hangs is a failure too: what was asked may still be done, but nobody builds on it.
        tokio::time::timeout(LONGEST_WRITE, written).await.unwrap_or_else(|_| {
            let reason = format!("nothing was written for {} s", LONGEST_WRITE.as_secs());
            Err(LedgerError::Storage { path: self.path.to_string(), reason })
        })
    }

    /// Refuses what leads to sending, unless this is the ledger that was written last and its file is sound.
    async fn fit_for_sending(&self) -> Result<(), LedgerError> {
        if let Some(stale) = &self.stale {
            return Err(stale.clone());
        }
        // An index that misses an envelope would have its rows sent again; no checksum of a record shows that.
        let told: String = sqlx::query_scalar("PRAGMA integrity_check(1)")
            .fetch_one(&self.readers)
            .await
            .map_err(|error| storage(&self.path, &error))?;
        if told == "ok" { Ok(()) } else { Err(LedgerError::Damaged { what: format!("its file ({told})") }) }
    }

    fn read_error(&self, failure: Failure) -> LedgerError {
        failure.at(&self.path)
    }
}

/// Microseconds of the wall clock when a change was asked for.
#[derive(Clone, Copy)]
pub(super) struct Now(pub(super) i64);

/// Why a query failed, before the file's name is known.
pub(super) enum Failure {
    Sql(sqlx::Error),
    Ledger(LedgerError),
}

impl Failure {
    fn at(self, path: &str) -> LedgerError {
        match self {
            Failure::Sql(error) => storage(path, &error),
            Failure::Ledger(error) => error,
        }
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Failure::Sql(error)
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Failure::Ledger(error)
    }
}

/// Which ledger this is, and how far it has come.
async fn current_mark(connection: &mut SqliteConnection) -> sqlx::Result<Mark> {
    let row = sqlx::query("SELECT id, generation FROM meta").fetch_one(connection).await?;
    Ok(Mark { id: row.try_get(0)?, generation: row.try_get(1)? })
}

/// Connects, and waits for another process that makes the same new file a ledger.
///
/// Two that change the mode of a file at once could wait for each other for ever, so SQLite tells one of them
/// at once that it is busy, whatever its time-out.
async fn connect(options: &SqliteConnectOptions) -> sqlx::Result<SqliteConnection> {
    let deadline = Instant::now() + LONGEST_BUSY;
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) && Instant::now() < deadline => tokio::time::sleep(BUSY_PAUSE).await,
            connected => return connected,
        }
    }
}

/// Whether SQLite said that another process holds the file: the low byte of its code is 5.
fn is_busy(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}

impl Ledger for SqliteLedger {
    fn create_run<'a>(&'a self, new: &'a NewRun) -> LedgerFuture<'a, Run> {
        let new = new.clone();
        Box::pin(async move {
            self.fit_for_sending().await?;
            self.write(move |connection, _| Box::pin(runs::create(connection, new))).await
        })
    }

    fn open_run(&self, run: RunId, replaced: Option<RunId>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(runs::open(connection, now, run, replaced))))
    }

    fn runs(&self) -> LedgerFuture<'_, Vec<Run>> {
        Box::pin(async { runs::all(&self.readers).await.map_err(|failure| self.read_error(failure)) })
    }

    fn claim(&self, run: RunId, owner: Owner) -> LedgerFuture<'_, usize> {
        Box::pin(async move {
            self.fit_for_sending().await?;
            self.write(move |connection, now| Box::pin(envelopes::claim(connection, now, run, owner))).await
        })
    }

    fn end(&self, run: RunId, owner: Owner, end: RunEnd) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(runs::end(connection, run, owner, end))))
    }

    fn begin(&self, intent: Intent) -> LedgerFuture<'_, Begun> {
        Box::pin(self.write(move |connection, now| Box::pin(envelopes::begin(connection, now, intent))))
    }

    fn settle(&self, settlement: Settlement) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(envelopes::settle(connection, now, settlement))))
    }

    fn retire(&self, run: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(runs::retire(connection, now, run))))
    }

    fn request_stop(&self, run: RunId, requested: bool) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(runs::request_stop(connection, run, requested))))
    }

    fn stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool> {
        Box::pin(
            async move { runs::stop_requested(&self.readers, run).await.map_err(|failure| self.read_error(failure)) },
        )
    }

    fn slow_down<'a>(&'a self, account: &'a str, wait: Option<Duration>) -> LedgerFuture<'a, ()> {
        let account = account.to_owned();
        Box::pin(self.write(move |connection, now| Box::pin(envelopes::slow_down(connection, now, account, wait))))
    }

    fn reserve<'a>(&'a self, account: &'a str, count: u32, rate: Option<f64>) -> LedgerFuture<'a, Wait> {
        let account = account.to_owned();
        Box::pin(self.write(move |connection, now| {
            Box::pin(async move { envelopes::reserve(connection, now, &account, count, rate).await })
        }))
    }

    fn envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>> {
        Box::pin(
            async move { envelopes::summaries(&self.readers, run).await.map_err(|failure| self.read_error(failure)) },
        )
    }

    fn envelopes(&self, run: RunId, numbers: RangeInclusive<u32>) -> LedgerFuture<'_, Vec<EnvelopeRecord>> {
        Box::pin(async move {
            envelopes::read(&self.readers, run, numbers).await.map_err(|failure| self.read_error(failure))
        })
    }

    fn evidence(&self, run: RunId, envelope: u32) -> LedgerFuture<'_, Option<String>> {
        Box::pin(async move {
            envelopes::evidence(&self.readers, run, envelope).await.map_err(|failure| self.read_error(failure))
        })
    }

    fn left_out(&self, run: RunId) -> LedgerFuture<'_, LeftOut> {
        Box::pin(async move { runs::left_out(&self.readers, run).await.map_err(|failure| self.read_error(failure)) })
    }

    fn numbers_sent_to<'a>(&'a self, runs: &'a [RunId]) -> LedgerFuture<'a, RoaringTreemap> {
        Box::pin(async move {
            envelopes::numbers_sent_to(&self.readers, runs).await.map_err(|failure| self.read_error(failure))
        })
    }

    fn record(&self, run: RunId, owner: Owner, events: Vec<NewEvent>) -> LedgerFuture<'_, Recorded> {
        Box::pin(self.write(move |connection, now| Box::pin(events::record(connection, now, (run, owner), events))))
    }

    fn retry(&self, owner: Owner, order: RetryOrder) -> LedgerFuture<'_, Recorded> {
        Box::pin(self.write(move |connection, now| Box::pin(events::retry(connection, now, owner, order))))
    }

    fn events(&self, run: RunId) -> LedgerFuture<'_, Vec<Event>> {
        Box::pin(async move { events::read(&self.readers, run).await.map_err(|failure| self.read_error(failure)) })
    }

    fn asked(&self, run: RunId, questions: Vec<Question>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(events::asked(connection, run, questions))))
    }

    fn questions(&self, run: RunId) -> LedgerFuture<'_, Vec<Question>> {
        Box::pin(async move { events::questions(&self.readers, run).await.map_err(|failure| self.read_error(failure)) })
    }

    fn remember_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, String> {
        let (profile, host) = (profile.to_owned(), host.to_owned());
        Box::pin(self.write(move |connection, _| Box::pin(runs::remember_host(connection, profile, host))))
    }

    fn trust_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, ()> {
        let (profile, host) = (profile.to_owned(), host.to_owned());
        Box::pin(self.write(move |connection, _| Box::pin(runs::trust_host(connection, profile, host))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_commit_of_the_connection_that_writes_returns_only_from_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = SqliteLedger::open(&folder.path().join("ledger"), Timestamp::now).await.unwrap();
        let told = ledger.write(|connection, _| {
            Box::pin(async move {
                let synchronous: i64 = sqlx::query_scalar("PRAGMA synchronous").fetch_one(&mut *connection).await?;
                let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(connection).await?;
                Ok((synchronous, journal))
            })
        });
        let full = 2;
        assert_eq!(told.await.unwrap(), (full, "wal".to_owned()));
    }
}
