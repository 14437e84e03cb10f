//! SMS that have more parts because of a few characters.

use std::cmp::Reverse;

use crate::check::{CostlyRows, Survey};
use crate::domain::{self, CostlyCharacters, Stage, keyboard_replacement};
use crate::finding::{Finding, Rule, RuleText};
use crate::manifest::{CampaignBrief, Profile};

pub(super) static RULE: Rule = Rule::warning(
    "costly-character",
    RuleText {
        cause: "A character makes an SMS longer. With characters outside the GSM alphabet, a part has room for 67 \
                characters instead of 153, and each part is billed.",
        example: &["message: \"It’s your last chance to save 20% on everything, online and in all of our shops.\""],
        fix: "use another character, let `plain: quotes` or `plain: latin` replace it, or accept the extra cost",
    },
);

/// The most groups of characters that are told.
const MAX_NAMED: usize = 5;

/// The characters that make SMS longer, those that cost most first, with the price where the profile has one.
#[must_use]
pub fn check_costly_characters(survey: &Survey, brief: &CampaignBrief, profile: Option<&Profile>) -> Vec<Finding> {
    let mut costly: Vec<_> = survey.costly.iter().collect();
    costly.sort_by_key(|(_, costly)| Reverse(costly.extra_parts));
    // Behind another channel not everybody gets the SMS.
    let arms = brief.list_arms();
    let about = if arms.iter().any(|arm| arm.content.stages.len() > 1) { "at most" } else { "about" };
    let mut channels = arms.iter().flat_map(|arm| &arm.content.stages).map(Stage::channel);
    let billed = channels.find(|channel| channel.facts().billed_by_part);
    let price = |more: u64| {
        let profile = profile?;
        let price = profile.price_per_message(billed?)?.saturating_mul(more);
        Some(format!(", {about} {price} {}", profile.currency.as_deref().unwrap_or_default()).trim_end().to_owned())
    };
    let finding = |(characters, costly): (&Vec<char>, &CostlyRows)| {
        let CostlyRows { rows, extra_parts: more, first: (parts, without) } = costly;
        let (names, make) = (format_characters(characters), if characters.len() == 1 { "makes" } else { "make" });
        let row = rows.min().unwrap_or_default();
        let mut message = format!("{names} in row {row} {make} the SMS {parts} parts instead of {without}");
        if rows.len() > 1 {
            message += &format!("; in total, {more} extra parts in {} rows", rows.len());
        }
        message += &price(*more).unwrap_or_default();
        Finding::new(&RULE, message).help(format_help(characters))
    };
    costly.into_iter().take(MAX_NAMED).map(finding).collect()
}

/// The characters that make a single SMS longer.
pub(super) fn check_message(text: &str) -> Option<Finding> {
    let CostlyCharacters { characters, parts, without } = domain::find_costly_characters(text)?;
    let make = if characters.len() == 1 { "makes" } else { "make" };
    let message = format!("{} {make} the SMS {parts} parts instead of {without}", format_characters(&characters));
    let typed: Option<Vec<&str>> = characters.iter().map(|c| keyboard_replacement(*c)).collect();
    let help = match typed {
        Some(typed) => format!("write {} instead", typed.into_iter().map(quote).collect::<Vec<_>>().join(" and ")),
        None => "use another character, or accept the extra cost".to_owned(),
    };
    Some(Finding::new(&RULE, message).help(help))
}

/// The characters with their codes, since some only look like others.
fn format_characters(characters: &[char]) -> String {
    let name = |c: &char| format!("`{c}` (U+{:04X})", u32::from(*c));
    characters.iter().map(name).collect::<Vec<_>>().join(" and ")
}

/// What to write instead.
fn format_help(characters: &[char]) -> String {
    let typed: Option<Vec<&str>> = characters.iter().map(|c| keyboard_replacement(*c)).collect();
    match typed {
        Some(mut typed) => {
            typed.dedup();
            let typed: Vec<String> = typed.into_iter().map(quote).collect();
            format!("write {} instead, or set `plain: quotes` for the SMS", typed.join(" and "))
        }
        None if characters.iter().all(|c| "[]{}".contains(*c)) => "write `(` and `)` instead".to_owned(),
        None if characters.iter().all(|c| "^\\~|€\u{c}".contains(*c)) => match characters {
            [_] => "remove this character, which counts as two, or accept the extra cost".to_owned(),
            _ => "remove these characters, which count as two each, or accept the extra cost".to_owned(),
        },
        None => "use another character, or set `plain: latin` for the SMS".to_owned(),
    }
}

fn quote(instead: &str) -> String {
    match instead {
        "" => "nothing".to_owned(),
        " " => "an ordinary space".to_owned(),
        "\n" => "an ordinary line break".to_owned(),
        typed => format!("`{typed}`"),
    }
}
