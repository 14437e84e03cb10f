//! Lists in which no row gets a message.

use std::cmp::Reverse;

use crate::check::{ALREADY_SENT, Survey};
use crate::domain::{format_count, format_thousands};
use crate::finding::{Finding, Rule, RuleText};
use crate::ledger::{CANCELLED_EARLIER, CAPPED, OPTED_OUT, RowState};
use crate::manifest::CampaignBrief;

pub(super) static RULE: Rule = Rule::warning(
    "no-messages",
    RuleText {
        cause: "No row of the list gets a message. This might be the wrong list, or the campaign might already have \
                been sent.",
        example: &["list.csv: phone,first_name", "          38050,Olena"],
        fix: "check the reasons in the finding; to send to the same recipients again, set a new `edition`",
    },
);

/// How many reasons a finding names; it counts the others together.
const MAX_NAMED: usize = 5;

/// A warning that no row gets a message, with the reasons. `None` if a row does, or with `empty: ok`.
#[must_use]
pub fn check_no_messages(survey: &Survey, brief: &CampaignBrief) -> Option<Finding> {
    if survey.recipients == 0 || survey.count_planned() > 0 || brief.may_be_empty {
        return None;
    }
    let sets = survey.left_out.sets().filter(|(_, _, rows)| !rows.is_empty());
    let mut reasons: Vec<_> = sets.map(|(state, reason, rows)| (state, reason, rows.len())).collect();
    reasons.sort_by_key(|(_, _, rows)| Reverse(*rows));
    let (named, others) = reasons.split_at(reasons.len().min(MAX_NAMED));
    let mut counts: Vec<String> =
        named.iter().map(|(state, reason, rows)| describe_reason(*state, reason, *rows)).collect();
    if !others.is_empty() {
        let rows = others.iter().map(|(_, _, rows)| rows).sum();
        counts.push(format!("{} for {}", format_thousands(rows), format_count(others.len() as u64, "other reason")));
    }
    let whom = match survey.recipients {
        1 => "the only row gets no message".to_owned(),
        rows => format!("none of the {} gets a message", format_count(rows, "row")),
    };
    let message = format!("{whom}: {}", counts.join(", "));
    let help = reasons.first().map_or("", |(state, reason, _)| advice(*state, reason));
    Some(Finding::new(&RULE, message).help(help))
}

fn describe_reason(state: RowState, reason: &str, rows: u64) -> String {
    match state {
        RowState::Invalid => format!("{} invalid ({reason})", format_thousands(rows)),
        _ => format!("{} {reason}", format_thousands(rows)),
    }
}

/// What to do about the commonest reason.
fn advice(state: RowState, reason: &str) -> &'static str {
    match (state, reason) {
        (RowState::Invalid, _) => "correct the list or the message, so that the rows become valid",
        (_, ALREADY_SENT | CANCELLED_EARLIER) => "to send to these recipients again, set a new `edition`",
        (_, OPTED_OUT) => "check whether this is the right list; these recipients opted out",
        (_, CAPPED) => "send later, when the cap allows these recipients to get messages again",
        _ => "check the list and the keys that skip recipients: `where`, `exclude`, `holdout`",
    }
}
