//! Columns of a list that record opt-outs, such as `status=unsubscribed`, `consent=no` or `отписан=да`. This module
//! does no I/O.
//!
//! Headers and values are looked up in fixed tables. An unknown header or value has no meaning, so `status=paid` and
//! `stop_name` are not read as opt-outs.

/// Whether a cell means that the recipient opted out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptOutState {
    /// The recipient opted out.
    OptedOut,
    /// The recipient did not opt out.
    Reachable,
}

/// The kind of record in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptOutColumn {
    /// An opt-out: `opt_out=yes`, `unsubscribed_at=2026-05-01`.
    OptOut,
    /// A consent: `consent=no`, `subscribed=false`.
    Consent,
    /// A state in words: `status=unsubscribed`.
    Status,
}

/// The opt-out state that a cell in the column with this header records. `None` if the header or the value is unknown.
pub fn read_opt_out_state(header: &str, value: &str) -> Option<OptOutState> {
    OptOutColumn::from_header(header)?.read_state(value)
}

/// Whether a cell is a date or a time. The zero date of databases, `0000-00-00`, does not count.
pub fn is_date(value: &str) -> bool {
    classify_date(value.trim()) == Some(DateCell::Given)
}

/// Words in headers that stand for messages.
const MESSAGES: &[&str] = &[
    "sms",
    "mms",
    "viber",
    "rcs",
    "whatsapp",
    "telegram",
    "text",
    "texts",
    "message",
    "messages",
    "messaging",
    "marketing",
    "promo",
    "promotions",
    "ads",
    "mailing",
    "mailings",
    "mobile",
    "смс",
    "вайбер",
    "вайбера",
    "повідомлення",
    "повідомлень",
    "розсилка",
    "розсилки",
    "розсилку",
    "реклама",
    "рекламу",
    "реклами",
    "маркетинг",
    "сообщения",
    "сообщений",
    "рассылка",
    "рассылки",
    "рассылку",
    "рекламы",
];

/// Words that do not change the meaning of a header.
const FILLER: &[&str] = &[
    "is",
    "has",
    "have",
    "was",
    "date",
    "at",
    "on",
    "time",
    "timestamp",
    "flag",
    "to",
    "of",
    "from",
    "for",
    "the",
    "client",
    "customer",
    "user",
    "contact",
    "person",
    "recipient",
    "чи",
    "дата",
    "час",
    "коли",
    "на",
    "від",
    "для",
    "клієнт",
    "клієнта",
    "отримання",
    "время",
    "когда",
    "от",
    "клиент",
    "клиента",
    "получение",
];

/// Headers of opt-outs, in lower case. A header matches as a whole, or without words of [`MESSAGES`] and [`FILLER`].
const OPT_OUT: &[&str] = &[
    "opt out",
    "optout",
    "opted out",
    "optedout",
    "unsubscribe",
    "unsubscribed",
    "unsub",
    "not subscribed",
    "do not contact",
    "do not disturb",
    "do not send",
    "do not call",
    "donotcontact",
    "donotdisturb",
    "donotsend",
    "donotcall",
    "donotsms",
    "donottext",
    "dont contact",
    "dont disturb",
    "dont send",
    "dont call",
    "no sms",
    "no marketing",
    "no messages",
    "dnd",
    "dnc",
    "blacklist",
    "blacklisted",
    "black list",
    "stop list",
    "stoplist",
    "suppressed",
    "відписаний",
    "відписана",
    "відписано",
    "відписані",
    "відписався",
    "відписалась",
    "відписалася",
    "відписка",
    "відписки",
    "не турбувати",
    "не писати",
    "не надсилати",
    "не слати",
    "не дзвонити",
    "чорний список",
    "у чорному списку",
    "стоп лист",
    "стоплист",
    "стоп список",
    "отписан",
    "отписана",
    "отписано",
    "отписаны",
    "отписался",
    "отписалась",
    "отписка",
    "отписки",
    "не беспокоить",
    "не писать",
    "не отправлять",
    "не присылать",
    "не слать",
    "не звонить",
    "черный список",
    "в черном списке",
];

/// Headers of opt-outs if they also contain a word of [`MESSAGES`]: `do_not_sms`.
const OPT_OUT_OF_MESSAGES: &[&str] = &["do not", "dont", "відмова", "отказ"];

/// Headers of consents, in lower case. A header matches as a whole, or without words of [`MESSAGES`] and [`FILLER`].
const CONSENT: &[&str] = &[
    "consent",
    "opt in",
    "optin",
    "opted in",
    "optedin",
    "subscribed",
    "згода",
    "згоден",
    "згодна",
    "согласие",
    "согласен",
    "согласна",
];

/// Headers of consents if they also contain a word of [`MESSAGES`]: `accepts_marketing`.
const CONSENT_TO_MESSAGES: &[&str] = &[
    "accepts",
    "accept",
    "allow",
    "allows",
    "allowed",
    "permission",
    "can",
    "receive",
    "receives",
    "wants",
    "agrees",
    "agreed",
    "підписаний",
    "підписана",
    "підписано",
    "підписався",
    "підписалась",
    "підписалася",
    "дозвіл",
    "дозволено",
    "подписан",
    "подписана",
    "подписано",
    "подписался",
    "подписалась",
    "разрешение",
    "разрешено",
];

/// Headers of states in words.
const STATUS: &[&str] = &[
    "status",
    "state",
    "subscription",
    "subscription status",
    "subscriber status",
    "статус",
    "стан",
    "состояние",
    "підписка",
    "підписки",
    "статус підписки",
    "подписка",
    "подписки",
    "статус подписки",
];

/// Values that mean yes.
const YES: &[&str] =
    &["yes", "y", "true", "t", "on", "1", "1.0", "+", "x", "✓", "✔", "☑", "так", "да", "істина", "истина"];
/// Values that mean no.
const NO: &[&str] = &["no", "n", "false", "f", "off", "0", "0.0", "ні", "нет", "хибність", "ложь"];

/// Values that mean an opt-out.
const OPTED_OUT: &[&str] = &[
    "unsubscribed",
    "unsubscribe",
    "opted out",
    "optedout",
    "opt out",
    "optout",
    "do not contact",
    "do not disturb",
    "do not send",
    "do not sms",
    "dnd",
    "dnc",
    "blacklisted",
    "blacklist",
    "suppressed",
    "відписаний",
    "відписана",
    "відписано",
    "відписався",
    "відписалась",
    "відписалася",
    "відписка",
    "не турбувати",
    "не писати",
    "не надсилати",
    "чорний список",
    "у чорному списку",
    "стоп лист",
    "отписан",
    "отписана",
    "отписано",
    "отписался",
    "отписалась",
    "отписка",
    "не беспокоить",
    "не писать",
    "не отправлять",
    "черный список",
    "в черном списке",
];
/// Values that mean a subscription.
const SUBSCRIBED: &[&str] = &[
    "subscribed",
    "subscriber",
    "opted in",
    "optedin",
    "opt in",
    "optin",
    "active",
    "підписаний",
    "підписана",
    "підписано",
    "підписався",
    "підписалась",
    "підписалася",
    "активний",
    "активна",
    "подписан",
    "подписана",
    "подписано",
    "подписался",
    "подписалась",
    "активен",
    "активна",
    "активный",
    "активная",
];

/// Values that mean a withdrawn or refused consent.
const WITHDRAWN: &[&str] = &[
    "withdrawn",
    "revoked",
    "refused",
    "denied",
    "declined",
    "rejected",
    "відкликано",
    "відкликана",
    "відмова",
    "відмовився",
    "відмовилась",
    "відмовилася",
    "отозвано",
    "отозвана",
    "отказ",
    "отказался",
    "отказалась",
];
/// Values that mean a given consent.
const GIVEN: &[&str] = &["given", "granted", "accepted", "надано", "надана", "дано", "дана", "есть", "є"];

/// The minimum number of digits in a date.
const DATE_DIGITS: usize = 6;
/// The minimum number of digits in a number of seconds since 1970.
const TIMESTAMP_DIGITS: usize = 9;

impl OptOutColumn {
    /// The kind of record in the column with this header; `None` if the column does not record opt-outs.
    pub fn from_header(header: &str) -> Option<Self> {
        let words = split_words(header.split(['(', '[']).next().unwrap_or_default());
        let whole_header = words.join(" ");
        let mentions_messages = words.iter().any(|word| MESSAGES.contains(&word.as_str()));
        let is_filler = |word: &&String| MESSAGES.contains(&word.as_str()) || FILLER.contains(&word.as_str());
        let core: Vec<&str> = words.iter().filter(|word| !is_filler(word)).map(String::as_str).collect();
        let without_status: Vec<&str> =
            core.iter().copied().filter(|word| !matches!(*word, "status" | "статус")).collect();
        // The whole header, then the header without fillers, then also without the word `status`.
        [whole_header, core.join(" "), without_status.join(" ")]
            .iter()
            .find_map(|phrase| Self::from_phrase(phrase, mentions_messages))
    }

    fn from_phrase(phrase: &str, mentions_messages: bool) -> Option<Self> {
        let is_in = |table: &[&str]| table.contains(&phrase);
        if is_in(OPT_OUT) || mentions_messages && is_in(OPT_OUT_OF_MESSAGES) {
            Some(Self::OptOut)
        } else if is_in(CONSENT) || mentions_messages && is_in(CONSENT_TO_MESSAGES) {
            Some(Self::Consent)
        } else {
            is_in(STATUS).then_some(Self::Status)
        }
    }

    /// The opt-out state that a cell of this column records; `None` if the value is unknown.
    pub fn read_state(self, value: &str) -> Option<OptOutState> {
        let value = value.trim();
        let (lowercase, phrase) = (value.to_lowercase(), split_words(value).join(" "));
        let is_in = |tables: &[&[&str]]| {
            tables.iter().any(|table| table.contains(&lowercase.as_str()) || table.contains(&phrase.as_str()))
        };
        let date = classify_date(value);
        let (opted_out, reachable) = match self {
            Self::OptOut => {
                let is_blank = value.is_empty() || date == Some(DateCell::Zero);
                (is_in(&[YES, OPTED_OUT]) || date == Some(DateCell::Given), is_blank || is_in(&[NO, SUBSCRIBED]))
            }
            Self::Consent => {
                (is_in(&[NO, OPTED_OUT, WITHDRAWN]), is_in(&[YES, SUBSCRIBED, GIVEN]) || date == Some(DateCell::Given))
            }
            Self::Status => (is_in(&[OPTED_OUT]), is_in(&[SUBSCRIBED])),
        };
        match (opted_out, reachable) {
            (true, _) => Some(OptOutState::OptedOut),
            (_, true) => Some(OptOutState::Reachable),
            _ => None,
        }
    }
}

/// Splits a header or value into words in lower case: `optOut`, `opt-out` and `OPT_OUT` are two words each.
fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut after_lower) = (Vec::new(), String::new(), false);
    for character in text.chars() {
        if matches!(character, '\'' | '’' | 'ʼ') {
            continue;
        }
        let ends_word = !character.is_alphanumeric() || after_lower && character.is_uppercase();
        if ends_word && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if character.is_alphanumeric() {
            word.extend(character.to_lowercase().map(|letter| if letter == 'ё' { 'е' } else { letter }));
        }
        after_lower = character.is_lowercase();
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// A date or a time in a cell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DateCell {
    Given,
    /// The value that databases write instead of an empty date: `0000-00-00`.
    Zero,
}

/// The kind of date in a cell. `None` if the cell is not a date or a time.
fn classify_date(value: &str) -> Option<DateCell> {
    let digits = value.chars().filter(char::is_ascii_digit).count();
    let has_separator = value.contains(['-', '.', '/', ':']);
    let is_allowed = |character: char| character.is_ascii_digit() || "-./:, +TZtzAPMapm".contains(character);
    let has_enough_digits = digits >= if has_separator { DATE_DIGITS } else { TIMESTAMP_DIGITS };
    let is_date =
        has_enough_digits && value.starts_with(|first: char| first.is_ascii_digit()) && value.chars().all(is_allowed);
    let is_zero = || value.chars().filter(char::is_ascii_digit).all(|digit| digit == '0');
    is_date.then(|| if is_zero() { DateCell::Zero } else { DateCell::Given })
}

#[cfg(test)]
mod tests {
    use super::OptOutState::{OptedOut, Reachable};
    use super::*;

    #[test]
    fn opt_outs_are_found_under_common_headers() {
        for (header, value) in [
            ("status", "unsubscribed"),
            ("Status", "Unsubscribed"),
            ("SMS status", "opted_out"),
            ("subscription_status", "OPT-OUT"),
            ("state", "do not contact"),
            ("opt_out", "yes"),
            ("Opt-Out", "TRUE"),
            ("optOut", "1"),
            ("smsOptOut", "y"),
            ("SMS Opt Out (yes/no)", "Yes"),
            ("has_opted_out", "x"),
            ("opt_out_status", "1"),
            ("opt_out_date", "2026-05-01"),
            ("unsubscribed", "true"),
            ("is_unsubscribed", "1.0"),
            ("unsubscribed_at", "2026-05-01T10:00:00Z"),
            ("unsubscribed_at", "01.05.2026 10:00"),
            ("unsubscribe time", "1714560000"),
            ("UNSUB_TIME", "5/1/2026"),
            ("do_not_sms", "1"),
            ("DoNotSMS", "true"),
            ("DoNotCall", "true"),
            ("do not contact", "Y"),
            ("don't text", "yes"),
            ("DND", "yes"),
            ("no_sms", "+"),
            ("blacklisted", "1"),
            ("stop-list", "yes"),
            ("consent", "no"),
            ("sms_consent", "false"),
            ("marketing consent", "withdrawn"),
            ("consent_status", "revoked"),
            ("opt_in", "0"),
            ("subscribed", "No"),
            ("Accepts SMS Marketing", "no"),
            ("accepts_marketing", "FALSE"),
            ("sms_allowed", "0"),
            ("статус", "відписаний"),
            ("Статус клієнта", "Відписалась"),
            ("згода", "ні"),
            ("Згода на розсилку", "НІ"),
            ("не турбувати", "так"),
            ("відписався", "так"),
            ("дата відписки", "01.02.2026"),
            ("підписка", "відписано"),
            ("підписаний на розсилку", "ні"),
            ("відмова від смс", "так"),
            ("чорний список", "1"),
            ("отписан", "да"),
            ("статус", "отписан"),
            ("Согласие", "нет"),
            ("согласие на рассылку", "отозвано"),
            ("не беспокоить", "да"),
            ("чёрный список", "да"),
            ("отказ от рассылки", "да"),
        ] {
            assert_eq!(read_opt_out_state(header, value), Some(OptedOut), "{header}={value}");
        }
    }

    #[test]
    fn reachable_recipients_are_found_under_common_headers() {
        for (header, value) in [
            ("status", "subscribed"),
            ("status", "active"),
            ("opt_out", "no"),
            ("opt_out", ""),
            ("unsubscribed_at", " "),
            ("unsubscribed_at", "0000-00-00 00:00:00"),
            ("unsubscribed", "0"),
            ("do_not_sms", "false"),
            ("consent", "yes"),
            ("consent", "2026-05-01"),
            ("opt_in", "1"),
            ("статус", "підписаний"),
            ("згода", "так"),
            ("не турбувати", "ні"),
            ("отписан", "нет"),
            ("согласие", "да"),
        ] {
            assert_eq!(read_opt_out_state(header, value), Some(Reachable), "{header}={value}");
        }
    }

    #[test]
    fn unknown_columns_and_values_have_no_opt_out_state() {
        for (header, value) in [
            ("status", "paid"),
            ("status", "cancelled"),
            ("status", "no"),
            ("status", ""),
            ("статус", "оплачено"),
            ("order status", "unsubscribed"),
            ("stop_name", "yes"),
            ("stop", "1"),
            ("bus stop", "no"),
            ("nonstop", "yes"),
            ("No", "1"),
            ("sms no", "1"),
            ("not", "1"),
            ("email_opt_out", "yes"),
            ("HasOptedOutOfEmail", "true"),
            ("unsubscribe_link", "https://example.com"),
            ("unsubscribed", "https://example.com"),
            ("unsubscribe reason", "yes"),
            ("opt_out", "maybe"),
            ("opt_out", "12"),
            ("photo consent", "no"),
            ("consent", ""),
            ("consent", "unknown"),
            ("subscription", "no"),
            ("subscription", "premium"),
            ("підписано", "ні"),
            ("подписан", "нет"),
            ("відмова", "так"),
            ("allowed", "no"),
            ("permission", "no"),
            ("contact", "no"),
            ("sms", "no"),
            ("date", "2026-05-01"),
            ("name", "Stop"),
            ("", "yes"),
        ] {
            assert_eq!(read_opt_out_state(header, value), None, "{header}={value}");
        }
    }
}
