//! Single messages that were sent lately, in memory.

use std::time::Duration;

use super::adapter::MemoryLedger;
use crate::ledger::repeat_guard::{RepeatKey, entry_age, is_expired};
use crate::ledger::{LedgerFuture, RepeatCheck, RepeatGuard, RepeatPlace};

/// A ledger in memory outlives no process and needs no secret of its own.
const MESSAGE_KEY: RepeatKey = RepeatKey(*b"messages that are kept in memory");

impl RepeatGuard for MemoryLedger {
    fn take_repeat_place(&self, message: Vec<u8>, again: bool) -> LedgerFuture<'_, RepeatCheck> {
        self.write_contents(move |contents, now| {
            contents.repeats.retain(|_, until| !is_expired(*until, now));
            let hash = MESSAGE_KEY.hash_message(&message);
            let before = contents.repeats.get(&hash).copied();
            if let Some(until) = before.filter(|_| !again) {
                return Ok(RepeatCheck::Repeated(entry_age(until, now)));
            }
            let place = RepeatPlace::new(hash, now, before);
            contents.repeats.insert(hash, place.until);
            Ok(RepeatCheck::Taken(place))
        })
    }

    fn find_time_since_sent(&self, message: Vec<u8>) -> LedgerFuture<'_, Option<Duration>> {
        self.write_contents(move |contents, now| {
            let until = contents.repeats.get(&MESSAGE_KEY.hash_message(&message)).copied();
            Ok(until.filter(|until| !is_expired(*until, now)).map(|until| entry_age(until, now)))
        })
    }

    fn release_repeat_place(&self, place: RepeatPlace) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, now| {
            let RepeatPlace { hash, until, before } = place;
            if contents.repeats.get(&hash) == Some(&until) {
                match before.filter(|until| !is_expired(*until, now)) {
                    Some(before) => contents.repeats.insert(hash, before),
                    None => contents.repeats.remove(&hash),
                };
            }
            Ok(())
        })
    }
}
