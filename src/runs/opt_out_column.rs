//! The words for opting out in the columns of other programs' lists: which header and value mean that a recipient opted out.
//! Pure.
//!
//! A private copy: other checks of list columns need the same table, so it is meant to move to `domain`.

/// What a cell says about a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptOutState {
    /// The recipient opted out.
    OptedOut,
    /// The recipient can be sent to.
    Reachable,
}

/// What the cells of a column answer.
enum Meaning {
    /// The state in words: `unsubscribed`.
    Status,
    /// Whether the recipient opted out: `opt_out=yes`.
    OptOut,
    /// Whether the recipient consents: `consent=no`.
    Consent,
}

const STATUS: &[&str] = &[
    "status",
    "state",
    "subscriptionstatus",
    "subscriberstatus",
    "smsstatus",
    "contactstatus",
    "marketingstatus",
    "статус",
    "стан",
    "состояние",
    "статуспідписки",
    "статусподписки",
    "статусконтакту",
    "статусконтакта",
    "розсилка",
    "рассылка",
];
const OPT_OUT: &[&str] = &[
    "optout",
    "optedout",
    "smsoptout",
    "unsubscribed",
    "unsubscribe",
    "isunsubscribed",
    "donotsms",
    "donotcontact",
    "donotcall",
    "donotdisturb",
    "donotsend",
    "dnd",
    "dnc",
    "stop",
    "stoplist",
    "blacklist",
    "blacklisted",
    "blocked",
    "відписаний",
    "відписка",
    "відписався",
    "відписано",
    "відмова",
    "стоплист",
    "чорнийсписок",
    "нетурбувати",
    "отписан",
    "отписка",
    "отписался",
    "отказ",
    "стоплист",
    "черныйсписок",
    "чёрныйсписок",
    "небеспокоить",
];
const CONSENT: &[&str] = &[
    "consent",
    "smsconsent",
    "marketingconsent",
    "optin",
    "optedin",
    "smsoptin",
    "subscribed",
    "issubscribed",
    "subscription",
    "agreed",
    "active",
    "isactive",
    "згода",
    "підписаний",
    "підписка",
    "підписано",
    "активний",
    "согласие",
    "подписан",
    "подписка",
    "активен",
    "активный",
];
const OPTED_OUT_WORDS: &[&str] = &[
    "unsubscribed",
    "unsubscribe",
    "unsub",
    "optout",
    "optedout",
    "stop",
    "stopped",
    "inactive",
    "blocked",
    "blacklisted",
    "refused",
    "declined",
    "withdrawn",
    "revoked",
    "donotcontact",
    "notsubscribed",
    "відписаний",
    "відписана",
    "відписано",
    "відписався",
    "відписалася",
    "відписалась",
    "відписка",
    "неактивний",
    "неактивна",
    "відмова",
    "відмовився",
    "відмовилася",
    "відмовилась",
    "заблокований",
    "заблокована",
    "непідписаний",
    "непідписана",
    "отписан",
    "отписана",
    "отписано",
    "отписался",
    "отписалась",
    "отписка",
    "неактивен",
    "неактивна",
    "неактивный",
    "неактивная",
    "отказ",
    "отказался",
    "отказалась",
    "заблокирован",
    "заблокирована",
    "неподписан",
    "неподписана",
    "стоп",
];
const REACHABLE_WORDS: &[&str] = &[
    "subscribed",
    "subscribe",
    "active",
    "optin",
    "optedin",
    "confirmed",
    "granted",
    "enabled",
    "підписаний",
    "підписана",
    "підписано",
    "підписався",
    "підписалася",
    "підписалась",
    "активний",
    "активна",
    "підтверджено",
    "подписан",
    "подписана",
    "подписано",
    "подписался",
    "подписалась",
    "активен",
    "активна",
    "активный",
    "активная",
    "подтверждено",
];
const YES: &[&str] = &["yes", "y", "true", "t", "1", "on", "x", "так", "да", "є", "есть", "+", "✓", "✔"];
const NO: &[&str] = &["no", "n", "false", "f", "0", "off", "ні", "нет", "немає", "-"];

/// What a cell of a column with this header says; nothing if the column is about something else, or the cell is empty or
/// unknown.
pub(crate) fn opt_out_state(header: &str, value: &str) -> Option<OptOutState> {
    let meaning = meaning(header)?;
    let (word, sign) = (squashed(value), value.trim().to_lowercase());
    let is = |table: &[&str]| !sign.is_empty() && (table.contains(&word.as_str()) || table.contains(&sign.as_str()));
    match meaning {
        _ if is(OPTED_OUT_WORDS) => Some(OptOutState::OptedOut),
        _ if is(REACHABLE_WORDS) => Some(OptOutState::Reachable),
        Meaning::OptOut if is(YES) => Some(OptOutState::OptedOut),
        Meaning::OptOut if is(NO) => Some(OptOutState::Reachable),
        Meaning::Consent if is(YES) => Some(OptOutState::Reachable),
        Meaning::Consent if is(NO) => Some(OptOutState::OptedOut),
        _ => None,
    }
}

fn meaning(header: &str) -> Option<Meaning> {
    let header = squashed(header);
    let is = |table: &[&str]| table.contains(&header.as_str());
    match () {
        () if is(STATUS) => Some(Meaning::Status),
        () if is(OPT_OUT) => Some(Meaning::OptOut),
        () if is(CONSENT) => Some(Meaning::Consent),
        () => None,
    }
}

/// A text without case, spaces, dashes and other signs: `Opt-Out` and `opt_out` become `optout`.
pub(super) fn squashed(text: &str) -> String {
    text.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_three_languages_are_known_in_any_spelling() {
        use OptOutState::{OptedOut, Reachable};
        for (header, value, state) in [
            ("status", "Unsubscribed", Some(OptedOut)),
            ("Subscription status", "opt-in", Some(Reachable)),
            ("STATUS", "opted out", Some(OptedOut)),
            ("Статус", "відписаний", Some(OptedOut)),
            ("Статус", "підписана", Some(Reachable)),
            ("Статус", "Неактивен", Some(OptedOut)),
            ("Состояние", "подписан", Some(Reachable)),
            ("state", "inactive", Some(OptedOut)),
            ("opt_out", "yes", Some(OptedOut)),
            ("OptOut", "0", Some(Reachable)),
            ("do_not_sms", "1", Some(OptedOut)),
            ("consent", "no", Some(OptedOut)),
            ("Згода", "так", Some(Reachable)),
            ("subscribed", "-", Some(OptedOut)),
            ("active", "✓", Some(Reachable)),
            ("consent", "", None),
            ("status", "yes", None),
            ("status", "VIP", None),
            ("city", "active", None),
            ("", "unsubscribed", None),
        ] {
            assert_eq!(opt_out_state(header, value), state, "{header}={value}");
        }
    }
}
