//! What was sent lately, so that an assistant that repeats itself repeats no message. Nothing of a message is kept but a
//! hash by a secret of this process.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the same message to the same number is not sent again by itself.
const APART: Duration = Duration::from_secs(60);

/// What was sent lately.
#[derive(Debug, Default)]
pub(super) struct Recent {
    hasher: RandomState,
    sent: Mutex<HashMap<u64, Instant>>,
}

/// The place of a message among those that were sent lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    message: u64,
    /// When it was sent before.
    before: Option<Instant>,
}

impl Recent {
    /// Takes the place of a message that is about to be sent.
    ///
    /// # Errors
    /// How long ago it was sent, where that is less than a minute and it is not meant to go `again`.
    pub(super) fn take(&self, message: impl Hash, again: bool, now: Instant) -> Result<Place, Duration> {
        let message = self.hasher.hash_one(message);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.retain(|_, at| now.saturating_duration_since(*at) < APART);
        let before = sent.get(&message).copied();
        match before.filter(|_| !again) {
            Some(at) => Err(now.saturating_duration_since(at)),
            None => {
                sent.insert(message, now);
                Ok(Place { message, before })
            }
        }
    }

    /// Gives the place of a message back that was not sent.
    pub(super) fn give_back(&self, Place { message, before }: Place) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        match before {
            Some(at) => sent.insert(message, at),
            None => sent.remove(&message),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_message_is_sent_again_after_a_minute_or_when_it_was_not_sent() {
        let (recent, now) = (Recent::default(), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        let place = recent.take(("Hi", 380), false, now).unwrap();
        assert_eq!(recent.take(("Hi", 380), false, later(59)), Err(Duration::from_secs(59)));
        assert!(recent.take(("Hi", 381), false, now).is_ok() && recent.take(("Ho", 380), false, now).is_ok());
        // A second one that did not leave takes nothing from the first.
        let again = recent.take(("Hi", 380), true, later(1)).unwrap();
        recent.give_back(again);
        assert_eq!(recent.take(("Hi", 380), false, later(2)), Err(Duration::from_secs(2)));
        recent.give_back(place);
        assert_eq!(recent.take(("Hi", 380), false, later(3)), Ok(place));
        assert_eq!(recent.take(("Hi", 380), false, later(63)), Ok(place));
        assert!(recent.sent.lock().unwrap().len() == 1, "what is older is forgotten");
    }
}
