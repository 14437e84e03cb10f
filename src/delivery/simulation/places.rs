//! The places at which processes sit that send a run together: a lock each, which a process renews, and loses when it
//! does not, as where several machines use one database.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::disk::SimulatedDisk;
use super::life::{ProcessLife, elapsed, wall_now};
use crate::ledger::Epoch;

/// How long the database leaves a place to whoever is at it, without hearing of them.
pub(super) const GRANT_TIME: Duration = Duration::from_secs(30);
/// How long a process relies on it.
const RELIANCE_TIME: Duration = Duration::from_secs(25);
/// How often it says that it is there.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(8);

/// Who is where, as it is on the disk.
#[derive(Default)]
pub(super) struct SeatLocks {
    locks: BTreeMap<u32, SeatLock>,
    taken: u64,
}

struct SeatLock {
    holder: u64,
    life: Arc<ProcessLife>,
    until: Duration,
}

impl SeatLock {
    /// Whether it is somebody's: of a process that is dead it is nobody's at once.
    fn is_held(&self) -> bool {
        !self.life.is_over() && self.until > elapsed()
    }
}

impl SeatLocks {
    pub(super) fn is_occupied(&self, place: u32) -> bool {
        self.locks.get(&place).is_some_and(SeatLock::is_held)
    }

    /// Takes a place where nobody is; gives the number under which it is had.
    pub(super) fn take_seat(&mut self, place: u32, life: &Arc<ProcessLife>) -> u64 {
        self.taken += 1;
        let (holder, life, until) = (self.taken, Arc::clone(life), elapsed() + GRANT_TIME);
        self.locks.insert(place, SeatLock { holder, life, until });
        holder
    }

    /// The first place where nobody is.
    pub(super) fn find_free(&self) -> u32 {
        (0..).find(|place| !self.is_occupied(*place)).expect("there is always another place")
    }

    /// Whether somebody who is alive was at one of these and is not heard of any more.
    pub(super) fn has_sleeper_at(&self, places: &[u32]) -> bool {
        places.iter().any(|place| self.locks.get(place).is_some_and(|lock| !lock.life.is_over() && !lock.is_held()))
    }

    /// Takes these from whoever had them, for nobody.
    pub(super) fn release_all(&mut self, places: &[u32]) {
        self.locks.retain(|place, _| !places.contains(place));
    }

    /// Whether whoever has a place under this number has it still.
    pub(super) fn is_held_by(&self, place: u32, holder: u64) -> bool {
        self.locks.get(&place).is_some_and(|lock| lock.holder == holder)
    }

    fn renew_lock(&mut self, place: u32, holder: u64) -> bool {
        let lock = self.locks.get_mut(&place).filter(|lock| lock.holder == holder);
        lock.map(|lock| lock.until = elapsed() + GRANT_TIME).is_some()
    }

    fn release(&mut self, place: u32, holder: u64) {
        if self.is_held_by(place, holder) {
            self.locks.remove(&place);
        }
    }
}

/// A place that a process has.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldSeat {
    pub(super) place: u32,
    pub(super) holder: u64,
    /// When it was last heard of there, by both clocks of the process; nothing once it is known to be lost.
    asked: Option<(Duration, Timestamp)>,
}

/// The places that a process has, by the rights that go by them.
#[derive(Default)]
pub(super) struct HeldSeats(Mutex<HashMap<Epoch, HeldSeat>>);

impl HeldSeats {
    /// Keeps that a place was taken at this moment, by which a right goes.
    pub(super) fn record_taken(&self, epoch: Epoch, place: u32, holder: u64) {
        let asked = Some((elapsed(), wall_now()));
        self.0.lock().unwrap().insert(epoch, HeldSeat { place, holder, asked });
    }

    /// Whether a process may rely on a right; nothing where it goes by no place.
    pub(super) fn is_reliable(&self, epoch: Epoch) -> Option<bool> {
        let held = self.0.lock().unwrap().get(&epoch).copied()?;
        Some(held.asked.is_some_and(|(steady, told)| {
            let by_wall = Duration::try_from(wall_now().duration_since(told)).unwrap_or_default();
            (elapsed() - steady).max(by_wall) < RELIANCE_TIME
        }))
    }

    /// The place that a right goes by, and the number that it is had under.
    pub(super) fn find_place(&self, epoch: Epoch) -> Option<(u32, u64)> {
        self.0.lock().unwrap().get(&epoch).map(|held| (held.place, held.holder))
    }

    /// Renews whatever is had, and learns what is lost.
    pub(super) fn renew_all(&self, places: &mut SeatLocks) {
        for held in self.0.lock().unwrap().values_mut().filter(|held| held.asked.is_some()) {
            held.asked = places.renew_lock(held.place, held.holder).then(|| (elapsed(), wall_now()));
        }
    }

    fn release(&self, holder: u64) {
        self.0.lock().unwrap().retain(|_, held| held.holder != holder);
    }
}

/// A place that is had until this is dropped.
pub(super) struct SeatGuard {
    place: u32,
    holder: u64,
    disk: Arc<Mutex<SimulatedDisk>>,
    leases: Arc<HeldSeats>,
    renewals: Option<AbortOnDropHandle<()>>,
}

impl SeatGuard {
    /// A place that was taken for the moment.
    pub(super) fn unrenewed(
        (place, holder): (u32, u64),
        disk: &Arc<Mutex<SimulatedDisk>>,
        leases: &Arc<HeldSeats>,
    ) -> Self {
        Self { place, holder, disk: Arc::clone(disk), leases: Arc::clone(leases), renewals: None }
    }

    /// Whether nobody else took it meanwhile.
    pub(super) fn is_still_held(&self, places: &SeatLocks) -> bool {
        places.is_held_by(self.place, self.holder)
    }

    /// The same, of which the disk hears as long as its process is awake.
    pub(super) fn with_renewal(mut self, life: &Arc<ProcessLife>) -> Self {
        let (life, disk, leases) = (Arc::clone(life), Arc::clone(&self.disk), Arc::clone(&self.leases));
        let renewals = tokio::spawn(async move {
            loop {
                sleep(RENEWAL_INTERVAL).await;
                life.wait_awake().await;
                leases.renew_all(&mut disk.lock().unwrap().places);
            }
        });
        self.renewals = Some(AbortOnDropHandle::new(renewals));
        self
    }
}

impl Drop for SeatGuard {
    fn drop(&mut self) {
        self.leases.release(self.holder);
        self.disk.lock().unwrap().places.release(self.place, self.holder);
    }
}
