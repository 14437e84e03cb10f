//! The PostgreSQL ledger: opening, reading, and acceptance of an outdated database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, PgPool, Row as _};
use tokio::sync::OnceCell;
use tokio_util::task::AbortOnDropHandle;

use super::address::PostgresAddress;
use super::dialect::{Reader, storage_error};
use super::locks::Locks;
use super::opening;
use super::sql::{CommitCallback, EnvelopeNumbers, Now, StatementError, Writer};
use super::sql::{read_ledger, scalar};
use super::transaction::{self, WriteTurn, retry_if_reached, retry_while_unavailable};
use super::write_connection::{self, DatabaseInfo, FurthestMark, WriteConnection, WriterCommits};
use crate::high_water_mark::{HighWaterMark, MarkFile, MarkReading};
use crate::{LedgerError, high_water_mark};

/// A ledger in a PostgreSQL database.
pub struct PostgresLedger {
    address: PostgresAddress,
    /// The file of this machine's high-water mark.
    pub(super) mark: PathBuf,
    /// The writer task, started at the first write.
    pub(super) writer: OnceCell<Writer>,
    pub(super) pool: PgPool,
    /// The address, for display in messages.
    pub(super) place: Arc<str>,
    pub(super) on_commit: CommitCallback,
    /// Cached last envelope numbers of the runs of this process.
    pub(super) numbers: EnvelopeNumbers,
    pub(super) locks: Locks,
    /// Renews the leases until the ledger is dropped.
    _keeper: AbortOnDropHandle<()>,
    database: Arc<DatabaseInfo>,
    /// The reason why this ledger must not be used for sending or writing, if there is one.
    stale: Option<LedgerError>,
    furthest_mark: FurthestMark,
    /// Whether this machine had no mark when the ledger was opened.
    unmarked: bool,
    /// Whether a write creates a mark on this machine.
    leaves_mark: bool,
}

impl PostgresLedger {
    /// Whether there is a ledger at an address.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn exists(address: &PostgresAddress) -> Result<bool, LedgerError> {
        opening::exists(address).await
    }

    /// Opens the ledger at an address, if there is one, without creating it.
    ///
    /// # Errors
    /// As for [`PostgresLedger::open`], or if the ledger was deleted.
    pub async fn open_existing(address: &PostgresAddress, marks: &Path) -> Result<Option<Self>, LedgerError> {
        let mark = marks.join(opening::mark_file_name(address.display_name()));
        match opening::exists(address).await? {
            true => Self::open(address, marks).await.map(Some),
            false if mark.exists() => Err(LedgerError::Outdated {
                path: address.display_name().to_owned(),
                reason: "the ledger was deleted".to_owned(),
                mark: mark.display().to_string(),
            }),
            false => Ok(None),
        }
    }

    /// Opens the ledger at an address and creates missing tables. `marks` is a folder on this machine.
    ///
    /// # Errors
    /// If the connection fails, the tables cannot be created, or they belong to a newer version.
    pub async fn open(address: &PostgresAddress, marks: &Path) -> Result<Self, LedgerError> {
        let place: Arc<str> = address.display_name().into();
        let mark = marks.join(opening::mark_file_name(&place));
        // The mark is read before the ledger, so that a concurrent commit does not make the ledger look older than its
        // mark.
        let known = high_water_mark::read_mark(&mark);
        let (pool, version) = opening::prepare_pool(address).await?;
        let state = retry_if_reached(address, || opening::load_state(&pool)).await;
        let state = state.map_err(|error| storage_error(&place, &error))?;
        let stale = opening::check_state(&state, &known, &place, &mark);
        let info =
            DatabaseInfo { clock_offset: AtomicI64::new(state.now - local_micros()), version: AtomicI64::new(version) };
        let locks = Locks::new(pool.clone(), Arc::clone(&place), mark.clone());
        let keeper = locks.spawn_renewal();
        Ok(Self {
            address: address.clone(),
            mark,
            writer: OnceCell::new(),
            pool,
            place,
            on_commit: Arc::new(|_| {}),
            numbers: EnvelopeNumbers::default(),
            locks,
            _keeper: keeper,
            database: Arc::new(info),
            stale,
            furthest_mark: FurthestMark::new(state.mark),
            unmarked: known == MarkReading::Missing,
            leaves_mark: true,
        })
    }

    /// Upgrades the tables at an address to this version, even while processes use them. Earlier versions are refused
    /// before their next message. Returns whether the tables were older, or `None` if there is no ledger at the
    /// address.
    ///
    /// # Errors
    /// If the connection fails, the tables cannot be changed, or they belong to a newer version.
    pub async fn upgrade_tables(address: &PostgresAddress) -> Result<Option<bool>, LedgerError> {
        Ok(opening::upgrade_tables(address).await?.map(|before| before < opening::NEWEST))
    }

    /// Whether the tables are from an earlier version. This version can use them until they are upgraded.
    pub fn has_older_tables(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) < opening::NEWEST
    }

    /// Whether the tables can store figures of runs. The tables of early versions cannot.
    pub(super) fn supports_figures(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= opening::WITH_FIGURES
    }

    /// Whether the tables have a column for the channels of pipelines. The tables of early versions lack it.
    pub(super) fn supports_chains(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= opening::WITH_CHAINS
    }

    /// Whether the tables include the `approval` rules of accounts. The tables of early versions do not.
    pub(super) fn supports_approval_rules(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= opening::WITH_APPROVAL_RULES
    }

    /// Whether the tables record recent single messages. The tables of early versions do not.
    pub(super) fn supports_repeat_guard(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= opening::WITH_REPEATS
    }

    /// Whether the tables can store evidence of consent. The tables of early versions cannot.
    pub(super) fn supports_consents(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= opening::WITH_CONSENTS
    }

    /// Whether every process that uses the tables knows opt-outs from all messages. Until the tables are upgraded, some
    /// processes might not.
    pub(super) fn supports_all_scopes(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= opening::WITH_SCOPES
    }

    /// Sets a callback that receives the duration of each commit, including the wait for other processes.
    #[must_use]
    pub fn with_commit_callback(self, on_commit: CommitCallback) -> Self {
        Self { on_commit, ..self }
    }

    /// Prevents the ledger from creating a mark on this machine. A read-only command must not hide that this machine
    /// does not know the ledger yet.
    #[must_use]
    pub fn without_new_mark(self) -> Self {
        Self { leaves_mark: false, ..self }
    }

    /// Whether this machine had no mark when the ledger was opened.
    pub(super) fn has_no_mark(&self) -> bool {
        self.unmarked
    }

    /// Opens the ledger at an address that the operator accepts as valid, regardless of its mark.
    ///
    /// Unfinished live runs end as they are, because messages might have been sent under another ledger. Also returns
    /// the error with which the ledger would have been refused, if any.
    ///
    /// # Errors
    /// As for [`PostgresLedger::open`].
    pub async fn open_accepted(
        address: &PostgresAddress,
        marks: &Path,
    ) -> Result<(Self, Option<LedgerError>), LedgerError> {
        let opened = Self::open(address, marks).await?;
        let Some(reason) = opened.stale.clone() else { return Ok((opened, None)) };
        let known = high_water_mark::read_mark(&opened.mark);
        adopt_ledger(&opened.pool, &opened.place, &opened.mark, &known).await?;
        opened.close().await;
        Ok((Self::open(address, marks).await?, Some(reason)))
    }

    /// Refuses an outdated ledger.
    ///
    /// # Errors
    /// If this machine knows a newer state of the ledger.
    pub fn ensure_newest(&self) -> Result<(), LedgerError> {
        self.stale.clone().map_or(Ok(()), Err)
    }

    /// The address, for display.
    pub(super) fn location(&self) -> String {
        self.place.to_string()
    }

    /// Stops accepting changes and waits until acknowledged changes are in the high-water mark and released locks are
    /// recorded.
    pub async fn close(&self) {
        self.locks.close().await;
        if let Some(writer) = self.writer.get() {
            writer.close().await;
        }
        self.pool.close().await;
    }

    /// Begins a read transaction.
    pub(super) async fn reader(&self) -> Result<Reader, LedgerError> {
        self.to_ledger_result(
            self.retry_while_unavailable(|| transaction::begin_read(&self.pool)).await.map_err(StatementError::Sql),
        )
    }

    /// Retries an operation while the database is unavailable, for a limited time.
    pub(super) async fn retry_while_unavailable<T, F>(&self, operation: impl Fn() -> F) -> sqlx::Result<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        retry_while_unavailable(&self.place, operation).await
    }

    pub(super) async fn open_write_connection(&self) -> Result<WriteConnection, LedgerError> {
        let mark_error = |error: std::io::Error| {
            let reason = format!("its high-water mark `{}` cannot be opened: {error}", self.mark.display());
            LedgerError::from_storage(&self.place, &reason)
        };
        let before = self.furthest_mark.current_mark();
        // The write lock is held until the mark is open, so that only one process creates a missing mark.
        let opened = self.retry_while_unavailable(|| async {
            let mut connection = transaction::open_connection(&self.address).await?;
            let turn = transaction::begin_write(&mut connection).await?;
            Ok((connection, turn))
        });
        let (connection, turn) = self.to_ledger_result(opened.await.map_err(StatementError::Sql))?;
        self.furthest_mark.advance_to(&self.place, before, turn.mark)?;
        write_connection::ensure_no_doubt(&self.place, turn.succession)?;
        let mark = match self.leaves_mark || self.mark.exists() {
            true => MarkFile::open(&self.mark, turn.mark),
            false => MarkFile::create_temporary(turn.mark),
        };
        let mark = mark.map_err(mark_error)?;
        // If the connection broke, the server has already rolled the transaction back.
        let _ = connection.close().await;
        Ok(WriteConnection::new(
            self.address.clone(),
            Arc::clone(&self.place),
            mark,
            turn.mark,
            Arc::clone(&self.database),
        ))
    }

    /// Refuses to send if the ledger is outdated, or older than a state that this process has already seen.
    pub(super) async fn ensure_can_send(&self) -> Result<(), LedgerError> {
        self.ensure_newest()?;
        // The mark is read before the ledger, so that a concurrent commit does not make the ledger look older than its
        // mark.
        let (known, before) = (high_water_mark::read_mark(&self.mark), self.furthest_mark.current_mark());
        let state = self.retry_while_unavailable(|| opening::load_state(&self.pool)).await;
        let state = self.to_ledger_result(state.map_err(StatementError::Sql))?;
        opening::check_state(&state, &known, &self.place, &self.mark).map_or(Ok(()), Err)?;
        self.furthest_mark.advance_to(&self.place, before, state.mark)
    }

    /// The database's current time, estimated from the local clock.
    pub(super) fn now(&self) -> Now {
        Now(local_micros().saturating_add(self.database.clock_offset.load(Ordering::Relaxed)))
    }

    /// The number of replicas, or 0 if some of them must confirm each commit.
    pub(super) async fn count_unconfirmed_replicas(&self) -> Result<u64, LedgerError> {
        read_ledger!(self, count_unconfirmed_replicas)
    }

    /// Vacuums deleted rows from the tables. The database reuses the freed space later.
    pub(super) async fn overwrite_deleted_data(&self) -> Result<(), LedgerError> {
        let vacuum = sqlx::raw_sql(
            "VACUUM campaign.envelopes, campaign.receipts, campaign.events, campaign.contacts, campaign.copy_shards",
        );
        self.to_ledger_result(vacuum.execute(&self.pool).await.map(drop).map_err(StatementError::Sql))
    }
}

async fn count_unconfirmed_replicas(reader: &mut PgConnection) -> Result<u64, StatementError> {
    let statement = "SELECT count(*) FROM pg_stat_replication WHERE current_setting('synchronous_standby_names') = ''";
    let replicas: i64 = scalar(statement).fetch_one(reader).await?;
    Ok(u64::try_from(replicas).unwrap_or(0))
}

/// The time of this machine's clock, in microseconds since 1970.
pub(super) fn local_micros() -> i64 {
    Timestamp::now().as_microsecond()
}

/// Ends unfinished live runs, advances the ledger beyond its mark, and updates the mark.
///
/// The order matters: after an interruption the ledger is still refused, and the operator can repeat the command.
pub(super) async fn adopt_ledger(
    pool: &PgPool,
    place: &str,
    mark: &Path,
    known: &MarkReading,
) -> Result<(), LedgerError> {
    let furthest = known.highest_generation();
    // This can be repeated if the answer to a commit was lost.
    let adopt = || async {
        let mut connection = pool.acquire().await?;
        let WriteTurn { now, version, succession, .. } = transaction::begin_write(&mut connection).await?;
        succession.record_server(&mut connection, version).await?;
        sqlx::query(
            "UPDATE runs SET progress = 'replaced', owner = NULL, ended_at = $1 WHERE live AND progress = 'open'",
        )
        .persistent(false)
        .bind(now)
        .execute(&mut *connection)
        .await?;
        let identity = sqlx::query("UPDATE meta SET generation = greatest(generation, $1) RETURNING id, generation")
            .persistent(false)
            .bind(furthest)
            .fetch_one(&mut *connection)
            .await?;
        let current = HighWaterMark { id: identity.try_get(0)?, generation: identity.try_get(1)? };
        transaction::count_and_commit(&mut connection, WriterCommits::default().count_next(), now)
            .await
            .map(|committed| (current, committed))
    };
    let (current, committed) =
        retry_while_unavailable(&place.into(), adopt).await.map_err(|error| storage_error(place, &error))?;
    let accepted = MarkFile::open(mark, current).and_then(|mut mark| mark.accept_mark(committed));
    accepted.map_err(|error| LedgerError::from_mark(&place, &error))
}
