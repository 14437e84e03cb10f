//! Messages to numbers that are no mobile phones'.

use super::rows::describe_first_few;
use crate::check::Survey;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "landline",
    RuleText {
        cause: "The list contains a landline number. Landlines cannot receive SMS, Viber, RCS, Telegram or WhatsApp \
            messages, but the gateway charges for them.",
        example: &["list.csv: phone,first_name", "          380442345678,Olena"],
        fix: "ask these recipients for a mobile number, or remove their rows",
    },
);

/// The rows to be sent to whose number is no mobile phone's, with how many there are and the first.
#[must_use]
pub fn check_landlines(survey: &Survey) -> Option<Finding> {
    let rows = &survey.landlines;
    let what = if rows.len() == 1 { "has a landline or service number" } else { "have landline or service numbers" };
    let finding =
        Finding::new(&RULE, format!("{} {what}, which cannot receive this message", describe_first_few(rows)));
    let help = match rows.len() {
        1 => "ask for a mobile number, or remove this row from the list",
        _ => "ask for mobile numbers, or remove these rows from the list",
    };
    (!rows.is_empty()).then(|| finding.help(help))
}
