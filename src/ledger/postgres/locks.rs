//! Locks: records with a lease, which whoever has one renews, and loses when it does not.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{PgPool, Row as _};
use tokio::sync::OnceCell;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::leases::{ClockReading, LEASE_DURATION, Leases, RENEWAL_INTERVAL};
use super::ledger::PostgresLedger;
use super::presence::{self, Presence};
use super::sql::look::read_ledger;
use super::sql::statement::query;
use super::sql::{LockProof, Now, StatementError};
use super::transaction;
use crate::ledger::{Epoch, LedgerError, hold};

/// How long one look at a lock takes at most, and how many are waited for.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
const MAX_ATTEMPTS: u32 = 10;

/// A lock that this process has, until this is dropped.
pub(in crate::ledger) struct Lock {
    name: String,
    holder: i64,
    locks: Locks,
}

/// What locks are kept with.
#[derive(Clone)]
pub(super) struct Locks {
    pub(super) leases: Leases,
    pool: PgPool,
    /// What is still to be told to the database.
    tasks: TaskTracker,
    place: Arc<str>,
    /// The file of the mark, beside which processes of this machine tell that they are there.
    mark: PathBuf,
    presence: Arc<OnceCell<Presence>>,
}

impl Locks {
    pub(super) fn new(pool: PgPool, place: Arc<str>, mark: PathBuf) -> Self {
        let (leases, tasks, presence) = (Leases::default(), TaskTracker::new(), Arc::default());
        Self { leases, pool, tasks, place, mark, presence }
    }

    /// The number of this process, from here on known to those of this machine.
    async fn register_process(&self) -> Result<i64, LedgerError> {
        let told = self.presence.get_or_try_init(async || Presence::announce_process(&self.mark)).await;
        told.map(Presence::process).map_err(|error| LedgerError::Storage {
            path: self.place.to_string(),
            reason: format!("cannot write a file next to its high-water mark `{}`: {error}", self.mark.display()),
        })
    }

    /// Renews what this process has until what it gives is dropped.
    pub(super) fn spawn_renewal(&self) -> AbortOnDropHandle<()> {
        let locks = self.clone();
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                tokio::time::sleep(RENEWAL_INTERVAL).await;
                if let Err(error) = locks.renew_leases().await {
                    tracing::warn!("cannot renew the leases of this process in the ledger `{}`: {error}", locks.place);
                }
            }
        }))
    }

    /// Tells that this process is there, and learns what it has not any more.
    pub(super) async fn renew_leases(&self) -> sqlx::Result<()> {
        let held = self.leases.list_held();
        if held.is_empty() {
            return Ok(());
        }
        let asked = ClockReading::now();
        let mut transaction = transaction::begin_unordered_write(&self.pool).await?;
        let now = transaction::load_time(&mut transaction).await?;
        let mut kept = Vec::with_capacity(held.len());
        for (name, holder) in held {
            let renewed = query("UPDATE locks SET until = $1 WHERE name = $2 AND holder = $3")
                .bind(lease_end(now))
                .bind(&name)
                .bind(holder)
                .execute(&mut *transaction)
                .await?;
            kept.push((name, holder, renewed.rows_affected() > 0));
        }
        transaction.commit().await?;
        for (name, holder, is_mine) in kept {
            self.leases.record_renewal(&name, holder, is_mine.then_some(asked));
        }
        Ok(())
    }

    /// Waits until the database knows what was let go.
    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        // Where the database was not told everything, a file that is not locked any more tells the others of this machine.
        let told = self.leases.list_held().is_empty() && self.leases.list_released().is_empty();
        if let Some(presence) = self.presence.get().filter(|_| told) {
            presence.end();
        }
    }

    /// Does something that nobody waits for before the ledger is closed.
    pub(super) fn spawn_cleanup(&self, task: impl Future<Output = sqlx::Result<()>> + Send + 'static) {
        let place = Arc::clone(&self.place);
        if tokio::runtime::Handle::try_current().is_ok() {
            drop(self.tasks.spawn(async move {
                if let Err(error) = task.await {
                    tracing::debug!("cannot release a lock of the ledger `{place}`: {error}");
                }
            }));
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let (name, holder, locks) = (std::mem::take(&mut self.name), self.holder, self.locks.clone());
        locks.leases.record_released(&name, holder);
        // Whoever is not told waits for the end of the lease.
        self.locks.spawn_cleanup(async move {
            let mut transaction = transaction::begin_unordered_write(&locks.pool).await?;
            query("DELETE FROM locks WHERE name = $1 AND holder = $2")
                .bind(&name)
                .bind(holder)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            locks.leases.forget_released(&name, holder);
            Ok(())
        });
    }
}

impl PostgresLedger {
    /// Takes a campaign on an account; nothing while another process has it.
    ///
    /// Where one had it that is not heard of any more, its right to the runs is gone in the same transaction.
    pub(super) async fn try_lock_campaign(&self, campaign: &str, account: &str) -> Result<Option<Lock>, LedgerError> {
        let name = hold::lock_name(campaign, account);
        let runs = (campaign.to_owned(), account.to_owned());
        for _ in 0..MAX_ATTEMPTS {
            if let Some(lock) = self.take_lock(&name, Some(runs.clone())).await? {
                return Ok(Some(lock));
            }
            // Somebody may just be letting go of it; an owner stays.
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Ok(None)
    }

    /// Takes a lock if it is free at this moment.
    pub(super) async fn try_lock(&self, name: &str) -> Result<Option<Lock>, LedgerError> {
        self.take_lock(name, None).await
    }

    async fn take_lock(&self, name: &str, runs: Option<(String, String)>) -> Result<Option<Lock>, LedgerError> {
        let (asked, holder, process) = (ClockReading::now(), rand::random(), self.locks.register_process().await?);
        let ended = presence::list_ended(&self.locks.mark);
        let wanted = LockRequest { name: name.to_owned(), holder, process, runs };
        let (leases, gone) = (self.locks.leases.clone(), ended.clone());
        let taken = self.write(move |connection, now| {
            let (wanted, leases, gone) = (wanted.clone(), leases.clone(), gone.clone());
            Box::pin(async move {
                release_ended_processes(&mut *connection, &gone).await?;
                try_take_lock(connection, now, leases, wanted).await
            })
        });
        let taken = taken.await?;
        presence::remove_ended(&self.locks.mark, &ended);
        if !taken {
            return Ok(None);
        }
        self.locks.leases.record_taken(name, holder, asked);
        Ok(Some(Lock { name: name.to_owned(), holder, locks: self.locks.clone() }))
    }

    /// Whether some process has a lock.
    pub(super) async fn is_locked(&self, name: &str) -> Result<bool, LedgerError> {
        Ok(self.locked_since(name).await?.is_some())
    }

    /// Since when some process has a lock; nothing where none has.
    pub(super) async fn locked_since(&self, name: &str) -> Result<Option<Timestamp>, LedgerError> {
        // Before the database is asked: it may hear of them meanwhile, and answer as before.
        let let_go = self.locks.leases.list_released();
        let found = read_ledger!(self, find_lock_owner, name)?;
        let found = found.filter(|(holder, process, _)| {
            !let_go.contains(&(name.to_owned(), *holder)) && !presence::list_ended(&self.locks.mark).contains(process)
        });
        Ok(found.and_then(|(.., since)| Timestamp::from_microsecond(since).ok()))
    }

    /// Has a right to rows go by a lock.
    pub(super) fn bind_lease(&self, epoch: Epoch, name: &str) {
        self.locks.leases.bind_epoch(epoch, name);
    }

    /// Renews what this process has, if it does not know any more that it has this right: it may have slept.
    pub(super) async fn renew_if_stale(&self, epoch: Epoch) -> Result<(), LedgerError> {
        if self.holds_lease(epoch) {
            return Ok(());
        }
        self.to_ledger_result(self.retry_while_away(|| self.locks.renew_leases()).await.map_err(StatementError::Sql))
    }

    /// The lock that a right to rows goes by, and others that this process has.
    pub(super) fn lock_proof(&self, epoch: Epoch, others: &[Lock]) -> LockProof {
        let own = self.locks.leases.find_lock(epoch);
        own.into_iter().map(|(_, holder)| holder).chain(others.iter().map(|lock| lock.holder)).collect()
    }

    /// Whether something may leave by this right at this moment.
    pub(super) fn holds_lease(&self, epoch: Epoch) -> bool {
        self.locks.leases.is_valid(epoch, ClockReading::now())
    }
}

/// Who has a lock, as which process, since when.
async fn find_lock_owner(reader: &mut PgConnection, name: &str) -> Result<Option<(i64, i64, i64)>, StatementError> {
    let now = transaction::load_time(reader).await?;
    let found = query("SELECT holder, process, taken_at FROM locks WHERE name = $1 AND until > $2")
        .bind(name)
        .bind(now)
        .fetch_optional(reader)
        .await?;
    let known = |lock: PgRow| Ok((lock.try_get(0)?, lock.try_get(1)?, lock.try_get(2)?));
    found.map(known).transpose().map_err(StatementError::Sql)
}

/// A lock that is wanted.
#[derive(Clone)]
struct LockRequest {
    name: String,
    holder: i64,
    process: i64,
    /// The campaign and the account whose runs go by it.
    runs: Option<(String, String)>,
}

/// Lets go of what processes had that ended without a word.
async fn release_ended_processes(connection: &mut PgConnection, ended: &[i64]) -> Result<(), StatementError> {
    for process in ended {
        query("DELETE FROM locks WHERE process = $1").bind(process).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Takes a lock that nobody has, or whose lease is over; with it the runs from whoever had them by it.
async fn try_take_lock(
    connection: &mut PgConnection,
    now: Now,
    leases: Leases,
    LockRequest { name, holder, process, runs }: LockRequest,
) -> Result<bool, StatementError> {
    let known = query("SELECT holder, until FROM locks WHERE name = $1 FOR UPDATE")
        .bind(&name)
        .fetch_optional(&mut *connection)
        .await?;
    if let Some(known) = known {
        let (by, until): (i64, i64) = (known.try_get(0)?, known.try_get(1)?);
        if until > now.0 && !leases.list_released().contains(&(name.clone(), by)) {
            return Ok(false);
        }
    }
    query(
        "INSERT INTO locks (name, holder, process, taken_at, until) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, process = excluded.process,
             taken_at = excluded.taken_at, until = excluded.until",
    )
    .bind(&name)
    .bind(holder)
    .bind(process)
    .bind(now.0)
    .bind(lease_end(now.0))
    .execute(&mut *connection)
    .await?;
    if let Some((campaign, account)) = runs {
        query("UPDATE runs SET owner = NULL WHERE campaign = $1 AND account = $2 AND owner IS NOT NULL")
            .bind(campaign)
            .bind(account)
            .execute(connection)
            .await?;
    }
    Ok(true)
}

/// Until when a lock is granted that was asked for at a time.
fn lease_end(now: i64) -> i64 {
    now.saturating_add(i64::try_from(LEASE_DURATION.as_micros()).unwrap_or(i64::MAX))
}
