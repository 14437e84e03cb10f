//! Shards of a shared run in the simulated ledger: correct, or with a planted mistake.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::judge::Sighting;
use super::ledger::ProcessLedger;
use super::mistakes::Mistake;
use super::process::{ProcessLife, SimulatedDisk, elapsed, wall_now};
use campaign_ledger::{Epoch, LedgerError, LedgerFuture, RowSpan, Run, RunId, ShardDraw, ShardStore, ShardWorker};

impl SimulatedDisk {
    /// Whether a process may send `rows`: any rows if the last run is not shared, otherwise only rows of the process's
    /// own shards.
    pub(super) fn may_send(&self, life: &Arc<ProcessLife>, rows: RowSpan) -> bool {
        let Some(stored) = self.contents.stored_runs().last().filter(|stored| stored.run.sharding.is_some()) else {
            return true;
        };
        let holder = stored.find_shard_epoch(rows).and_then(|epoch| self.workers.get(&epoch));
        holder.is_some_and(|holder| Arc::ptr_eq(holder, life))
    }

    /// Whether acceptance by the gateway is proven, or no other live worker has shards of the last run.
    pub(super) fn is_proven_or_alone(&self, life: &Arc<ProcessLife>) -> bool {
        let Some(run) = self.contents.stored_runs().last().map(|stored| &stored.run) else { return true };
        run.sharding.as_ref().is_none_or(|sharing| sharing.proven) || !self.has_other_workers(run.key, life)
    }

    /// Whether another live worker has shards of a run.
    pub(super) fn has_other_workers(&self, run: RunId, life: &Arc<ProcessLife>) -> bool {
        let others = self.workers.iter().filter(|(_, other)| !Arc::ptr_eq(other, life) && !other.is_over());
        let mut have_shards = others.map(|(epoch, _)| self.stored_run(run).has_shards(*epoch));
        have_shards.any(|has| has)
    }

    /// The epoch of the worker whose shard contains `rows`.
    pub(super) fn find_holder(&self, run: RunId, rows: RowSpan) -> Option<Epoch> {
        self.stored_run(run).find_shard_epoch(rows)
    }

    /// The places with shards of a run but without a live worker, except the place `except`.
    pub(super) fn abandoned_places(&self, run: RunId, except: Option<u32>) -> Vec<u32> {
        let is_abandoned = |place: &u32| Some(*place) != except && !self.places.is_occupied(*place);
        let mut abandoned: Vec<u32> = self.stored_run(run).list_shard_places().filter(is_abandoned).collect();
        abandoned.sort_unstable();
        abandoned.dedup();
        abandoned
    }

    /// Draws at most `rows` rows for a worker, with the planted mistake if it affects draws. `abandoned` are the places
    /// whose shards may be taken over; `None` if the draw takes over no shards.
    fn draw_shard_rows(
        &mut self,
        now: i64,
        (worker, rows): (&ShardWorker, u32),
        abandoned: Option<&[u32]>,
        mistake: Option<Mistake>,
    ) -> Result<ShardDraw, LedgerError> {
        let is_occupied = |place| abandoned.is_none_or(|abandoned| !abandoned.contains(&place));
        let stored = self.contents.stored_run_mut(worker.lease.run)?;
        if mistake == Some(Mistake::ShardWithoutDoubt) {
            let abandoned_rows: Vec<RowSpan> = stored.list_shards_at(|place| !is_occupied(place)).collect();
            stored.envelopes.retain(|_, envelope| {
                let row = envelope.rows.first().map(|sent| sent.row);
                envelope.settled.is_some()
                    || !abandoned_rows.iter().any(|rows| row.is_some_and(|row| rows.contains(row)))
            });
        }
        let actual_sharding = stored.run.sharding.clone();
        if let Some(sharing) = stored.run.sharding.as_mut().filter(|_| mistake == Some(Mistake::SharingUnnumbered)) {
            sharing.id = worker.sharding;
        }
        let shard = self.contents.draw_shard(now, worker, (rows, abandoned.is_some()), is_occupied);
        self.contents.stored_run_mut(worker.lease.run)?.run.sharding = actual_sharding;
        shard
    }
}

impl ProcessLedger {
    /// Renews the places of this process if it might have lost the place of `epoch` while it was suspended. Returns
    /// whether the process still has this place.
    pub(super) async fn renew_if_lost(&self, epoch: Epoch) -> Result<bool, LedgerError> {
        if self.leases.is_reliable(epoch) == Some(false) {
            let renew = |disk: &mut SimulatedDisk, _| {
                self.leases.renew_all(&mut disk.places);
                Ok(())
            };
            self.write(renew).await?;
        }
        Ok(self.leases.is_reliable(epoch) != Some(false))
    }

    /// Takes the abandoned places of a run, except the worker's own place, until the returned guards are dropped.
    async fn take_abandoned(&self, worker: &ShardWorker) -> Result<(Vec<u32>, Vec<PlaceGuard>), LedgerError> {
        self.life.take_step().await;
        if self.disk().abandoned_places(worker.lease.run, Some(worker.place)).is_empty() {
            return Ok(<_>::default());
        }
        let take_all = |disk: &mut SimulatedDisk, _| {
            let abandoned = disk.abandoned_places(worker.lease.run, Some(worker.place));
            if disk.places.has_stalled_holder(&abandoned) {
                disk.record_sighting(Sighting::SuspendedPastItsLease);
            }
            let take = |place: &u32| {
                PlaceGuard::without_renewal(
                    (*place, disk.places.lock_place(*place, &self.life)),
                    &self.disk,
                    &self.leases,
                )
            };
            let guards = abandoned.iter().map(take).collect();
            Ok((abandoned, guards))
        };
        self.write(take_all).await
    }
}

impl ShardStore for ProcessLedger {
    fn register_worker<'a>(&'a self, run: &'a Run, by: String) -> LedgerFuture<'a, Option<ShardWorker>> {
        Box::pin(async move {
            if run.sharding.is_none() {
                return Ok(None);
            }
            self.write(|disk, _| {
                let place = disk.places.find_free_place();
                if disk.places.has_stalled_holder(&[place]) {
                    disk.record_sighting(Sighting::SuspendedPastItsLease);
                }
                let holder = disk.places.lock_place(place, &self.life);
                let guard =
                    PlaceGuard::without_renewal((place, holder), &self.disk, &self.leases).with_renewal(&self.life);
                let worker = disk.contents.register_worker(run, (place, by), guard);
                if let Some(worker) = &worker {
                    self.leases.record_acquisition(worker.lease.epoch, place, holder);
                    disk.workers.insert(worker.lease.epoch, Arc::clone(&self.life));
                }
                Ok(worker)
            })
            .await
        })
    }

    fn draw_shard<'a>(
        &'a self,
        worker: &'a ShardWorker,
        rows: u32,
        takes_abandoned: bool,
    ) -> LedgerFuture<'a, ShardDraw> {
        Box::pin(async move {
            let abandoned = if takes_abandoned { Some(self.take_abandoned(worker).await?) } else { None };
            let (places, guards) = abandoned.unzip();
            if !self.renew_if_lost(worker.lease.epoch).await? {
                return Ok(ShardDraw::Ended);
            }
            self.write(|disk, now| {
                // The process might have been suspended since it checked.
                let place = self.leases.find_place(worker.lease.epoch);
                let is_own = place.is_some_and(|(place, holder)| disk.places.is_held_by(place, holder));
                if is_own && guards.iter().flatten().all(|guard| guard.is_still_held(&disk.places)) {
                    disk.draw_shard_rows(now, (worker, rows), places.as_deref(), self.mistake)
                } else {
                    Ok(ShardDraw::Ended)
                }
            })
            .await
        })
    }
}

/// The time for which the database keeps the lock on a place without a heartbeat.
pub(super) const GRANT_TIME: Duration = Duration::from_secs(30);
/// The time for which a process relies on its place.
const RELIANCE_TIME: Duration = Duration::from_secs(25);
/// The interval of heartbeats.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(8);

/// The holders of places, as stored on the disk.
#[derive(Default)]
pub(super) struct PlaceLocks {
    locks: BTreeMap<u32, PlaceLock>,
    last_holder: u64,
}

struct PlaceLock {
    holder: u64,
    life: Arc<ProcessLife>,
    until: Duration,
}

impl PlaceLock {
    /// Whether the lock is held. A dead process loses the lock at once.
    fn is_held(&self) -> bool {
        !self.life.is_over() && self.until > elapsed()
    }
}

impl PlaceLocks {
    pub(super) fn is_occupied(&self, place: u32) -> bool {
        self.locks.get(&place).is_some_and(PlaceLock::is_held)
    }

    /// Takes a free place. Returns the number of the new holder.
    pub(super) fn lock_place(&mut self, place: u32, life: &Arc<ProcessLife>) -> u64 {
        self.last_holder += 1;
        let (holder, life, until) = (self.last_holder, Arc::clone(life), elapsed() + GRANT_TIME);
        self.locks.insert(place, PlaceLock { holder, life, until });
        holder
    }

    /// The first free place.
    pub(super) fn find_free_place(&self) -> u32 {
        (0..).find(|place| !self.is_occupied(*place)).expect("there is always another place")
    }

    /// Whether a live process that holds one of these places has stopped its heartbeat.
    pub(super) fn has_stalled_holder(&self, places: &[u32]) -> bool {
        places.iter().any(|place| self.locks.get(place).is_some_and(|lock| !lock.life.is_over() && !lock.is_held()))
    }

    /// Releases these places.
    pub(super) fn release_all(&mut self, places: &[u32]) {
        self.locks.retain(|place, _| !places.contains(place));
    }

    /// Whether this holder still has the place.
    pub(super) fn is_held_by(&self, place: u32, holder: u64) -> bool {
        self.locks.get(&place).is_some_and(|lock| lock.holder == holder)
    }

    fn renew_lock(&mut self, place: u32, holder: u64) -> bool {
        let Some(lock) = self.locks.get_mut(&place).filter(|lock| lock.holder == holder) else { return false };
        lock.until = elapsed() + GRANT_TIME;
        true
    }

    fn release(&mut self, place: u32, holder: u64) {
        if self.is_held_by(place, holder) {
            self.locks.remove(&place);
        }
    }
}

/// A place of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldPlace {
    pub(super) place: u32,
    pub(super) holder: u64,
    /// The last heartbeat, by both clocks of the process. `None` once the place is known to be lost.
    renewed_at: Option<(Duration, Timestamp)>,
}

/// The places of a process by epoch.
#[derive(Default)]
pub(super) struct HeldPlaces(Mutex<HashMap<Epoch, HeldPlace>>);

impl HeldPlaces {
    /// Records that a place was taken now, and under which epoch.
    pub(super) fn record_acquisition(&self, epoch: Epoch, place: u32, holder: u64) {
        let renewed_at = Some((elapsed(), wall_now()));
        self.0.lock().unwrap().insert(epoch, HeldPlace { place, holder, renewed_at });
    }

    /// Whether the process may rely on the place of an epoch. `None` if the epoch has no place.
    pub(super) fn is_reliable(&self, epoch: Epoch) -> Option<bool> {
        let lease = self.0.lock().unwrap().get(&epoch).copied()?;
        Some(lease.renewed_at.is_some_and(|(elapsed_then, wall_then)| {
            let wall_elapsed = Duration::try_from(wall_now().duration_since(wall_then)).unwrap_or_default();
            (elapsed() - elapsed_then).max(wall_elapsed) < RELIANCE_TIME
        }))
    }

    /// The place of an epoch, and its holder number.
    pub(super) fn find_place(&self, epoch: Epoch) -> Option<(u32, u64)> {
        self.0.lock().unwrap().get(&epoch).map(|lease| (lease.place, lease.holder))
    }

    /// Renews all places, and records which places were lost.
    pub(super) fn renew_all(&self, places: &mut PlaceLocks) {
        for lease in self.0.lock().unwrap().values_mut().filter(|lease| lease.renewed_at.is_some()) {
            lease.renewed_at = places.renew_lock(lease.place, lease.holder).then(|| (elapsed(), wall_now()));
        }
    }

    fn release(&self, holder: u64) {
        self.0.lock().unwrap().retain(|_, lease| lease.holder != holder);
    }
}

/// A place that is released on drop.
pub(super) struct PlaceGuard {
    place: u32,
    holder: u64,
    disk: Arc<Mutex<SimulatedDisk>>,
    leases: Arc<HeldPlaces>,
    renewals: Option<AbortOnDropHandle<()>>,
}

impl PlaceGuard {
    /// A place that is held without a heartbeat.
    pub(super) fn without_renewal(
        (place, holder): (u32, u64),
        disk: &Arc<Mutex<SimulatedDisk>>,
        leases: &Arc<HeldPlaces>,
    ) -> Self {
        Self { place, holder, disk: Arc::clone(disk), leases: Arc::clone(leases), renewals: None }
    }

    /// Whether no other process has taken the place.
    pub(super) fn is_still_held(&self, places: &PlaceLocks) -> bool {
        places.is_held_by(self.place, self.holder)
    }

    /// Adds a heartbeat that renews the place while the process is awake.
    pub(super) fn with_renewal(mut self, life: &Arc<ProcessLife>) -> Self {
        let (life, disk, leases) = (Arc::clone(life), Arc::clone(&self.disk), Arc::clone(&self.leases));
        let renewals = tokio::spawn(async move {
            loop {
                sleep(RENEWAL_INTERVAL).await;
                life.wait_until_awake().await;
                leases.renew_all(&mut disk.lock().unwrap().places);
            }
        });
        self.renewals = Some(AbortOnDropHandle::new(renewals));
        self
    }
}

impl Drop for PlaceGuard {
    fn drop(&mut self) {
        self.leases.release(self.holder);
        self.disk.lock().unwrap().places.release(self.place, self.holder);
    }
}
