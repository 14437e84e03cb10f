//! Codes in the list, and the same link for everybody.

use crate::check::Survey;
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::CampaignBrief;

pub(super) static RULE: Rule = Rule::note(
    "same-link",
    RuleText {
        cause: "All recipients get the same link. The list has codes that no message uses.",
        example: &["message: \"Hi, {{ first_name }}! https://shop.example\""],
        fix: "add the code to the link, for example `https://shop.example/?c={{ code }}`, unless all recipients should \
            get the same link",
    },
);

/// What headers of codes contain, in small letters.
const CODES: [&str; 12] =
    ["code", "promo", "coupon", "token", "voucher", "url", "link", "utm", "код", "промо", "купон", "посилання"];

/// That the link is the same for everybody although the list has codes that no text uses.
#[must_use]
pub(super) fn check_constant_link(survey: &Survey, brief: &CampaignBrief) -> Option<Finding> {
    let texts = || {
        brief
            .all_contents()
            .flat_map(|content| &content.stages)
            .flat_map(|stage| stage.texts())
            .map(|(_, text)| &text.source)
    };
    let links = texts().filter(|source| source.contains("https://")).count();
    let column = survey.columns.iter().find(|column| !column.is_used && is_code(&column.header))?;
    if links == 0 || survey.count_planned() < 2 {
        return None;
    }
    let message = format!("all recipients get the same link, and no message uses the column `{}`", column.header);
    Some(Finding::new(&RULE, message).help("to see who opens the link, add the value of this column to the link"))
}

fn is_code(header: &str) -> bool {
    let header = header.to_lowercase();
    CODES.iter().any(|code| header.contains(code))
}
