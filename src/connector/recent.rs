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
pub(super) struct Place(u64);

impl Recent {
    /// Takes the place of a message that is about to be sent.
    ///
    /// # Errors
    /// How long ago it was sent, where that is less than a minute.
    pub(super) fn take(&self, message: impl Hash, now: Instant) -> Result<Place, Duration> {
        let place = self.hasher.hash_one(message);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.retain(|_, at| now.saturating_duration_since(*at) < APART);
        match sent.get(&place) {
            Some(at) => Err(now.saturating_duration_since(*at)),
            None => {
                sent.insert(place, now);
                Ok(Place(place))
            }
        }
    }

    /// Takes the place of a message that is meant to be sent again.
    pub(super) fn take_again(&self, message: impl Hash, now: Instant) -> Place {
        let place = self.hasher.hash_one(message);
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).insert(place, now);
        Place(place)
    }

    /// Gives the place of a message back that was not sent.
    pub(super) fn give_back(&self, Place(place): Place) {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).remove(&place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_message_is_sent_again_after_a_minute_or_when_it_was_not_sent() {
        let (recent, now) = (Recent::default(), Instant::now());
        let place = recent.take(("Hi", 380), now).unwrap();
        assert_eq!(recent.take(("Hi", 380), now + Duration::from_secs(59)), Err(Duration::from_secs(59)));
        assert!(recent.take(("Hi", 381), now).is_ok() && recent.take(("Ho", 380), now).is_ok());
        recent.give_back(place);
        assert_eq!(recent.take(("Hi", 380), now), Ok(place));
        assert_eq!(recent.take(("Hi", 380), now + APART), Ok(place));
        assert_eq!(recent.take_again(("Hi", 380), now + APART), place);
        assert!(recent.sent.lock().unwrap().len() == 1, "what is older is forgotten");
    }
}
