//! Duplicate rows that are skipped although their message differs from the one that is sent.

use roaring::RoaringBitmap;

use super::rows::describe_named_rows;
use crate::check::Survey;
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::Campaign;

pub(super) static RULE: Rule = Rule::warning(
    "differing-duplicates",
    RuleText {
        cause: "A skipped duplicate has a different message. Only the first row with each number gets one.",
        example: &[
            "message: \"Lesson for {{ first_name }}\"",
            "list.csv: phone,first_name",
            "          380501234567,Olena",
            "          380501234567,Taras",
        ],
        fix: "correct the list; to send a message for each row, write `duplicates: allow`",
    },
);

/// The skipped rows whose messages differ from the one that their number gets.
#[must_use]
pub fn check_differing_duplicates(survey: &Survey, campaign: &Campaign) -> Option<Finding> {
    let finding = duplicates_finding(&survey.differing_duplicates)?;
    let place =
        campaign.places.locate_key("recipients.duplicates").or_else(|| campaign.places.locate_key("recipients.file"));
    Some(finding.at(place))
}

fn duplicates_finding(rows: &RoaringBitmap) -> Option<Finding> {
    if rows.is_empty() {
        return None;
    }
    let message = match rows.len() {
        1 => format!("{} skipped: its number is in an earlier row with a different message", describe_named_rows(rows)),
        _ => {
            format!("{} skipped: their numbers are in earlier rows with different messages", describe_named_rows(rows))
        }
    };
    let help = "if each number should get only one message, correct the list; to send a message for each row, write \
                `duplicates: allow` under `recipients`";
    Some(Finding::new(&RULE, message).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_rows_are_named_if_there_are_any() {
        let told = |rows: &[u32]| duplicates_finding(&rows.iter().copied().collect()).map(|finding| finding.message);
        assert_eq!(told(&[]), None);
        assert!(told(&[3]).unwrap().starts_with("row 3 is skipped: its number"));
        assert!(told(&[3, 5]).unwrap().starts_with("rows 3 and 5 are skipped: their numbers"));
    }
}
