//! Notifications that wait to be sent.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::contents::{Contents, instant};
use crate::domain::Occasion;
use crate::ledger::rules::Forgotten;
use crate::ledger::{LedgerError, NewNotification, Notification, Told};

/// A notification with what becomes of it.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    notification: Notification,
    next_at: Timestamp,
    taken_until: Option<Timestamp>,
    /// When it was told, and whether it was taken in.
    done: Option<(Timestamp, bool)>,
}

impl Waiting {
    /// Takes a number out of what it tells.
    pub(super) fn forget(&mut self, forgotten: Forgotten) {
        self.notification.what.notice = forgotten.in_words(&self.notification.what.notice);
    }

    fn belongs(&self) -> (String, Occasion) {
        (self.notification.what.way.clone(), self.notification.what.occasion)
    }

    fn is_free(&self, now: Timestamp) -> bool {
        self.done.is_none() && self.taken_until.is_none_or(|until| until <= now)
    }
}

impl Contents {
    pub(crate) fn notify(&mut self, now: i64, new: Vec<NewNotification>) -> Result<(), LedgerError> {
        let at = instant(now)?;
        for what in new {
            let key = i64::try_from(self.waiting.len()).unwrap_or(i64::MAX);
            let notification = Notification { key, at, tries: 0, what };
            self.waiting.push(Waiting { notification, next_at: at, taken_until: None, done: None });
        }
        Ok(())
    }

    /// What belongs together and is due.
    pub(crate) fn due(&self, now: i64, apart: Duration) -> Result<BTreeSet<(String, Occasion)>, LedgerError> {
        let now = instant(now)?;
        let lately = |done: &(Timestamp, bool)| done.1 && now.duration_since(done.0) < signed(apart);
        let told: BTreeSet<_> =
            self.waiting.iter().filter(|one| one.done.as_ref().is_some_and(lately)).map(Waiting::belongs).collect();
        let due = self.waiting.iter().filter(|one| one.is_free(now) && one.next_at <= now).map(Waiting::belongs);
        Ok(due.filter(|one| !told.contains(one)).collect())
    }

    pub(crate) fn take_notifications(
        &mut self,
        now: i64,
        apart: Duration,
        held: Duration,
    ) -> Result<Vec<Notification>, LedgerError> {
        let (due, now) = (self.due(now, apart)?, instant(now)?);
        let mine = self.waiting.iter_mut().filter(|one| one.is_free(now) && due.contains(&one.belongs()));
        Ok(mine
            .map(|one| {
                one.taken_until = now.checked_add(signed(held)).ok();
                one.notification.tries += 1;
                one.notification.clone()
            })
            .collect())
    }

    pub(crate) fn told(&mut self, now: i64, keys: &[i64], told: Told) -> Result<(), LedgerError> {
        let now = instant(now)?;
        for one in self.waiting.iter_mut().filter(|one| keys.contains(&one.notification.key)) {
            one.taken_until = None;
            match told {
                Told::Sent => one.done = Some((now, true)),
                Told::GivenUp => one.done = Some((now, false)),
                Told::Again(wait) => one.next_at = now.checked_add(signed(wait)).unwrap_or(Timestamp::MAX),
            }
        }
        Ok(())
    }
}

fn signed(time: Duration) -> SignedDuration {
    SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
}
