//! How long this process still has what it locked: counted from before it asked, by its own clocks, and shorter than the
//! database grants it, so that it knows first that it lost something.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::ledger::Epoch;

/// How long the database leaves a lock to whoever has it, without hearing of them.
pub(super) const GRANTED: Duration = Duration::from_secs(30);
/// How much earlier than that its owner does not rely on it any more.
const MARGIN: Duration = Duration::from_secs(5);
/// How often an owner says that it is there.
pub(super) const RENEWED: Duration = Duration::from_secs(8);

/// A moment by the clock that stands still while a machine sleeps, and by the one that does not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    steady: Instant,
    wall: SystemTime,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { steady: Instant::now(), wall: SystemTime::now() }
    }

    /// Whether what was granted at this moment may still be relied on; a clock that was set back says nothing.
    fn is_within_grant(self, now: Self) -> bool {
        let steady = now.steady.saturating_duration_since(self.steady);
        let wall = now.wall.duration_since(self.wall).unwrap_or_default();
        steady.max(wall) < GRANTED - MARGIN
    }
}

/// A lock that this process has, by the number that it has it under.
#[derive(Clone, Copy, Debug)]
struct Held {
    holder: i64,
    /// When it was last asked for, or renewed; nothing once it is known to be lost.
    asked: Option<Moment>,
}

/// The locks of this process, and the rights to rows that go by them.
#[derive(Clone, Default)]
pub(super) struct Leases(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    held: HashMap<String, Held>,
    /// The lock that each right to rows goes by.
    epochs: HashMap<i64, (String, i64)>,
    /// Those that were let go, whether the database knows it by now or not.
    released: Vec<(String, i64)>,
}

impl Leases {
    /// Keeps that a lock is had, since it was asked for.
    pub(super) fn took(&self, name: &str, holder: i64, asked: Moment) {
        self.known().held.insert(name.to_owned(), Held { holder, asked: Some(asked) });
    }

    /// Has a right to rows go by a lock.
    pub(super) fn bind(&self, epoch: Epoch, name: &str) {
        let mut known = self.known();
        if let Some(held) = known.held.get(name).copied() {
            known.epochs.insert(epoch.0, (name.to_owned(), held.holder));
        }
    }

    /// The lock that a right to rows goes by, and the number that it is had under.
    pub(super) fn lock_of(&self, epoch: Epoch) -> Option<(String, i64)> {
        self.known().epochs.get(&epoch.0).cloned()
    }

    /// Keeps that a lock was let go.
    pub(super) fn released(&self, name: &str, holder: i64) {
        let mut known = self.known();
        known.held.retain(|held, by| held != name || by.holder != holder);
        known.epochs.retain(|_, (held, by)| held != name || *by != holder);
        known.released.push((name.to_owned(), holder));
    }

    /// Keeps that the database knows of it.
    pub(super) fn is_gone(&self, name: &str, holder: i64) {
        self.known().released.retain(|(gone, by)| gone != name || *by != holder);
    }

    /// What this process let go that the database may still know as held.
    pub(super) fn let_go(&self) -> Vec<(String, i64)> {
        self.known().released.clone()
    }

    /// The locks that are had.
    pub(super) fn all(&self) -> Vec<(String, i64)> {
        let known = self.known();
        known
            .held
            .iter()
            .filter(|(_, held)| held.asked.is_some())
            .map(|(name, held)| (name.clone(), held.holder))
            .collect()
    }

    /// Keeps that a lock was renewed, or is another's by now.
    pub(super) fn renewed(&self, name: &str, holder: i64, asked: Option<Moment>) {
        if let Some(held) = self.known().held.get_mut(name).filter(|held| held.holder == holder) {
            held.asked = asked.filter(|_| held.asked.is_some());
        }
    }

    /// Whether something may leave by this right at this moment, as far as this process knows without asking.
    pub(super) fn last(&self, epoch: Epoch, now: Moment) -> bool {
        let known = self.known();
        let Some((name, holder)) = known.epochs.get(&epoch.0) else { return false };
        let held = known.held.get(name).filter(|held| held.holder == *holder);
        held.and_then(|held| held.asked).is_some_and(|asked| asked.is_within_grant(now))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later(moment: Moment, steady: u64, wall: u64) -> Moment {
        let (steady, wall) = (Duration::from_secs(steady), Duration::from_secs(wall));
        Moment { steady: moment.steady + steady, wall: moment.wall + wall }
    }

    #[test]
    fn a_right_lasts_as_long_as_the_lock_that_it_goes_by_and_less_than_the_database_grants() {
        let (leases, now) = (Leases::default(), Moment::now());
        assert!(!leases.last(Epoch(1), now), "nobody gave it");
        leases.took("sale", 7, now);
        leases.bind(Epoch(1), "sale");
        for (steady, wall, lasts) in [(0, 0, true), (24, 24, true), (25, 25, false), (1, 3_600, false), (26, 0, false)]
        {
            assert_eq!(leases.last(Epoch(1), later(now, steady, wall)), lasts, "{steady} {wall}");
        }
        leases.renewed("sale", 7, Some(later(now, 20, 20)));
        assert!(leases.last(Epoch(1), later(now, 40, 40)));
        leases.renewed("sale", 7, None);
        assert!(!leases.last(Epoch(1), now), "another has it");
        leases.renewed("sale", 7, Some(now));
        assert!(!leases.last(Epoch(1), now), "what is lost stays lost");
        leases.took("sale", 8, now);
        assert!(!leases.last(Epoch(1), now), "taken again is another right");
    }

    #[test]
    fn what_was_let_go_is_nobodys_before_the_database_hears_of_it() {
        let (leases, now) = (Leases::default(), Moment::now());
        leases.took("sale", 7, now);
        leases.bind(Epoch(1), "sale");
        leases.released("sale", 7);
        assert_eq!(leases.let_go(), [("sale".to_owned(), 7)]);
        assert!(!leases.last(Epoch(1), now));
        assert!(leases.all().is_empty());
        leases.is_gone("sale", 7);
        assert!(leases.let_go().is_empty());
    }
}
