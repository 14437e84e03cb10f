//! How long this process still has what it locked: counted from before it asked, by its own clocks, and shorter than the
//! database grants it, so that it knows first that it lost something.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::ledger::Epoch;

/// How long the database leaves a lock to whoever has it, without hearing of them.
pub(super) const LEASE_DURATION: Duration = Duration::from_secs(30);
/// How much earlier than that its owner does not rely on it any more.
const SAFETY_MARGIN: Duration = Duration::from_secs(5);
/// How often an owner says that it is there.
pub(super) const RENEWAL_INTERVAL: Duration = Duration::from_secs(8);

/// A moment by the clock that stands still while a machine sleeps, and by the one that does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockReading {
    steady: Instant,
    wall: SystemTime,
}

impl ClockReading {
    pub(super) fn now() -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() }
    }

    /// Whether what was granted at this moment may still be relied on; a clock that was set back says nothing.
    fn is_within_grant(self, now: Self) -> bool {
        let steady = now.steady.saturating_duration_since(self.steady);
        let wall = now.wall.duration_since(self.wall).unwrap_or_default();
        steady.max(wall) < LEASE_DURATION - SAFETY_MARGIN
    }
}

/// A lock that this process has, by the number that it has it under.
#[derive(Clone, Copy, Debug)]
struct HeldLock {
    holder: i64,
    /// When it was last asked for, or renewed; nothing once it is known to be lost.
    asked_at: Option<ClockReading>,
}

/// The locks of this process, and the rights to rows that go by them.
#[derive(Clone, Default)]
pub(super) struct Leases(Arc<Mutex<LeaseTable>>);

#[derive(Default)]
struct LeaseTable {
    held: HashMap<String, HeldLock>,
    /// The lock that each right to rows goes by.
    epochs: HashMap<i64, (String, i64)>,
    /// Those that were let go, whether the database knows it by now or not.
    released: Vec<(String, i64)>,
}

impl Leases {
    /// Keeps that a lock is had, since it was asked for.
    pub(super) fn record_taken(&self, name: &str, holder: i64, asked: ClockReading) {
        self.lock_table().held.insert(name.to_owned(), HeldLock { holder, asked_at: Some(asked) });
    }

    /// Has a right to rows go by a lock.
    pub(super) fn bind_epoch(&self, epoch: Epoch, name: &str) {
        let mut known = self.lock_table();
        if let Some(held) = known.held.get(name).copied() {
            known.epochs.insert(epoch.0, (name.to_owned(), held.holder));
        }
    }

    /// The lock that a right to rows goes by, and the number that it is had under.
    pub(super) fn find_lock(&self, epoch: Epoch) -> Option<(String, i64)> {
        self.lock_table().epochs.get(&epoch.0).cloned()
    }

    /// Keeps that a lock was let go.
    pub(super) fn record_released(&self, name: &str, holder: i64) {
        let mut known = self.lock_table();
        known.held.retain(|held, by| held != name || by.holder != holder);
        known.epochs.retain(|_, (held, by)| held != name || *by != holder);
        known.released.push((name.to_owned(), holder));
    }

    /// Keeps that the database knows of it.
    pub(super) fn forget_released(&self, name: &str, holder: i64) {
        self.lock_table().released.retain(|(gone, by)| gone != name || *by != holder);
    }

    /// What this process let go that the database may still know as held.
    pub(super) fn list_released(&self) -> Vec<(String, i64)> {
        self.lock_table().released.clone()
    }

    /// The locks that are had.
    pub(super) fn list_held(&self) -> Vec<(String, i64)> {
        let known = self.lock_table();
        known
            .held
            .iter()
            .filter(|(_, held)| held.asked_at.is_some())
            .map(|(name, held)| (name.clone(), held.holder))
            .collect()
    }

    /// Keeps that a lock was renewed, or is another's by now.
    pub(super) fn record_renewal(&self, name: &str, holder: i64, asked: Option<ClockReading>) {
        if let Some(held) = self.lock_table().held.get_mut(name).filter(|held| held.holder == holder) {
            held.asked_at = asked.filter(|_| held.asked_at.is_some());
        }
    }

    /// Whether something may leave by this right at this moment, as far as this process knows without asking.
    pub(super) fn is_valid(&self, epoch: Epoch, now: ClockReading) -> bool {
        let known = self.lock_table();
        let Some((name, holder)) = known.epochs.get(&epoch.0) else { return false };
        let held = known.held.get(name).filter(|held| held.holder == *holder);
        held.and_then(|held| held.asked_at).is_some_and(|asked| asked.is_within_grant(now))
    }

    fn lock_table(&self) -> MutexGuard<'_, LeaseTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(moment: ClockReading, steady: u64, wall: u64) -> ClockReading {
        let (steady, wall) = (Duration::from_secs(steady), Duration::from_secs(wall));
        ClockReading { steady: moment.steady + steady, wall: moment.wall + wall }
    }

    #[test]
    fn lease_ends_before_the_database_grant_does() {
        let (leases, now) = (Leases::default(), ClockReading::now());
        assert!(!leases.is_valid(Epoch(1), now), "nobody gave it");
        leases.record_taken("sale", 7, now);
        leases.bind_epoch(Epoch(1), "sale");
        for (steady, wall, lasts) in [(0, 0, true), (24, 24, true), (25, 25, false), (1, 3_600, false), (26, 0, false)]
        {
            assert_eq!(leases.is_valid(Epoch(1), later(now, steady, wall)), lasts, "{steady} {wall}");
        }
        leases.record_renewal("sale", 7, Some(later(now, 20, 20)));
        assert!(leases.is_valid(Epoch(1), later(now, 40, 40)));
        leases.record_renewal("sale", 7, None);
        assert!(!leases.is_valid(Epoch(1), now), "another has it");
        leases.record_renewal("sale", 7, Some(now));
        assert!(!leases.is_valid(Epoch(1), now), "what is lost stays lost");
        leases.record_taken("sale", 8, now);
        assert!(!leases.is_valid(Epoch(1), now), "taken again is another right");
    }

    #[test]
    fn released_lock_is_free_before_the_database_knows() {
        let (leases, now) = (Leases::default(), ClockReading::now());
        leases.record_taken("sale", 7, now);
        leases.bind_epoch(Epoch(1), "sale");
        leases.record_released("sale", 7);
        assert_eq!(leases.list_released(), [("sale".to_owned(), 7)]);
        assert!(!leases.is_valid(Epoch(1), now));
        assert!(leases.list_held().is_empty());
        leases.forget_released("sale", 7);
        assert!(leases.list_released().is_empty());
    }
}
