//! The places at which processes sit that send a run together: a lock each, which a process renews, and loses when it
//! does not, as where several machines use one database.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::disk::Disk;
use super::life::{Life, elapsed, wall};
use crate::ledger::Epoch;

/// How long the database leaves a place to whoever is at it, without hearing of them.
pub(super) const GRANTED: Duration = Duration::from_secs(30);
/// How long a process relies on it.
const RELIED: Duration = Duration::from_secs(25);
/// How often it says that it is there.
const RENEWED: Duration = Duration::from_secs(8);

/// Who is where, as it is on the disk.
#[derive(Default)]
pub(super) struct Places {
    locks: BTreeMap<u32, Lock>,
    taken: u64,
}

struct Lock {
    holder: u64,
    life: Arc<Life>,
    until: Duration,
}

impl Lock {
    /// Whether it is somebody's: of a process that is dead it is nobody's at once.
    fn holds(&self) -> bool {
        !self.life.is_over() && self.until > elapsed()
    }
}

impl Places {
    pub(super) fn is_there(&self, place: u32) -> bool {
        self.locks.get(&place).is_some_and(Lock::holds)
    }

    /// Takes a place where nobody is; gives the number under which it is had.
    pub(super) fn take(&mut self, place: u32, life: &Arc<Life>) -> u64 {
        self.taken += 1;
        let (holder, life, until) = (self.taken, Arc::clone(life), elapsed() + GRANTED);
        self.locks.insert(place, Lock { holder, life, until });
        holder
    }

    /// The first place where nobody is.
    pub(super) fn free(&self) -> u32 {
        (0..).find(|place| !self.is_there(*place)).expect("there is always another place")
    }

    /// Whether somebody who is alive was at one of these and is not heard of any more.
    pub(super) fn slept_at(&self, places: &[u32]) -> bool {
        places.iter().any(|place| self.locks.get(place).is_some_and(|lock| !lock.life.is_over() && !lock.holds()))
    }

    /// Takes these from whoever had them, for nobody.
    pub(super) fn shut(&mut self, places: &[u32]) {
        self.locks.retain(|place, _| !places.contains(place));
    }

    /// Whether whoever has a place under this number has it still.
    pub(super) fn has(&self, place: u32, holder: u64) -> bool {
        self.locks.get(&place).is_some_and(|lock| lock.holder == holder)
    }

    fn renew(&mut self, place: u32, holder: u64) -> bool {
        let lock = self.locks.get_mut(&place).filter(|lock| lock.holder == holder);
        lock.map(|lock| lock.until = elapsed() + GRANTED).is_some()
    }

    fn let_go(&mut self, place: u32, holder: u64) {
        if self.has(place, holder) {
            self.locks.remove(&place);
        }
    }
}

/// A place that a process has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) place: u32,
    pub(super) holder: u64,
    /// When it was last heard of there, by both clocks of the process; nothing once it is known to be lost.
    asked: Option<(Duration, Timestamp)>,
}

/// The places that a process has, by the rights that go by them.
#[derive(Default)]
pub(super) struct Leases(Mutex<HashMap<Epoch, Held>>);

impl Leases {
    /// Keeps that a place was taken at this moment, by which a right goes.
    pub(super) fn took(&self, epoch: Epoch, place: u32, holder: u64) {
        let asked = Some((elapsed(), wall()));
        self.0.lock().unwrap().insert(epoch, Held { place, holder, asked });
    }

    /// Whether a process may rely on a right; nothing where it goes by no place.
    pub(super) fn last(&self, epoch: Epoch) -> Option<bool> {
        let held = self.0.lock().unwrap().get(&epoch).copied()?;
        Some(held.asked.is_some_and(|(steady, told)| {
            let by_wall = Duration::try_from(wall().duration_since(told)).unwrap_or_default();
            (elapsed() - steady).max(by_wall) < RELIED
        }))
    }

    /// The place that a right goes by, and the number that it is had under.
    pub(super) fn place_of(&self, epoch: Epoch) -> Option<(u32, u64)> {
        self.0.lock().unwrap().get(&epoch).map(|held| (held.place, held.holder))
    }

    /// Renews whatever is had, and learns what is lost.
    pub(super) fn renew(&self, places: &mut Places) {
        for held in self.0.lock().unwrap().values_mut().filter(|held| held.asked.is_some()) {
            held.asked = places.renew(held.place, held.holder).then(|| (elapsed(), wall()));
        }
    }

    fn let_go(&self, holder: u64) {
        self.0.lock().unwrap().retain(|_, held| held.holder != holder);
    }
}

/// A place that is had until this is dropped.
pub(super) struct Sitting {
    place: u32,
    holder: u64,
    disk: Arc<Mutex<Disk>>,
    leases: Arc<Leases>,
    renewals: Option<AbortOnDropHandle<()>>,
}

impl Sitting {
    /// A place that was taken for the moment.
    pub(super) fn briefly((place, holder): (u32, u64), disk: &Arc<Mutex<Disk>>, leases: &Arc<Leases>) -> Self {
        Self { place, holder, disk: Arc::clone(disk), leases: Arc::clone(leases), renewals: None }
    }

    /// Whether nobody else took it meanwhile.
    pub(super) fn is_had(&self, places: &Places) -> bool {
        places.has(self.place, self.holder)
    }

    /// The same, of which the disk hears as long as its process is awake.
    pub(super) fn renewed(mut self, life: &Arc<Life>) -> Self {
        let (life, disk, leases) = (Arc::clone(life), Arc::clone(&self.disk), Arc::clone(&self.leases));
        let renewals = tokio::spawn(async move {
            loop {
                sleep(RENEWED).await;
                life.awake().await;
                leases.renew(&mut disk.lock().unwrap().places);
            }
        });
        self.renewals = Some(AbortOnDropHandle::new(renewals));
        self
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        self.leases.let_go(self.holder);
        self.disk.lock().unwrap().places.let_go(self.place, self.holder);
    }
}
