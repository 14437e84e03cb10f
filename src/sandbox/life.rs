//! What becomes of a message in time.

use jiff::{SignedDuration, Timestamp};

use super::messages::Message;

/// How long a message that was taken stays queued.
const QUEUED_FOR: SignedDuration = SignedDuration::from_secs(2);

/// A message's status at `now` and the time of its last change.
///
/// A message that was taken is queued, and delivered two seconds later; one that was refused is
/// rejected from the start.
pub(super) fn status(message: &Message, now: Timestamp) -> (&'static str, Timestamp) {
    if !message.taken {
        return ("REJECTED", message.at);
    }
    match message.at.checked_add(QUEUED_FOR) {
        Ok(delivered) if delivered <= now => ("DELIVERED", delivered),
        _ => ("QUEUED", message.at),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_queued_then_delivered_and_a_refused_one_rejected_for_good() {
        let at = Timestamp::UNIX_EPOCH;
        let message = |taken| Message { id: None, label: "sms", taken, at };
        let later = at + QUEUED_FOR;
        let just_before = later - SignedDuration::from_nanos(1);
        for (taken, now, status_and_change) in [
            (true, at, ("QUEUED", at)),
            (true, just_before, ("QUEUED", at)),
            (true, later, ("DELIVERED", later)),
            (true, Timestamp::MAX, ("DELIVERED", later)),
            (false, at, ("REJECTED", at)),
            (false, Timestamp::MAX, ("REJECTED", at)),
        ] {
            assert_eq!(status(&message(taken), now), status_and_change);
        }
    }
}
