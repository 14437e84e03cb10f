//! Messages to numbers that are no mobile phones'.

use super::rows::first_few;
use crate::check::Survey;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "landline",
    "A landline or a service number gets no SMS, and nobody has Viber, RCS, Telegram or WhatsApp there: such a message is charged and \
     never seen.",
    "Ask these people for a mobile number, or take their rows out of the list.",
);

/// The rows to be sent to whose number is no mobile phone's, with how many there are and the first.
#[must_use]
pub fn landlines(survey: &Survey) -> Option<Finding> {
    let rows = &survey.landlines;
    let what = if rows.len() == 1 {
        "is the number of a landline or a service"
    } else {
        "are numbers of landlines or services"
    };
    let finding = Finding::new(&RULE, format!("{} {what}, which get none of this message's channels", first_few(rows)));
    (!rows.is_empty()).then(|| finding.help("ask for mobile numbers, or take these rows out of the list"))
}
