//! The ledger in a database: opened, read and written.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, PgPool};
use tokio::sync::OnceCell;
use tokio_util::task::AbortOnDropHandle;

use super::address::PostgresAddress;
use super::dialect::{Reader, storage_error};
use super::locks::Locks;
use super::pen::{self, DatabaseInfo, WriteConnection};
use super::seen::FurthestMark;
use super::sql::look::read_ledger;
use super::sql::statement::scalar;
use super::sql::{CommitCallback, EnvelopeNumbers, Now, StatementError, Writer};
use super::waiting::{retry_if_reached, retry_while_away};
use super::{adoption, opening, schema, transaction};
use crate::ledger::mark::{MarkFile, MarkReading};
use crate::ledger::{LedgerError, mark};

/// The ledger in a PostgreSQL database.
pub struct PostgresLedger {
    address: PostgresAddress,
    /// The file of the mark, which is this machine's.
    pub(super) mark: PathBuf,
    /// Opened when something is first written.
    pub(super) writer: OnceCell<Writer>,
    pub(super) pool: PgPool,
    /// The address as people are told it.
    pub(super) place: Arc<str>,
    pub(super) on_commit: CommitCallback,
    /// The last envelope of each run that this process has.
    pub(super) numbers: EnvelopeNumbers,
    pub(super) locks: Locks,
    _keeper: AbortOnDropHandle<()>,
    database: Arc<DatabaseInfo>,
    /// Why nothing may be sent with this ledger, nor anything be written to it.
    stale: Option<LedgerError>,
    seen: FurthestMark,
    /// Whether this machine had no mark when the ledger was opened.
    unmarked: bool,
    /// Whether this machine gets a mark when something is written.
    leaves_mark: bool,
}

impl PostgresLedger {
    /// Whether there is a ledger at an address.
    ///
    /// # Errors
    /// When there is no connection.
    pub async fn exists(address: &PostgresAddress) -> Result<bool, LedgerError> {
        opening::exists(address).await
    }

    /// Opens the ledger at an address, if there is one; makes none.
    ///
    /// # Errors
    /// As for [`PostgresLedger::open`], and when there was one.
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

    /// Opens the ledger at an address, and makes its tables where there are none; `marks` is a folder of this machine.
    ///
    /// # Errors
    /// When there is no connection, the tables cannot be made, or they belong to a newer version.
    pub async fn open(address: &PostgresAddress, marks: &Path) -> Result<Self, LedgerError> {
        let place: Arc<str> = address.display_name().into();
        let mark = marks.join(opening::mark_file_name(&place));
        // Before the ledger, so that another process that writes both meanwhile does not make it look old.
        let known = mark::read_mark(&mark);
        let (pool, version) = opening::prepare_pool(address).await?;
        let standing = retry_if_reached(address, || opening::load_state(&pool)).await;
        let standing = standing.map_err(|error| storage_error(&place, &error))?;
        let stale = opening::check_state(&standing, &known, (&place, &mark));
        let heard = DatabaseInfo {
            clock_offset: AtomicI64::new(standing.now - local_micros()),
            version: AtomicI64::new(version),
        };
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
            database: Arc::new(heard),
            stale,
            seen: FurthestMark::new(standing.mark),
            unmarked: known == MarkReading::Missing,
            leaves_mark: true,
        })
    }

    /// Brings the tables at an address to those of this version, whoever works with them: earlier versions are refused from
    /// then on, before their next message. Tells whether they were older; nothing where there is no ledger.
    ///
    /// # Errors
    /// When there is no connection, the tables cannot be changed, or they belong to a newer version.
    pub async fn upgrade_tables(address: &PostgresAddress) -> Result<Option<bool>, LedgerError> {
        Ok(opening::upgrade_tables(address).await?.map(|before| before < schema::NEWEST))
    }

    /// Whether it has a place for what projections make of runs: not as long as its tables are those of the version before.
    pub(super) fn keeps_figures(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= schema::WITH_FIGURES
    }

    /// Whether it has a column for the channels of pipelines: not as long as its tables are those of the version before.
    pub(super) fn keeps_chains(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= schema::WITH_CHAINS
    }

    /// Whether it has a table for the `approval` rules of accounts: not as long as its tables are those of the version before.
    pub(super) fn keeps_approval_rules(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= schema::WITH_APPROVAL_RULES
    }

    /// Whether it has a table for single messages that were sent lately: not as long as its tables are those of the version before.
    pub(super) fn keeps_repeats(&self) -> bool {
        self.database.version.load(Ordering::Relaxed) >= schema::WITH_REPEATS
    }

    /// The same, which tells how long each commit took, with the wait for other processes.
    #[must_use]
    pub fn with_commit_callback(self, on_commit: CommitCallback) -> Self {
        Self { on_commit, ..self }
    }

    /// The same, which makes no mark where there is none. Whoever only asks must not hide that this machine knows nothing of the
    /// ledger yet.
    #[must_use]
    pub fn without_new_mark(self) -> Self {
        Self { leaves_mark: false, ..self }
    }

    /// Whether this machine had no mark when the ledger was opened.
    pub(super) fn has_no_mark(&self) -> bool {
        self.unmarked
    }

    /// Opens the ledger at an address as the one that counts from now on, whatever the mark says, because a person says so.
    ///
    /// Runs that it knows as unfinished end as they are: nobody can tell what was sent of them meanwhile. Tells why it
    /// would have been refused; nothing if it would not have been.
    ///
    /// # Errors
    /// As for [`PostgresLedger::open`].
    pub async fn open_accepted(
        address: &PostgresAddress,
        marks: &Path,
    ) -> Result<(Self, Option<LedgerError>), LedgerError> {
        let refused = Self::open(address, marks).await?;
        let Some(reason) = refused.stale.clone() else { return Ok((refused, None)) };
        let known = mark::read_mark(&refused.mark);
        adoption::adopt_ledger(&refused.pool, (&refused.place, &refused.mark), &known).await?;
        refused.close().await;
        Ok((Self::open(address, marks).await?, Some(reason)))
    }

    /// Refuses a ledger that is behind what this machine knows of it.
    ///
    /// # Errors
    /// When it is.
    pub fn ensure_newest(&self) -> Result<(), LedgerError> {
        self.stale.clone().map_or(Ok(()), Err)
    }

    /// Its address, as people are told it.
    pub(super) fn place(&self) -> String {
        self.place.to_string()
    }

    /// Takes no more changes, and waits until what was acknowledged is marked and what was let go is told.
    pub async fn close(&self) {
        self.locks.close().await;
        if let Some(writer) = self.writer.get() {
            writer.close().await;
        }
        self.pool.close().await;
    }

    /// A connection to read with.
    pub(super) async fn reader(&self) -> Result<Reader, LedgerError> {
        self.to_ledger_result(
            self.retry_while_away(|| transaction::begin_read(&self.pool)).await.map_err(StatementError::Sql),
        )
    }

    /// Does something as soon as the database is there, if it comes back in time.
    pub(super) async fn retry_while_away<T, F>(&self, ask: impl Fn() -> F) -> sqlx::Result<T>
    where
        F: Future<Output = sqlx::Result<T>>,
    {
        retry_while_away(&self.place, ask).await
    }

    /// What writes.
    pub(super) async fn open_write_connection(&self) -> Result<WriteConnection, LedgerError> {
        let unmarked = |error: std::io::Error| LedgerError::Storage {
            path: self.place.to_string(),
            reason: format!("its high-water mark `{}` cannot be opened: {error}", self.mark.display()),
        };
        let seen = self.seen.current_mark();
        // With the turn, so that one process makes the mark where there is none.
        let first = self.retry_while_away(|| async {
            let mut connection = transaction::open_connection(&self.address).await?;
            let turn = transaction::begin_write(&mut connection).await?;
            Ok((connection, turn))
        });
        let (connection, turn) = self.to_ledger_result(first.await.map_err(StatementError::Sql))?;
        self.seen.advance_to(&self.place, seen, turn.mark)?;
        pen::ensure_no_doubt(&self.place, turn.succession)?;
        let mark = match self.leaves_mark || self.mark.exists() {
            true => MarkFile::open(&self.mark, turn.mark),
            false => MarkFile::temporary(turn.mark),
        };
        let mark = mark.map_err(unmarked)?;
        // A connection that broke took the transaction back, too.
        let _ = connection.close().await;
        Ok(WriteConnection::new(
            self.address.clone(),
            Arc::clone(&self.place),
            (mark, turn.mark),
            Arc::clone(&self.database),
        ))
    }

    /// Refuses what leads to sending, unless this is the ledger as it was last seen here, and takes changes.
    pub(super) async fn ensure_sendable(&self) -> Result<(), LedgerError> {
        self.ensure_newest()?;
        // Before the ledger, so that another process that writes both meanwhile does not make it look old.
        let (known, seen) = (mark::read_mark(&self.mark), self.seen.current_mark());
        let asked = self.retry_while_away(|| opening::load_state(&self.pool)).await;
        let standing = self.to_ledger_result(asked.map_err(StatementError::Sql))?;
        opening::check_state(&standing, &known, (&self.place, &self.mark)).map_or(Ok(()), Err)?;
        self.seen.advance_to(&self.place, seen, standing.mark)
    }

    /// The time of the database, as far as it is known here.
    pub(super) fn now(&self) -> Now {
        Now(local_micros().saturating_add(self.database.clock_offset.load(Ordering::Relaxed)))
    }

    /// How many replicas there are, unless some have to confirm each commit.
    pub(super) async fn count_replicas(&self) -> Result<u64, LedgerError> {
        read_ledger!(self, select_unconfirmed_replicas)
    }

    /// Has what is deleted leave the tables; the database uses their space again as it sees fit.
    pub(super) async fn overwrite_deleted(&self) -> Result<(), LedgerError> {
        let swept = sqlx::raw_sql(
            "VACUUM campaign.envelopes, campaign.receipts, campaign.events, campaign.contacts, campaign.copy_shards",
        );
        self.to_ledger_result(swept.execute(&self.pool).await.map(drop).map_err(StatementError::Sql))
    }
}

async fn select_unconfirmed_replicas(reader: &mut PgConnection) -> Result<u64, StatementError> {
    let asked = "SELECT count(*) FROM pg_stat_replication WHERE current_setting('synchronous_standby_names') = ''";
    let replicas: i64 = scalar(asked).fetch_one(reader).await?;
    Ok(u64::try_from(replicas).unwrap_or(0))
}

/// The clock of this machine.
pub(super) fn local_micros() -> i64 {
    Timestamp::now().as_microsecond()
}
