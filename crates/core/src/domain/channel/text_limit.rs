//! Text limits of the channels.
//!
//! The gateway accepts texts that no phone can show, charges for them and then drops them. Texts are therefore checked
//! here first: constant texts before sending, the others row by row. A violation contains neither texts nor phone
//! numbers, so it can be shown and stored.
//!
//! The contract sets no limits (contract 8). The limits here are the platform's, and deliberately the widest known: a
//! Viber button label can have 30 characters, although some accounts allow only 19.

use std::fmt;

use super::{Channel, ChannelField, Stage};
use crate::domain::{SmsEncoding, SmsSize, format_count, measure_sms};

/// The limit of a text; an empty text is never allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLimit {
    /// No limit, except that the text must not be empty.
    NotEmpty,
    /// At most this many characters.
    AtMost(usize),
    /// At most the number of billed parts that the author allows.
    Parts,
    /// A sender name: 3 to 11 Latin letters, digits, dots, hyphens, underscores and spaces, with at least one letter.
    AlphaName,
    /// An `http` or `https` URL with a host and without spaces.
    WebAddress,
    /// The web address of an image in one of these formats.
    Image(&'static [&'static str]),
    /// A numeric code.
    Digits {
        /// The minimum number of digits.
        least: usize,
        /// The maximum number of digits.
        most: usize,
    },
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// The reason why a channel does not accept a text; `Display` explains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextViolation {
    /// The channel whose rule is broken.
    pub channel: Channel,
    /// The key of the text.
    pub field: &'static ChannelField,
    reason: ViolationReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ViolationReason {
    Empty,
    Parts { text: SmsSize, max: u32 },
    AlphaNameLength(usize),
    AlphaNameCharacters,
    AlphaNameWithoutLetter,
    TooLong { characters: usize, max: usize },
    NotAnAddress,
    ImageFormat(&'static [&'static str]),
    NotDigits { least: usize, most: usize },
    NotOneOf(&'static [&'static str]),
}

/// Finds the limit that `text` violates as the value of the key `field` in `stage`.
///
/// The texts in `stage` do not matter, so a constant text can be checked even if `stage` contains templates.
pub fn find_text_violation<T>(stage: &Stage<T>, field: &'static ChannelField, text: &str) -> Option<TextViolation> {
    let find_reason = || field.limit.find_violation_reason(text, stage.max_parts());
    let reason = if text.trim().is_empty() { Some(ViolationReason::Empty) } else { find_reason() };
    reason.map(|reason| TextViolation { channel: stage.channel(), field, reason })
}

impl TextLimit {
    fn find_violation_reason(self, text: &str, max_parts: Option<u32>) -> Option<ViolationReason> {
        match self {
            TextLimit::NotEmpty => None,
            TextLimit::AtMost(max) => check_length(text, max),
            TextLimit::Parts => max_parts.and_then(|max| check_part_count(text, max)),
            TextLimit::AlphaName => check_alpha_name(text),
            TextLimit::WebAddress => check_address(text),
            TextLimit::Image(formats) => check_address(text).or_else(|| check_image(text, formats)),
            TextLimit::Digits { least, most } => {
                let is_code = (least..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
                (!is_code).then_some(ViolationReason::NotDigits { least, most })
            }
            TextLimit::OneOf(words) => (!words.contains(&text)).then_some(ViolationReason::NotOneOf(words)),
        }
    }
}

fn check_part_count(text: &str, max: u32) -> Option<ViolationReason> {
    // A part holds at least 66 UTF-16 units, and a text never has more units than bytes, so most texts need no
    // counting.
    if text.len() <= 66 * max as usize {
        return None;
    }
    let text = measure_sms(text);
    (text.parts > max as usize).then_some(ViolationReason::Parts { text, max })
}

fn check_length(text: &str, max: usize) -> Option<ViolationReason> {
    // A text never has more characters than bytes, so most texts need no counting.
    if text.len() <= max {
        return None;
    }
    let characters = text.chars().count();
    (characters > max).then_some(ViolationReason::TooLong { characters, max })
}

fn check_alpha_name(text: &str) -> Option<ViolationReason> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b' ');
    if !text.bytes().all(is_allowed) {
        return Some(ViolationReason::AlphaNameCharacters);
    }
    if !(3..=11).contains(&text.len()) {
        return Some(ViolationReason::AlphaNameLength(text.len()));
    }
    let has_letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    (!has_letter).then_some(ViolationReason::AlphaNameWithoutLetter)
}

fn check_address(text: &str) -> Option<ViolationReason> {
    (!is_web_address(text)).then_some(ViolationReason::NotAnAddress)
}

fn is_web_address(text: &str) -> bool {
    let Some(rest) = strip_web_scheme(text) else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("");
    let name = host.split(':').next().unwrap_or("");
    // In an IPv6 host such as `[::1]`, the part before the first colon can be just the bracket.
    let has_host = host.starts_with('[') || name.chars().any(char::is_alphanumeric);
    has_host && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

fn strip_web_scheme(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    (scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")).then_some(rest)
}

/// Checks the image format by the file extension in the path; an address without an extension is accepted.
fn check_image(address: &str, formats: &'static [&'static str]) -> Option<ViolationReason> {
    let path = strip_web_scheme(address)?.split(['?', '#']).next()?.split_once('/')?.1;
    let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
    let is_allowed = formats.iter().any(|format| extension.eq_ignore_ascii_case(format));
    (!is_allowed).then_some(ViolationReason::ImageFormat(formats))
}

impl fmt::Display for TextViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = TextNoun(self);
        match &self.reason {
            ViolationReason::Empty => write!(f, "{noun} {}", self.channel.facts().empty),
            ViolationReason::Parts { text, max } => {
                let ((single_capacity, part_capacity), reason) = match text.encoding {
                    SmsEncoding::Gsm7 => ((160, 153), ""),
                    SmsEncoding::Ucs2 => {
                        ((70, 67), " because some characters, such as Cyrillic letters, are not in the SMS alphabet")
                    }
                };
                let (parts, units) = (text.parts, text.units);
                let fit = if *max == 1 { single_capacity } else { part_capacity * max };
                write!(
                    f,
                    "{parts} parts exceed `max_parts: {max}`: {noun} has {units} characters, but only {fit} fit{reason}"
                )
            }
            ViolationReason::AlphaNameLength(length) => {
                let characters = format_count(*length as u64, "character");
                write!(f, "{noun} has {characters}, but a sender name needs 3 to 11")
            }
            ViolationReason::AlphaNameCharacters => {
                write!(f, "{noun} can contain only Latin letters, digits, dots, hyphens, underscores and spaces")
            }
            ViolationReason::AlphaNameWithoutLetter => write!(f, "{noun} needs at least one Latin letter"),
            ViolationReason::TooLong { characters, max } => {
                write!(f, "{noun} has {characters} characters, but at most {max} are allowed")
            }
            ViolationReason::NotAnAddress => {
                write!(f, "{noun} is not a URL; a URL starts with `https://` and a host name, and contains no spaces")
            }
            ViolationReason::ImageFormat(formats) => {
                write!(f, "{noun} must be a {} image", join_choices(formats.iter().copied()))
            }
            ViolationReason::NotDigits { least, most } => {
                let title = self.channel.facts().title;
                write!(f, "{noun} must be a code of {least} to {most} digits; {title} delivers only codes")
            }
            ViolationReason::NotOneOf(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                write!(f, "{noun} must be {}", join_choices(words.iter().map(String::as_str)))
            }
        }
    }
}

/// Joins words as alternatives: `a, b or c`.
fn join_choices<'w>(words: impl DoubleEndedIterator<Item = &'w str>) -> String {
    let mut words = words.rev();
    let last = words.next().unwrap_or_default().to_owned();
    let Some(before) = words.next() else { return last };
    words.fold(format!("{before} or {last}"), |listed, word| format!("{word}, {listed}"))
}

/// The noun for the text of a violation: `the SMS text`, `the Viber button`.
struct TextNoun<'a>(&'a TextViolation);

impl fmt::Display for TextNoun<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextViolation { channel, field, .. } = self.0;
        write!(f, "the {} {}", channel.facts().title, field.noun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Card, ExtraProperties, Rcs, Sms, Telegram, Viber, ViberKind, Voice, Whatsapp};

    static CARD: [ChannelField; 4] = Card::<()>::FIELDS;

    fn sms_with_parts<T>(signature: T, message: T, max_parts: u32) -> Stage<T> {
        let (lifetime, plain, fields) = (None, None, ExtraProperties::new());
        let (short_link, unsubscribe_link) = (None, None);
        Stage::Sms(Sms { signature, message, lifetime, short_link, unsubscribe_link, max_parts, plain, fields })
    }

    fn sms() -> Stage<()> {
        sms_with_parts((), (), 3)
    }

    fn viber() -> Stage<()> {
        Stage::Viber(Viber {
            kind: ViberKind::Carousel,
            signature: (),
            message: None,
            image: None,
            link: None,
            button: None,
            carousel: Vec::new(),
            lifetime: None,
            short_link: None,
            fields: ExtraProperties::new(),
        })
    }

    fn rcs() -> Stage<()> {
        Stage::Rcs(Rcs {
            signature: (),
            message: (),
            image: None,
            button: None,
            link: None,
            lifetime: None,
            short_link: None,
            fields: ExtraProperties::new(),
        })
    }

    fn voice() -> Stage<()> {
        let (gender, language, name) = (None, None, None);
        Stage::Voice(Voice { message: (), gender, language, name, dtmf: None, fields: ExtraProperties::new() })
    }

    fn telegram() -> Stage<()> {
        Stage::Telegram(Telegram { message: (), lifetime: None, fields: ExtraProperties::new() })
    }

    fn whatsapp() -> Stage<()> {
        Stage::Whatsapp(Whatsapp { signature: (), message: (), fields: ExtraProperties::new() })
    }

    /// The key with this name; keys of cards are written as `carousel.KEY`.
    fn find_field(stage: &Stage<()>, key: &str) -> &'static ChannelField {
        let card = key.strip_prefix("carousel.").map(|key| (CARD.as_slice(), key));
        let (fields, key) = card.unwrap_or((stage.channel().facts().fields, key));
        fields.iter().find(|field| field.key == key).expect("a key")
    }

    fn violation_reason(stage: &Stage<()>, key: &'static str, text: &str) -> String {
        find_text_violation(stage, find_field(stage, key), text)
            .map_or_else(String::new, |violation| violation.to_string())
    }

    #[test]
    fn texts_within_limits_pass() {
        let (viber_text, rcs_text, whatsapp_text) = ("я".repeat(1000), "я".repeat(3072), "я".repeat(4096));
        let table: [(Stage<()>, &'static str, &[&str]); 15] = [
            (sms(), "signature", &["Ola", "Olena-Co.1", "a_b c", "1234567891a"]),
            (sms(), "message", &["Hi", " x ", "{}"]),
            (viber(), "signature", &["Олена"]),
            (viber(), "message", &[&viber_text]),
            (viber(), "button", &["Shop now", "123456789012345678901234567890"]),
            (
                viber(),
                "link",
                &["https://a.example", "HTTP://a.example:80/x?y=1#z", "http://[::1]/", "https://магазин.укр/"],
            ),
            (viber(), "image", &["https://a.example/x.PNG?v=1.5", "https://a.example/image", "https://a.example"]),
            (viber(), "carousel.image", &["https://a.example/dir.v2/x.jpeg"]),
            (rcs(), "message", &[&rcs_text]),
            (rcs(), "image", &["https://a.example/x.webp"]),
            (rcs(), "button", &["1234567890123456789012345"]),
            (telegram(), "message", &["0042", "12345678"]),
            (voice(), "gender", &["male", "female"]),
            (voice(), "language", &["uk-UA"]),
            (whatsapp(), "message", &[&whatsapp_text]),
        ];
        for (stage, key, texts) in table {
            for text in texts {
                assert_eq!(violation_reason(&stage, key, text), "", "{key}: {text}");
            }
        }
    }

    #[test]
    fn text_outside_the_limits_is_rejected_with_a_reason() {
        let (long, cyrillic) = ("x".repeat(4097), "я".repeat(202));
        let table: [(Stage<()>, &'static str, &str, &str); 31] = [
            (sms(), "message", "", "the SMS text is empty"),
            (sms(), "message", " \n\u{a0}", "the SMS text is empty"),
            (sms(), "message", &cyrillic, "4 parts exceed `max_parts: 3`: the SMS text has 202 characters"),
            (sms(), "message", &long[..460], "4 parts exceed `max_parts: 3`"),
            (sms(), "signature", "Ol", "the SMS signature has 2 characters, but a sender name needs 3 to 11"),
            (sms(), "signature", "OlenaAndCompany", "has 15 characters"),
            (sms(), "signature", "Олена", "only Latin letters"),
            (sms(), "signature", "Olena&Co", "only Latin letters"),
            (sms(), "signature", "380501234", "at least one Latin letter"),
            (viber(), "signature", " ", "the Viber signature is empty"),
            (viber(), "message", &long[..1001], "the Viber text has 1001 characters, but at most 1000 are allowed"),
            (viber(), "button", &long[..31], "the Viber button has 31 characters, but at most 30 are allowed"),
            (viber(), "link", "a.example", "the Viber link is not a URL"),
            (viber(), "link", "ftp://a.example", "not a URL"),
            (viber(), "link", "https://", "not a URL"),
            (viber(), "link", "https:///path", "not a URL"),
            (viber(), "link", "https://?c=1", "not a URL"),
            (viber(), "link", "https://user@:80", "not a URL"),
            (viber(), "link", "https://a.example/a b", "not a URL"),
            (viber(), "image", "https://a.example/x.webp", "the Viber image must be a jpg, jpeg, png or gif image"),
            (viber(), "image", "x.png", "not a URL"),
            (viber(), "carousel.url", "x", "the Viber card's link is not a URL"),
            (viber(), "carousel.caption", "", "the Viber card's caption is empty"),
            (rcs(), "message", &long[..3073], "the RCS text has 3073 characters"),
            (rcs(), "button", &long[..26], "at most 25 are allowed"),
            (rcs(), "link", "javascript:alert(1)", "not a URL"),
            (telegram(), "message", "123", "the Telegram text must be a code of 4 to 8 digits"),
            (telegram(), "message", "Code 1234", "must be a code"),
            (voice(), "gender", "Female", "the voice gender must be `male` or `female`"),
            (
                whatsapp(),
                "message",
                "",
                "the WhatsApp text is empty, but the gateway would accept it, charge for it and deliver an empty \
                 message",
            ),
            (whatsapp(), "signature", "", "the WhatsApp signature is empty, but the gateway would accept it"),
        ];
        for (stage, key, text, expected) in table {
            let reason = violation_reason(&stage, key, text);
            assert!(reason.contains(expected), "{key}: `{reason}` does not say `{expected}`");
        }
        assert!(violation_reason(&whatsapp(), "message", &long).contains("at most 4096 are allowed"));
    }

    #[test]
    fn violation_does_not_reveal_the_text() {
        let message = find_text_violation(&telegram(), find_field(&telegram(), "message"), "380501234567")
            .map(|violation| format!("{violation} {violation:?}"));
        assert!(message.is_some_and(|message| !message.contains("0501234567")));
    }

    proptest::proptest! {
        #[test]
        fn part_limit_check_agrees_with_the_part_count(
            text in "(a{50,80}|a{110,160}|\\^{60,90}|(😀){25,40}|я{30,80})(я|€|a|😀){0,9}",
            max in 1_u32..4,
        ) {
            proptest::prop_assert_eq!(check_part_count(&text, max).is_some(), measure_sms(&text).parts > max as usize);
        }
    }
}
