//! Repeat guard: the same message to the same number is sent once within a minute, across all connectors of a ledger.
//!
//! The ledger stores a keyed hash of each message. If the ledger has the previous version, this process stores the
//! hash.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use unicode_normalization::UnicodeNormalization as _;

use campaign_core::domain::{MessageContent, Phone, is_invisible};
use campaign_ledger::{Ledger, LedgerError, REPEAT_WINDOW, RepeatCheck, RepeatPlace};

/// The identity of a message: its recipient and its content.
///
/// Words, letters and punctuation distinguish texts. Surrounding spaces, the number and kind of spaces and line breaks
/// between words, invisible characters and the encoding of letters do not. A gateway on loopback is separate.
pub(super) fn message_identity(phone: Phone, content: &MessageContent<Cow<'_, str>>, loopback: bool) -> Vec<u8> {
    let content = content.map_texts(|text| normalize_text(text));
    let content = serde_json::to_string(&content).unwrap_or_default();
    format!("{loopback}\n{phone}\n{content}").into_bytes()
}

/// Normalizes a text: Unicode NFC, trimmed, without invisible characters, and one space for any spaces or line breaks.
fn normalize_text(text: &str) -> String {
    let is_control = |character: char| character.is_control() && !character.is_whitespace();
    let is_visible = |character: &char| !is_control(*character) && !is_invisible(*character);
    let composed: String = text.nfc().filter(is_visible).collect();
    composed.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The place of a message that is about to be sent.
pub(super) enum SentPlace {
    /// In the ledger.
    Shared(RepeatPlace),
    /// In this process.
    Own(OwnPlace),
}

/// Recently sent messages of this process.
#[derive(Debug, Default)]
pub(super) struct RecentMessages {
    hasher: RandomState,
    sent: Mutex<HashMap<u64, Instant>>,
}

/// The place of a message among those that this process sent recently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnPlace {
    message: u64,
    /// The time at which the message was sent before.
    before: Option<Instant>,
}

impl RecentMessages {
    /// Reserves the place of a message that is about to be sent, or returns how long ago it was sent.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub(super) async fn take_place(
        &self,
        ledger: &dyn Ledger,
        message: Vec<u8>,
        again: bool,
    ) -> Result<Result<SentPlace, Duration>, LedgerError> {
        Ok(match ledger.take_repeat_place(message.clone(), again).await? {
            RepeatCheck::Taken(place) => Ok(SentPlace::Shared(place)),
            RepeatCheck::Repeated(ago) => Err(ago),
            RepeatCheck::Unavailable => self.take_own(message, again, Instant::now()).map(SentPlace::Own),
        })
    }

    /// How long ago a message was sent; `None` if it was not sent recently. Reserves no place.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn time_since_sent(
        &self,
        ledger: &dyn Ledger,
        message: Vec<u8>,
    ) -> Result<Option<Duration>, LedgerError> {
        let own = self.own_time_since_sent(&message, Instant::now());
        Ok(ledger.find_time_since_sent(message).await?.or(own))
    }

    fn own_time_since_sent(&self, message: impl Hash, now: Instant) -> Option<Duration> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let ago = now.saturating_duration_since(*sent.get(&self.hasher.hash_one(message))?);
        Some(ago).filter(|ago| *ago < REPEAT_WINDOW)
    }

    /// Releases the place of a message that certainly was not sent. If that fails, the place expires within a minute.
    pub(super) async fn release_place(&self, ledger: &dyn Ledger, place: SentPlace) {
        match place {
            SentPlace::Own(place) => self.release_own(place),
            SentPlace::Shared(place) => {
                if let Err(error) = ledger.release_repeat_place(place).await {
                    tracing::warn!(
                        "a message was not sent, but its record could not be removed, so the same message will be \
                         refused for a minute: {error}"
                    );
                }
            }
        }
    }

    /// Takes a place in this process.
    ///
    /// # Errors
    /// The time since the last sending, if that is less than a minute and the message is not meant to be sent `again`.
    fn take_own(&self, message: impl Hash, again: bool, now: Instant) -> Result<OwnPlace, Duration> {
        let message = self.hasher.hash_one(message);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.retain(|_, at| now.saturating_duration_since(*at) < REPEAT_WINDOW);
        let before = sent.get(&message).copied();
        match before.filter(|_| !again) {
            Some(at) => Err(now.saturating_duration_since(at)),
            None => {
                sent.insert(message, now);
                Ok(OwnPlace { message, before })
            }
        }
    }

    /// Releases a place in this process.
    fn release_own(&self, OwnPlace { message, before }: OwnPlace) {
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
    use campaign_core::domain::{Channel, ExtraProperties, FieldValue, OperationKind, Stage, StageValues};

    #[test]
    fn message_repeats_after_a_minute_or_if_it_was_not_sent() {
        let (recent, now) = (RecentMessages::default(), Instant::now());
        let later = |seconds| now + Duration::from_secs(seconds);
        let place = recent.take_own(("Hi", 380), false, now).unwrap();
        assert_eq!(recent.take_own(("Hi", 380), false, later(59)), Err(Duration::from_secs(59)));
        assert!(recent.take_own(("Hi", 381), false, now).is_ok() && recent.take_own(("Ho", 380), false, now).is_ok());
        // A second message that was not sent does not affect the first.
        let again = recent.take_own(("Hi", 380), true, later(1)).unwrap();
        recent.release_own(again);
        assert_eq!(recent.take_own(("Hi", 380), false, later(2)), Err(Duration::from_secs(2)));
        recent.release_own(place);
        assert_eq!(recent.take_own(("Hi", 380), false, later(3)), Ok(place));
        assert_eq!(recent.take_own(("Hi", 380), false, later(63)), Ok(place));
        assert!(recent.sent.lock().unwrap().len() == 1, "older messages are removed");
    }

    #[test]
    fn texts_that_differ_only_in_blanks_are_the_same() {
        for same in ["hi", "hi ", " hi", "\thi\r\n", "\u{a0}hi\u{2003}"] {
            assert_eq!(normalize_text(same), "hi", "{same:?}");
        }
        for invisible in
            ["h\u{200b}i", "hi\u{2060}", "\u{feff}hi", "h\u{ad}i\u{0}", "hi\u{e0041}", "\u{3164}hi\u{2800}"]
        {
            assert_eq!(normalize_text(invisible), "hi", "{invisible:?}");
        }
        assert_eq!(normalize_text("Two  words\r\nand\n\nlines"), "Two words and lines");
        assert_eq!(normalize_text("Киї\u{432}"), normalize_text("Киі\u{308}в"));
        for (one, other) in [("hi", "Hi"), ("hi", "h i"), ("hi", "hi!"), ("1 000", "1000"), ("i", "і")] {
            assert_ne!(normalize_text(one), normalize_text(other));
        }
    }

    #[test]
    fn identity_depends_on_number_words_sender_and_loopback() {
        let content = |text: &'static str, signature: &'static str| {
            let mut values = StageValues::new(ExtraProperties::new());
            for field in Channel::Viber.facts().fields {
                match field.key {
                    "message" => values.set_value(field, FieldValue::Text(Cow::Borrowed(text))),
                    "signature" => values.set_value(field, FieldValue::Text(Cow::Borrowed(signature))),
                    "type" => values.set_value(field, FieldValue::Word("text")),
                    _ => {}
                }
            }
            let stage = Stage::of(Channel::Viber, values).unwrap();
            MessageContent { kind: OperationKind::Viber, stages: vec![stage] }
        };
        let phone = |last: u64| Phone::new(380_501_234_560 + last).unwrap();
        let one = message_identity(phone(7), &content("hi", "OlenaCo"), false);
        assert_eq!(one, message_identity(phone(7), &content(" hi\n", "OlenaCo"), false));
        for other in [
            message_identity(phone(8), &content("hi", "OlenaCo"), false),
            message_identity(phone(7), &content("ho", "OlenaCo"), false),
            message_identity(phone(7), &content("hi", "Olena"), false),
            message_identity(phone(7), &content("hi", "OlenaCo"), true),
        ] {
            assert_ne!(one, other);
        }
    }
}
