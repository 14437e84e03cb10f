//! The adapter: maps each call of the port to the queries beside it.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use sqlx::{SqliteConnection, SqlitePool};
use tokio::sync::OnceCell;

use super::blocks::{self, Draw};
use super::change::{Failure, Now};
use super::copies::{self, NewFolder};
use super::mark::{self, MarkReading};
use super::numbers::Numbers;
use super::places::{self, Place};
use super::runs::Stage;
use super::turn::Patience;
use super::writer::{OnCommit, Writer, storage};
use super::{adoption, envelopes, events, guard, hosts, left_out, lock, opening, pace, runs, soundness, stops};
use crate::domain::MessageId;
use crate::ledger::rules::held;
use crate::ledger::{
    Allowance, AskedRow, Block, BlockRequest, Claim, Copies, Drawn, EnvelopeRecord, EnvelopeSummary, Epoch, Hold,
    Intent, Lease, Ledger, LedgerError, LedgerFuture, LeftOut, NewCopies, NewRowEvent, NewRun, NumberSet, Origin,
    Ownership, Permit, RetryOrder, RowEvent, Rows, Run, RunEnd, RunFilter, RunId, Settlement, SharedRun, StrayCopies,
    Wait, hold,
};

/// How long a change may take, with the wait for another process.
const LONGEST_WRITE: Duration = Duration::from_secs(120);

/// The wall clock.
pub(super) type Clock = fn() -> Timestamp;

/// The ledger in a SQLite file.
pub struct SqliteLedger {
    /// Opened when something is first written.
    writer: OnceCell<Writer>,
    pub(super) readers: SqlitePool,
    pub(super) path: Arc<Path>,
    pub(super) clock: Clock,
    pub(super) patience: Patience,
    on_commit: OnCommit,
    /// The last envelope of each run that this process has.
    numbers: Numbers,
    /// Why nothing may be sent with this ledger, nor anything be written to it.
    stale: Option<LedgerError>,
}

impl SqliteLedger {
    /// That the ledger at `path` was deleted, if its mark still knows of one; opening it would begin a new one.
    #[must_use]
    pub fn deleted(path: &Path) -> Option<LedgerError> {
        let place = mark::place(path);
        (!path.exists() && place.exists()).then(|| not_newest(path, "it was deleted".to_owned()))
    }

    /// The copies of runs that stand where the ledger at `path` would have them, while there is none.
    #[must_use]
    pub fn copies_without(path: &Path) -> Vec<StrayCopies> {
        copies::strays(path, &[])
    }

    /// Opens the ledger at `path`, and creates it, readable by its owner alone, where there is none.
    ///
    /// # Errors
    /// When the file cannot be created, read or written, or belongs to a newer version.
    pub async fn open(path: &Path, clock: Clock) -> Result<Self, LedgerError> {
        // Before the ledger, so that another process that writes both meanwhile does not make it look old.
        let known = mark::read(&mark::place(path));
        opening::prepare(path, Patience::default()).await?;
        let readers = opening::readers(path).await?;
        let stale = judge(&readers, path, known).await?;
        let (path, writer, patience) = (Arc::from(path), OnceCell::new(), Patience::default());
        let on_commit: OnCommit = Arc::new(|_| {});
        Ok(Self { writer, readers, path, clock, patience, on_commit, numbers: Numbers::default(), stale })
    }

    /// The same, which tells how long each commit took, with the wait for other processes.
    #[must_use]
    pub fn with_commits_told(self, on_commit: OnCommit) -> Self {
        Self { on_commit, ..self }
    }

    /// The same for a command that does not wait longer than this for a process that has the ledger and is stopped.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience: Patience { stopped: patience, ..self.patience }, ..self }
    }

    /// Opens the ledger at `path` as the one that counts from now on, whatever its mark says, because a person says so.
    ///
    /// Runs that it knows as unfinished end as they are: nobody can tell what was sent of them meanwhile. Tells why it
    /// would have been refused; nothing if it would not have been.
    ///
    /// # Errors
    /// As for [`SqliteLedger::open`], and when it is damaged.
    pub async fn accept(path: &Path, clock: Clock) -> Result<(Self, Option<LedgerError>), LedgerError> {
        let (known, deleted) = (mark::read(&mark::place(path)), Self::deleted(path));
        let refused = Self::open(path, clock).await?;
        let Some(reason) = deleted.or_else(|| refused.stale.clone()) else { return Ok((refused, None)) };
        soundness::check(&refused.readers, path).await?;
        refused.close().await;
        adoption::adopt(path, &known, clock()).await?;
        Ok((Self::open(path, clock).await?, Some(reason)))
    }

    /// Refuses a ledger that is not the one that was written last.
    ///
    /// # Errors
    /// When it is not.
    pub fn newest(&self) -> Result<(), LedgerError> {
        self.stale.clone().map_or(Ok(()), Err)
    }

    /// Why what this ledger says is not to be believed, as far as a quick look tells; nothing if it is.
    pub async fn unsound(&self) -> Option<LedgerError> {
        match self.newest() {
            Ok(()) => soundness::quick_check(&self.readers, &self.path).await.err(),
            Err(stale) => Some(stale),
        }
    }

    /// Takes no more changes and waits until what was acknowledged is marked and the file is closed.
    pub async fn close(&self) {
        self.readers.close().await;
        if let Some(writer) = self.writer.get() {
            writer.close().await;
        }
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
        self.newest()?;
        let open = async || {
            let pen = opening::pen(&self.path, self.patience).await?;
            Ok::<_, LedgerError>(Writer::start(pen, Arc::clone(&self.on_commit)))
        };
        let writer = self.writer.get_or_try_init(open).await?;
        let path = Arc::clone(&self.path);
        let clock = self.clock;
        let written = writer.write(move |connection| {
            // Asked inside the transaction, so that the times of all processes follow one another.
            let result = change(connection, Now(clock().as_microsecond()));
            Box::pin(async move { result.await.map_err(|failure| failure.at(&path)) })
        });
        // A disk that hangs is a failure too: what was asked may still be done, but nobody builds on it.
        tokio::time::timeout(LONGEST_WRITE, written).await.unwrap_or_else(|_| {
            let reason = format!("nothing was written for {} s", LONGEST_WRITE.as_secs());
            Err(LedgerError::Storage { path: self.path.display().to_string(), reason })
        })
    }

    pub(super) fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// Refuses what leads to sending, unless this is the ledger that was written last and its file is sound.
    pub(super) async fn fit_for_sending(&self) -> Result<(), LedgerError> {
        self.newest()?;
        soundness::check(&self.readers, &self.path).await
    }

    /// The places of a shared run.
    pub(super) async fn places(&self, run: &Run) -> Result<Vec<Place>, LedgerError> {
        let places = blocks::places(&self.readers, run.key).await;
        places.map_err(|failure| self.read_error(failure))
    }

    pub(super) fn now(&self) -> Now {
        Now((self.clock)().as_microsecond())
    }

    pub(super) fn read_error(&self, failure: Failure) -> LedgerError {
        failure.at(&self.path)
    }
}

/// Why a ledger is not the one that was written last, by what is known of its mark.
async fn judge(readers: &SqlitePool, path: &Path, mut known: MarkReading) -> Result<Option<LedgerError>, LedgerError> {
    let current = async || {
        let mut reader = readers.acquire().await?;
        opening::current_mark(&mut reader).await
    };
    let mut now = current().await.map_err(|error| storage(path, &error))?;
    if known == MarkReading::Nothing && now.against(&known).is_some() {
        // Another process may have begun the ledger meanwhile; then its mark is there by now.
        known = mark::read(&mark::place(path));
        now = current().await.map_err(|error| storage(path, &error))?;
    }
    Ok(now.against(&known).map(|reason| not_newest(path, reason)))
}

fn not_newest(path: &Path, reason: String) -> LedgerError {
    let mark = mark::place(path).display().to_string();
    LedgerError::NotNewest { path: path.display().to_string(), reason, mark }
}

impl Ledger for SqliteLedger {
    fn create_run<'a>(&'a self, new: &'a NewRun) -> LedgerFuture<'a, Run> {
        let new = new.clone();
        Box::pin(async move {
            self.fit_for_sending().await?;
            self.write(move |connection, _| Box::pin(runs::create(connection, new, Stage::Preparing))).await
        })
    }

    fn open_run(&self, run: RunId, replaced: Option<RunId>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(runs::open(connection, now, run, replaced))))
    }

    fn runs(&self, wanted: RunFilter) -> LedgerFuture<'_, Vec<Run>> {
        Box::pin(async move { runs::wanted(&self.readers, wanted).await.map_err(|failure| self.read_error(failure)) })
    }

    fn find(&self, id: MessageId) -> LedgerFuture<'_, Option<Origin>> {
        Box::pin(async move { runs::find(&self.readers, id).await.map_err(|failure| self.read_error(failure)) })
    }

    fn hold<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, Option<Hold>> {
        let place = lock::path(&self.path, &hold::name(campaign, account));
        Box::pin(async move {
            let taken = lock::take(&place).await.map_err(|error| lock::failed(&place, &error))?;
            Ok(taken.map(|file| Hold::new(campaign, account, file)))
        })
    }

    fn is_held<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, bool> {
        let place = lock::path(&self.path, &hold::name(campaign, account));
        Box::pin(async move { lock::is_held(&place).map_err(|error| lock::failed(&place, &error)) })
    }

    fn held_since<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, Option<Timestamp>> {
        let place = lock::path(&self.path, &hold::name(campaign, account));
        Box::pin(async move { lock::held_since(&place).map_err(|error| lock::failed(&place, &error)) })
    }

    fn prepare_copies<'a>(&'a self, hold: &'a Hold) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(async { Ok(Box::new(NewFolder::prepare(&self.path, hold)?) as Box<dyn NewCopies>) })
    }

    fn copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Copies> {
        Box::pin(async {
            LedgerError::refuse_purged(run)?;
            copies::of(&self.path, &run.name()).await
        })
    }

    fn stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>> {
        Box::pin(async {
            let known = runs::names(&self.readers).await.map_err(|failure| self.read_error(failure))?;
            Ok(copies::strays(&self.path, &known))
        })
    }

    fn put_copies_aside<'a>(&'a self, run: &'a str) -> LedgerFuture<'a, String> {
        Box::pin(async { copies::put_stray_aside(&self.path, run) })
    }

    fn claim<'a>(&'a self, hold: &'a Hold, run: RunId) -> LedgerFuture<'a, Claim> {
        Box::pin(async move {
            self.fit_for_sending().await?;
            let known = runs::read(&self.readers, run).await.map_err(|failure| self.read_error(failure))?;
            held(hold, &known)?;
            let lease = Lease { run, rows: known.rows(), epoch: Epoch(rand::random()) };
            // Nobody comes meanwhile to the places that are shut; who comes to another keeps what it draws there.
            let (shut, _locks) = places::shut(&self.path, &known, &self.places(&known).await?)?;
            let numbers = self.numbers.clone();
            self.write(move |connection, now| Box::pin(envelopes::claim(connection, now, numbers, lease, shut))).await
        })
    }

    fn draw<'a>(&'a self, shared: &'a SharedRun, wanted: BlockRequest) -> LedgerFuture<'a, Drawn> {
        Box::pin(async move {
            self.fit_for_sending().await?;
            let (place, lock) = places::free(&self.path, shared)?;
            let (shared, epoch, random) = (shared.clone(), Epoch(rand::random()), rand::random());
            let draw = Draw { shared, wanted, place, epoch, random };
            let drawn = self.write(move |connection, now| Box::pin(blocks::draw(connection, now, draw))).await?;
            Ok(drawn.map_or_else(|refused| refused, |(run, lease)| Drawn::Block(Block::new(run, lease, lock))))
        })
    }

    fn rows_in_hand(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        Box::pin(async move {
            let run = runs::read(&self.readers, run).await.map_err(|failure| self.read_error(failure))?;
            Ok(Rows::all_of(&places::taken(&self.path, &run, &self.places(&run).await?)?))
        })
    }

    fn end(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()> {
        let numbers = self.numbers.clone();
        Box::pin(self.write(move |connection, now| Box::pin(runs::end(connection, now, numbers, lease, end))))
    }

    fn begin(&self, intent: Intent) -> LedgerFuture<'_, Permit> {
        let numbers = self.numbers.clone();
        Box::pin(self.write(move |connection, now| Box::pin(envelopes::begin(connection, now, numbers, intent))))
    }

    fn settle(&self, settlement: Settlement) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(envelopes::settle(connection, now, settlement))))
    }

    fn retire(&self, run: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(runs::retire(connection, now, run))))
    }

    fn moved(&self, runs: Vec<RunId>, file: String) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(runs::moved(connection, runs, file))))
    }

    fn request_stop(&self, run: RunId, requested: bool) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(stops::request(connection, run, requested))))
    }

    fn stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool> {
        Box::pin(async move { stops::requested(&self.readers, run).await.map_err(|failure| self.read_error(failure)) })
    }

    fn slow_down<'a>(&'a self, account: &'a str, wait: Option<Duration>) -> LedgerFuture<'a, ()> {
        let account = account.to_owned();
        Box::pin(self.write(move |connection, now| Box::pin(pace::slow_down(connection, now, account, wait))))
    }

    fn reserve<'a>(&'a self, account: &'a Allowance, count: u32) -> LedgerFuture<'a, Wait> {
        let account = account.clone();
        Box::pin(self.write(move |connection, now| {
            Box::pin(async move { pace::reserve(connection, now, &account, count).await })
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
        Box::pin(async move { left_out::read(&self.readers, run).await.map_err(|failure| self.read_error(failure)) })
    }

    fn numbers_sent_to<'a>(&'a self, runs: &'a [RunId]) -> LedgerFuture<'a, NumberSet> {
        Box::pin(async move {
            guard::numbers_sent_to(&self.readers, runs).await.map_err(|failure| self.read_error(failure))
        })
    }

    fn record(&self, lease: Lease, events: Vec<NewRowEvent>) -> LedgerFuture<'_, Ownership> {
        Box::pin(self.write(move |connection, now| Box::pin(events::record(connection, now, lease, events))))
    }

    fn retry(&self, lease: Lease, order: RetryOrder) -> LedgerFuture<'_, Ownership> {
        Box::pin(self.write(move |connection, now| Box::pin(events::retry(connection, now, lease, order))))
    }

    fn events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>> {
        Box::pin(async move { events::read(&self.readers, run).await.map_err(|failure| self.read_error(failure)) })
    }

    fn keep_asked(&self, run: RunId, questions: Vec<AskedRow>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(events::asked(connection, run, questions))))
    }

    fn asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>> {
        Box::pin(async move { events::questions(&self.readers, run).await.map_err(|failure| self.read_error(failure)) })
    }

    fn remember_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, String> {
        let (profile, host) = (profile.to_owned(), host.to_owned());
        Box::pin(self.write(move |connection, _| Box::pin(hosts::remember(connection, profile, host))))
    }

    fn trust_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, ()> {
        let (profile, host) = (profile.to_owned(), host.to_owned());
        Box::pin(self.write(move |connection, _| Box::pin(hosts::trust(connection, profile, host))))
    }
}
