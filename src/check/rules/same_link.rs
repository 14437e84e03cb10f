//! Codes in the list, and the same link for everybody.

use crate::check::Survey;
use crate::finding::{Finding, Rule};
use crate::manifest::Brief;

pub(super) static RULE: Rule = Rule::note(
    "same-link",
    "A list with a code or a link for each person is often meant to have it in the link, so that one knows who came.",
    "Write it into the link, such as `https://shop.example/?c={{ code }}`; if it is meant so, all is well.",
);

/// What headers of codes contain, in small letters.
const CODES: [&str; 12] =
    ["code", "promo", "coupon", "token", "voucher", "url", "link", "utm", "код", "промо", "купон", "посилання"];

/// That the link is the same for everybody although the list has codes that no text uses.
#[must_use]
pub(super) fn judge(survey: &Survey, brief: &Brief) -> Option<Finding> {
    let texts = || {
        brief
            .contents()
            .flat_map(|content| &content.stages)
            .flat_map(|stage| stage.texts())
            .map(|(_, text)| &text.source)
    };
    let links = texts().filter(|source| source.contains("https://")).count();
    let column = survey.columns.iter().find(|column| !column.used && is_code(&column.header))?;
    if links == 0 || survey.planned() < 2 {
        return None;
    }
    let message = format!("the link is the same for everybody, and no text uses the column `{}`", column.header);
    Some(Finding::new(&RULE, message).help("write it into the link if it is meant to tell who came"))
}

fn is_code(header: &str) -> bool {
    let header = header.to_lowercase();
    CODES.iter().any(|code| header.contains(code))
}
