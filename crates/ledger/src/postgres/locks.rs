//! Locks with leases, their renewal, and the detection of ended processes on this machine.
//!
//! A process measures its leases with its own clocks, starting before the request, and treats each lease as shorter
//! than the lease that the database granted. Therefore, it is the first to know that a lease is lost. Each process also
//! locks its own file next to the high-water mark. So if a process is killed, other processes on its machine need not
//! wait for its lease to expire.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{PgPool, Row as _};
use tokio::sync::OnceCell;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::ledger::PostgresLedger;
use super::sql::{LockProof, Now, StatementError};
use super::sql::{query, read_ledger};
use super::transaction;
use crate::{Epoch, LedgerError, run};
use campaign_core::private::{self, ExistingFile};

/// The pause between attempts to take a lock.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// The maximum number of attempts to take a lock.
const MAX_ATTEMPTS: u32 = 10;

/// A held lock. Dropping the value releases the lock.
pub(crate) struct Lock {
    name: String,
    holder: i64,
    locks: Locks,
}

/// The locks of this process, and the tasks that maintain them.
#[derive(Clone)]
pub(super) struct Locks {
    pub(super) leases: Leases,
    pool: PgPool,
    /// Database updates that are still running.
    tasks: TaskTracker,
    place: Arc<str>,
    /// The file of the mark. Processes of this machine put their files next to it.
    mark: PathBuf,
    presence: Arc<OnceCell<Presence>>,
}

impl Locks {
    pub(super) fn new(pool: PgPool, place: Arc<str>, mark: PathBuf) -> Self {
        let (leases, tasks, presence) = (Leases::default(), TaskTracker::new(), Arc::default());
        Self { leases, pool, tasks, place, mark, presence }
    }

    /// Returns the ID of this process, and registers the process on this machine at the first call.
    async fn register_process(&self) -> Result<i64, LedgerError> {
        let presence = self.presence.get_or_try_init(async || Presence::announce_process(&self.mark)).await;
        presence.map(Presence::process).map_err(|error| {
            let mark = self.mark.display();
            let reason = format!("cannot write a file next to its high-water mark `{mark}`: {error}");
            LedgerError::from_storage(&self.place, &reason)
        })
    }

    /// Renews leases until the returned handle is dropped.
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

    /// Renews the leases of this process and records which of them were lost.
    pub(super) async fn renew_leases(&self) -> sqlx::Result<()> {
        let locks = self.leases.list_held_locks();
        if locks.is_empty() {
            return Ok(());
        }
        let asked_at = ClockReading::now();
        let mut transaction = transaction::begin_unordered_write(&self.pool).await?;
        let now = transaction::load_time(&mut transaction).await?;
        let mut renewals = Vec::with_capacity(locks.len());
        for (name, holder) in locks {
            let renewed = query("UPDATE locks SET until = $1 WHERE name = $2 AND holder = $3")
                .bind(lease_end(now))
                .bind(&name)
                .bind(holder)
                .execute(&mut *transaction)
                .await?;
            renewals.push((name, holder, renewed.rows_affected() > 0));
        }
        transaction.commit().await?;
        for (name, holder, is_held) in renewals {
            self.leases.record_renewal(&name, holder, is_held.then_some(asked_at));
        }
        Ok(())
    }

    /// Waits until the released locks are recorded in the database.
    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        // If the database is not up to date, the presence file is kept: because it is unlocked, the other processes on
        // this machine see that this process has ended.
        let is_database_current =
            self.leases.list_held_locks().is_empty() && self.leases.list_released_locks().is_empty();
        if let Some(presence) = self.presence.get().filter(|_| is_database_current) {
            presence.withdraw();
        }
    }

    /// Runs a task in the background. Only closing the ledger waits for it.
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
        locks.leases.record_release(&name, holder);
        // If this fails, other processes wait until the lease expires.
        self.locks.spawn_cleanup(async move {
            let mut transaction = transaction::begin_unordered_write(&locks.pool).await?;
            query("DELETE FROM locks WHERE name = $1 AND holder = $2")
                .bind(&name)
                .bind(holder)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            locks.leases.forget_release(&name, holder);
            Ok(())
        });
    }
}

impl PostgresLedger {
    /// Locks a campaign on an account. `None` while another process holds the lock.
    ///
    /// Also removes the claims of an ended process on runs of this campaign, in the same transaction.
    pub(super) async fn try_lock_campaign(&self, campaign: &str, account: &str) -> Result<Option<Lock>, LedgerError> {
        let name = run::lock_name(campaign, account);
        let runs = (campaign.to_owned(), account.to_owned());
        for _ in 0..MAX_ATTEMPTS {
            if let Some(lock) = self.take_lock(&name, Some(runs.clone())).await? {
                return Ok(Some(lock));
            }
            // Another process might be releasing the lock right now; an owner would keep it.
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        Ok(None)
    }

    /// Takes a lock if it is free now.
    pub(super) async fn try_lock(&self, name: &str) -> Result<Option<Lock>, LedgerError> {
        self.take_lock(name, None).await
    }

    async fn take_lock(&self, name: &str, runs: Option<(String, String)>) -> Result<Option<Lock>, LedgerError> {
        let (asked_at, holder, process) = (ClockReading::now(), rand::random(), self.locks.register_process().await?);
        let ended = list_ended_processes(&self.locks.mark);
        let request = LockRequest { name: name.to_owned(), holder, process, runs };
        let (leases, ended_processes) = (self.locks.leases.clone(), ended.clone());
        let acquired = self.write(move |connection, now| {
            let (request, leases, ended_processes) = (request.clone(), leases.clone(), ended_processes.clone());
            Box::pin(async move {
                release_locks_of_ended_processes(&mut *connection, &ended_processes).await?;
                try_take_lock(connection, now, leases, request).await
            })
        });
        let acquired = acquired.await?;
        remove_ended_process_files(&self.locks.mark, &ended);
        if !acquired {
            return Ok(None);
        }
        self.locks.leases.record_acquisition(name, holder, asked_at);
        Ok(Some(Lock { name: name.to_owned(), holder, locks: self.locks.clone() }))
    }

    /// Whether any process holds a lock.
    pub(super) async fn is_locked(&self, name: &str) -> Result<bool, LedgerError> {
        Ok(self.locked_since(name).await?.is_some())
    }

    /// The time at which the current holder took a lock, if any process holds it.
    pub(super) async fn locked_since(&self, name: &str) -> Result<Option<Timestamp>, LedgerError> {
        // The released locks are read before the query. Otherwise, a release that the database records only after the
        // query would be missed.
        let released = self.locks.leases.list_released_locks();
        let owner = read_ledger!(self, find_lock_owner, name)?;
        let owner = owner.filter(|(holder, process, _)| {
            !released.contains(&(name.to_owned(), *holder)) && !list_ended_processes(&self.locks.mark).contains(process)
        });
        Ok(owner.and_then(|(.., since)| Timestamp::from_microsecond(since).ok()))
    }

    /// Binds a lease to a lock.
    pub(super) fn bind_lease(&self, epoch: Epoch, name: &str) {
        self.locks.leases.bind_epoch(epoch, name);
    }

    /// Renews the leases of this process if this lease might have expired, for example after a suspension.
    pub(super) async fn renew_if_stale(&self, epoch: Epoch) -> Result<(), LedgerError> {
        if self.holds_lease(epoch) {
            return Ok(());
        }
        self.to_ledger_result(
            self.retry_while_unavailable(|| self.locks.renew_leases()).await.map_err(StatementError::Sql),
        )
    }

    /// The holder numbers of this lease's lock and of these other locks.
    pub(super) fn lock_proof(&self, epoch: Epoch, others: &[Lock]) -> LockProof {
        let lock = self.locks.leases.find_lock(epoch);
        lock.into_iter().map(|(_, holder)| holder).chain(others.iter().map(|lock| lock.holder)).collect()
    }

    /// Whether this process may send under this lease now.
    pub(super) fn holds_lease(&self, epoch: Epoch) -> bool {
        self.locks.leases.is_valid(epoch, ClockReading::now())
    }
}

/// The holder number and the process of a lock, and the time when the lock was taken.
async fn find_lock_owner(reader: &mut PgConnection, name: &str) -> Result<Option<(i64, i64, i64)>, StatementError> {
    let now = transaction::load_time(reader).await?;
    let record = query("SELECT holder, process, taken_at FROM locks WHERE name = $1 AND until > $2")
        .bind(name)
        .bind(now)
        .fetch_optional(reader)
        .await?;
    let read_owner = |lock: PgRow| Ok((lock.try_get(0)?, lock.try_get(1)?, lock.try_get(2)?));
    record.map(read_owner).transpose().map_err(StatementError::Sql)
}

#[derive(Clone)]
struct LockRequest {
    name: String,
    holder: i64,
    process: i64,
    /// The campaign and account whose runs depend on the lock.
    runs: Option<(String, String)>,
}

/// Releases the locks of processes that ended without releasing them.
async fn release_locks_of_ended_processes(connection: &mut PgConnection, ended: &[i64]) -> Result<(), StatementError> {
    for process in ended {
        query("DELETE FROM locks WHERE process = $1").bind(process).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Takes a free, released or expired lock, and removes the previous holder's claims on the campaign's runs. Returns
/// whether the lock was taken.
async fn try_take_lock(
    connection: &mut PgConnection,
    now: Now,
    leases: Leases,
    LockRequest { name, holder, process, runs }: LockRequest,
) -> Result<bool, StatementError> {
    let record = query("SELECT holder, until FROM locks WHERE name = $1 FOR UPDATE")
        .bind(&name)
        .fetch_optional(&mut *connection)
        .await?;
    if let Some(record) = record {
        let (current_holder, until): (i64, i64) = (record.try_get(0)?, record.try_get(1)?);
        if until > now.0 && !leases.list_released_locks().contains(&(name.clone(), current_holder)) {
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

/// The end of a lease that begins now, in microseconds since 1970.
fn lease_end(now: i64) -> i64 {
    now.saturating_add(i64::try_from(LEASE_DURATION.as_micros()).unwrap_or(i64::MAX))
}

/// The time for which the database grants a lock without a renewal.
pub(super) const LEASE_DURATION: Duration = Duration::from_secs(30);
/// The time before the end of a lease at which the owner stops relying on the lock.
const SAFETY_MARGIN: Duration = Duration::from_secs(5);
/// The interval at which an owner renews its leases.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(8);

/// Readings of the monotonic clock, which stops while a machine sleeps, and of the wall clock, which does not stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    steady: Instant,
    wall: SystemTime,
}

impl ClockReading {
    pub(super) fn now() -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() }
    }

    /// Whether a lease that was granted at this moment is still valid at `now`. If the wall clock was set back, only
    /// the monotonic clock counts.
    fn is_within_grant(self, now: Self) -> bool {
        let steady = now.steady.saturating_duration_since(self.steady);
        let wall = now.wall.duration_since(self.wall).unwrap_or_default();
        steady.max(wall) < LEASE_DURATION - SAFETY_MARGIN
    }
}

/// A lock of this process with its holder number.
#[derive(Clone, Copy, Debug)]
struct HeldLock {
    holder: i64,
    /// The time at which the lease was last requested or renewed; `None` once it is lost.
    asked_at: Option<ClockReading>,
}

/// The locks of this process and the leases that depend on them.
#[derive(Clone, Default)]
pub(super) struct Leases(Arc<Mutex<LeaseTable>>);

#[derive(Default)]
struct LeaseTable {
    held_locks: HashMap<String, HeldLock>,
    /// The lock of each lease.
    epochs: HashMap<i64, (String, i64)>,
    /// Released locks that the database might not know about yet.
    released: Vec<(String, i64)>,
}

impl Leases {
    /// Records that a lock was acquired.
    pub(super) fn record_acquisition(&self, name: &str, holder: i64, asked_at: ClockReading) {
        self.lock_table().held_locks.insert(name.to_owned(), HeldLock { holder, asked_at: Some(asked_at) });
    }

    /// Binds a lease to a lock.
    pub(super) fn bind_epoch(&self, epoch: Epoch, name: &str) {
        let mut table = self.lock_table();
        if let Some(lock) = table.held_locks.get(name).copied() {
            table.epochs.insert(epoch.0, (name.to_owned(), lock.holder));
        }
    }

    /// The name and holder number of a lease's lock. `None` if the lease is not bound to a lock.
    pub(super) fn find_lock(&self, epoch: Epoch) -> Option<(String, i64)> {
        self.lock_table().epochs.get(&epoch.0).cloned()
    }

    /// Records that a lock was released.
    pub(super) fn record_release(&self, name: &str, holder: i64) {
        let mut table = self.lock_table();
        table.held_locks.retain(|other, lock| other != name || lock.holder != holder);
        table.epochs.retain(|_, (other, other_holder)| other != name || *other_holder != holder);
        table.released.push((name.to_owned(), holder));
    }

    /// Forgets a released lock, because the database has recorded the release.
    pub(super) fn forget_release(&self, name: &str, holder: i64) {
        self.lock_table().released.retain(|(other, other_holder)| other != name || *other_holder != holder);
    }

    /// Released locks that the database might still consider held.
    pub(super) fn list_released_locks(&self) -> Vec<(String, i64)> {
        self.lock_table().released.clone()
    }

    /// The locks that this process holds and has not lost.
    pub(super) fn list_held_locks(&self) -> Vec<(String, i64)> {
        let table = self.lock_table();
        table
            .held_locks
            .iter()
            .filter(|(_, lock)| lock.asked_at.is_some())
            .map(|(name, lock)| (name.clone(), lock.holder))
            .collect()
    }

    /// Records the renewal or loss of a lock.
    pub(super) fn record_renewal(&self, name: &str, holder: i64, asked_at: Option<ClockReading>) {
        if let Some(lock) = self.lock_table().held_locks.get_mut(name).filter(|lock| lock.holder == holder) {
            lock.asked_at = asked_at.filter(|_| lock.asked_at.is_some());
        }
    }

    /// Whether messages may be sent under this lease, as far as this process knows without querying the database.
    pub(super) fn is_valid(&self, epoch: Epoch, now: ClockReading) -> bool {
        let table = self.lock_table();
        let Some((name, holder)) = table.epochs.get(&epoch.0) else { return false };
        let lock = table.held_locks.get(name).filter(|lock| lock.holder == *holder);
        lock.and_then(|lock| lock.asked_at).is_some_and(|asked_at| asked_at.is_within_grant(now))
    }

    fn lock_table(&self) -> MutexGuard<'_, LeaseTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The start of a process file's extension. The ID of the process follows.
const EXTENSION_PREFIX: &str = "process-";

/// The registration of this process on this machine.
pub(super) struct Presence {
    process: i64,
    path: PathBuf,
    _file: File,
}

impl Presence {
    /// Registers this process next to the mark.
    pub(super) fn announce_process(mark: &Path) -> io::Result<Self> {
        let process = i64::from(rand::random::<u32>());
        let path = mark.with_extension(format!("{EXTENSION_PREFIX}{process}"));
        // The file is locked before it gets its name, so that other processes never see it unlocked.
        let unnamed = mark.with_extension(format!("new-{EXTENSION_PREFIX}{process}"));
        let file = private::open_file(&unnamed, ExistingFile::Truncate)?;
        file.lock()?;
        fs::rename(&unnamed, &path)?;
        Ok(Self { process, path, _file: file })
    }

    pub(super) fn process(&self) -> i64 {
        self.process
    }

    /// Withdraws the registration of this process, which must not hold any locks.
    pub(super) fn withdraw(&self) {
        // If the file cannot be removed, other processes see that it is unlocked.
        let _ = fs::remove_file(&self.path);
    }
}

/// The processes on this machine that ended without withdrawing their registration.
pub(super) fn list_ended_processes(mark: &Path) -> Vec<i64> {
    list_process_files(mark).into_iter().filter(|(_, path)| is_unlocked(path)).map(|(process, _)| process).collect()
}

/// Removes the files of ended processes.
pub(super) fn remove_ended_process_files(mark: &Path, ended: &[i64]) {
    for (_, path) in list_process_files(mark).into_iter().filter(|(process, _)| ended.contains(process)) {
        let _ = fs::remove_file(path);
    }
}

/// Lists the files of processes next to `mark`, each with the number of its process.
fn list_process_files(mark: &Path) -> Vec<(i64, PathBuf)> {
    let stem = mark.file_stem().unwrap_or_default().to_string_lossy();
    let prefix = format!("{stem}.{EXTENSION_PREFIX}");
    let entries = mark.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.strip_prefix(&prefix)?.parse().ok()?, entry.path()))
    });
    files.collect()
}

/// Whether a file is certainly not locked.
fn is_unlocked(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(moment: ClockReading, steady: u64, wall: u64) -> ClockReading {
        let (steady, wall) = (Duration::from_secs(steady), Duration::from_secs(wall));
        ClockReading { steady: moment.steady + steady, wall: moment.wall + wall }
    }

    #[test]
    fn process_gives_up_a_lease_before_the_database_does() {
        let (leases, now) = (Leases::default(), ClockReading::now());
        assert!(!leases.is_valid(Epoch(1), now), "unknown lease");
        leases.record_acquisition("sale", 7, now);
        leases.bind_epoch(Epoch(1), "sale");
        for (steady, wall, lasts) in [(0, 0, true), (24, 24, true), (25, 25, false), (1, 3_600, false), (26, 0, false)]
        {
            assert_eq!(leases.is_valid(Epoch(1), later(now, steady, wall)), lasts, "{steady} {wall}");
        }
        leases.record_renewal("sale", 7, Some(later(now, 20, 20)));
        assert!(leases.is_valid(Epoch(1), later(now, 40, 40)));
        leases.record_renewal("sale", 7, None);
        assert!(!leases.is_valid(Epoch(1), now), "another process holds it");
        leases.record_renewal("sale", 7, Some(now));
        assert!(!leases.is_valid(Epoch(1), now), "a lost lease stays lost");
        leases.record_acquisition("sale", 8, now);
        assert!(!leases.is_valid(Epoch(1), now), "a new lock is a new lease");
    }

    #[test]
    fn released_lock_invalidates_its_lease_immediately() {
        let (leases, now) = (Leases::default(), ClockReading::now());
        leases.record_acquisition("sale", 7, now);
        leases.bind_epoch(Epoch(1), "sale");
        leases.record_release("sale", 7);
        assert_eq!(leases.list_released_locks(), [("sale".to_owned(), 7)]);
        assert!(!leases.is_valid(Epoch(1), now));
        assert!(leases.list_held_locks().is_empty());
        leases.forget_release("sale", 7);
        assert!(leases.list_released_locks().is_empty());
    }

    #[test]
    fn ended_process_is_detected_by_its_unlocked_file() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("shared-1.mark");
        let other = Presence::announce_process(&folder.path().join("shared-2.mark")).unwrap();
        let here = Presence::announce_process(&mark).unwrap();
        assert!(list_ended_processes(&mark).is_empty());
        let leftover = mark.with_extension(format!("{EXTENSION_PREFIX}7"));
        fs::write(&leftover, "").unwrap();
        assert_eq!(list_ended_processes(&mark), [7]);
        remove_ended_process_files(&mark, &[7]);
        assert!(!leftover.exists() && here.path.exists() && other.path.exists());
        here.withdraw();
        assert!(!here.path.exists());
        drop(other);
        assert_eq!(list_ended_processes(&folder.path().join("shared-2.mark")).len(), 1, "it ended without withdrawing");
    }
}
