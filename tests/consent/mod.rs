//! Consent to marketing: required by every command that sends, and recorded as evidence that outlives the list.

mod evidence;
mod required;

use jiff::{Timestamp, ToSpan as _, tz::TimeZone};

use crate::support::{Draft, campaign, phone};

/// The keys for the columns of [`list_with_consents`].
const COLUMNS: &str =
    "consent: { column: Згода, at: Дата згоди, source: Звідки, wording: Текст, valid_for: 24 months }";

/// The date this many days ago.
fn days_ago(days: i64) -> String {
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    today.checked_sub(days.days()).expect("a day").to_string()
}

/// A list with a row for each of these consents, from row 2. Each consent is written as `ANSWER DATE`.
fn list_with_consents(consents: &[&str]) -> String {
    let mut list = "phone,name,Згода,Дата згоди,Звідки,Текст\n".to_owned();
    for (row, consent) in (2..).zip(consents) {
        let (answer, at) = consent.split_once(' ').unwrap_or((consent, ""));
        list += &format!("{},Person {row},{answer},{at},form {row},I agree\n", phone(row));
    }
    list
}

/// A campaign that needs consent, to rows with these consents.
fn consenting_campaign(consents: &[&str]) -> Draft {
    campaign().with_list(&list_with_consents(consents)).recipients(COLUMNS).top("consent: required")
}
