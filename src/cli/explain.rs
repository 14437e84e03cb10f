//! `campaign explain`: why a rule is one, and how to mend what breaks it.

use serde_json::{Value, json};

use super::args::ExplainArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use crate::check::rules::{RuleGroup, all, groups};
use crate::finding::{Rule, did_you_mean, severity_word};

pub(super) fn explain(context: &Context, args: &ExplainArgs) -> Result<u8, Failure> {
    let output = &context.output;
    let Some(id) = &args.rule else {
        if output.json {
            let rules: Vec<Value> = groups()
                .iter()
                .flat_map(|group| group.rules.iter().map(|rule| object(rule, group)).collect::<Vec<_>>())
                .collect();
            output.object(&json!({ "rules": rules, "exit": exit::FINE }));
        } else {
            output.summary(&groups().iter().map(listed).collect::<Vec<_>>().join("\n"));
        }
        return Ok(exit::FINE);
    };
    // As it stands in a finding, too: `warning[empty-cell]`.
    let id = id.split_once('[').map_or(id.as_str(), |(_, rest)| rest).trim_end_matches([']', ':']).to_lowercase();
    let found = groups().into_iter().find_map(|group| Some((*group.rules.iter().find(|rule| rule.id == id)?, group)));
    let Some((rule, group)) = found else {
        let help = match did_you_mean(&id, all().map(|rule| rule.id)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`campaign explain` without a rule lists them all".to_owned(),
        };
        return Err(Failure::wrong(format!("there is no rule `{id}`; {help}")));
    };
    if output.json {
        let mut told = object(rule, &group);
        told["exit"] = exit::FINE.into();
        output.object(&told);
    } else {
        let severity = severity_word(rule.severity);
        output.summary(&format!("{} · {severity} · {}\n\n{}\n\n{}\n", rule.id, group.title, rule.why, rule.mend));
    }
    Ok(exit::FINE)
}

/// The rules of a group as a person looks them up.
fn listed(group: &RuleGroup) -> String {
    let rules: String = group
        .rules
        .iter()
        .map(|rule| format!("  {:<28} {:<8} {}\n", rule.id, severity_word(rule.severity), rule.why))
        .collect();
    format!("{}:\n{rules}", group.title)
}

fn object(rule: &Rule, group: &RuleGroup) -> Value {
    json!({
        "rule": rule.id,
        "severity": severity_word(rule.severity),
        "about": group.title,
        "why": rule.why,
        "mend": rule.mend,
    })
}
