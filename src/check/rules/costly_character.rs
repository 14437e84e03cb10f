//! SMS that have more parts because of a few characters.

use super::rows::first_of;
use crate::check::Survey;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "costly-character",
    "A character that the GSM alphabet lacks makes a part of an SMS hold 67 characters instead of 153, and some that it has \
     count twice; each part is billed.",
    "Write another character in its place, or accept the price.",
);

/// The most characters that are told.
const TOLD: usize = 5;
/// What is written on a keyboard for what typesetting has, and blanks that only look like one.
const INSTEAD: [(&str, &str); 8] = [
    ("\u{2018}\u{2019}\u{02bc}\u{2032}`\u{00b4}", "'"),
    ("\u{201c}\u{201d}\u{201e}\u{00ab}\u{00bb}", "\""),
    ("\u{2010}\u{2011}\u{2012}\u{2013}\u{2014}\u{2212}", "-"),
    ("\u{2026}", "..."),
    ("\u{00a0}\u{202f}\u{2009}", "an ordinary space"),
    ("\u{2022}\u{00b7}", "-"),
    ("\u{20ac}", "EUR"),
    ("[{]}", "( or )"),
];

/// The characters that make SMS longer, those of most messages first.
#[must_use]
pub fn costly_characters(survey: &Survey) -> Vec<Finding> {
    let mut costly: Vec<_> = survey.costly.iter().collect();
    costly.sort_by_key(|(_, rows)| std::cmp::Reverse(rows.len()));
    let finding = |(character, rows): (&char, _)| {
        let code = u32::from(*character);
        let finding =
            Finding::new(&RULE, format!("`{character}` (U+{code:04X}) makes the SMS longer in {}", first_of(rows)));
        let instead = INSTEAD.iter().find(|(characters, _)| characters.contains(*character));
        match instead {
            Some((_, instead)) => finding.help(format!("write {} instead", quoted(instead))),
            None => finding.help("leave it out, or accept the price of another part"),
        }
    };
    costly.into_iter().take(TOLD).map(finding).collect()
}

fn quoted(instead: &str) -> String {
    if instead.contains(' ') { instead.to_owned() } else { format!("`{instead}`") }
}
