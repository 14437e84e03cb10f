//! `campaign explain`: the cause, an example and the fix of a rule, or the list of all rules.

use serde_json::{Value, json};

use super::args::ExplainArgs;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use campaign_core::finding::{Rule, did_you_mean, severity_word};
use campaign_engine::check::rules::{RuleGroup, all_rules, rule_groups};

/// The maximum width of an explanation, in characters.
const MAX_WIDTH: usize = 100;

pub(super) fn explain_rule(context: &Context, args: &ExplainArgs) -> Result<u8, CommandFailure> {
    let output = &context.output;
    let Some(typed) = &args.rule else {
        if output.json {
            let group_rules =
                |group: &RuleGroup| group.rules.iter().map(|rule| rule_json(rule, group)).collect::<Vec<_>>();
            let rules: Vec<Value> = rule_groups().iter().flat_map(group_rules).collect();
            output.print_object(&json!({ "rules": rules, "exit": exit::SUCCESS }));
        } else {
            output.print_result(rule_groups().iter().map(format_group).collect::<Vec<_>>().join("\n"));
        }
        return Ok(exit::SUCCESS);
    };
    let id = parse_rule_id(typed);
    let rule_and_group =
        rule_groups().into_iter().find_map(|group| Some((*group.rules.iter().find(|rule| rule.id == id)?, group)));
    let Some((rule, group)) = rule_and_group else {
        return Err(unknown_rule(&id));
    };
    if output.json {
        let mut object = rule_json(rule, &group);
        object["exit"] = exit::SUCCESS.into();
        output.print_object(&object);
    } else {
        output.print_result(explanation_page(rule));
    }
    Ok(exit::SUCCESS)
}

/// Extracts the rule id from the argument, which might be copied from a finding: `warning[empty-cell]:`.
fn parse_rule_id(typed: &str) -> String {
    typed.split_once('[').map_or(typed, |(_, rest)| rest).trim_end_matches([']', ':']).to_lowercase()
}

fn unknown_rule(id: &str) -> CommandFailure {
    let help = match did_you_mean(id, all_rules().map(|rule| rule.id)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "list all rules with `campaign explain`".to_owned(),
    };
    CommandFailure::invalid(format!("unknown rule `{id}`")).with_help(help)
}

/// Formats the explanation of a rule in at most ten lines.
fn explanation_page(rule: &Rule) -> String {
    let example: String = rule.text.example.iter().map(|line| format!("  {line}\n")).collect();
    format!(
        "{} · {}\n{}\nExample:\n{example}\n{}",
        rule.id,
        severity_word(rule.severity),
        wrap_text(rule.text.cause),
        wrap_text(&format!("Fix: {}", rule.text.fix)),
    )
}

/// Wraps a text at [`MAX_WIDTH`] characters. Code between backticks can be broken at spaces, too.
fn wrap_text(text: &str) -> String {
    let mut lines = String::with_capacity(text.len() + 2);
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > MAX_WIDTH {
            lines.push('\n');
            width = 0;
        } else if width > 0 {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += length;
    }
    lines + "\n"
}

/// Formats a group of rules, one rule on each line.
fn format_group(group: &RuleGroup) -> String {
    let width = group.rules.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    let line =
        |rule: &&Rule| format!("  {:<width$}  {:<7}  {}\n", rule.id, severity_word(rule.severity), rule.text.summary());
    let rules: String = group.rules.iter().map(line).collect();
    format!("{}:\n{rules}", group.title)
}

fn rule_json(rule: &Rule, group: &RuleGroup) -> Value {
    json!({
        "rule": rule.id,
        "severity": severity_word(rule.severity),
        "about": group.title,
        "summary": rule.text.summary(),
        "why": rule.text.cause,
        "example": rule.text.example.join("\n"),
        "mend": rule.text.fix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanation_has_three_parts_in_at_most_ten_lines() {
        for rule in all_rules() {
            let page = explanation_page(rule);
            let lines: Vec<&str> = page.lines().collect();
            assert!(lines.len() <= 10, "{} has {} lines", rule.id, lines.len());
            let wide = lines.iter().find(|line| line.chars().count() > MAX_WIDTH);
            assert_eq!(wide, None, "{} is wider than {MAX_WIDTH}", rule.id);
            let part = |start: &str| lines.iter().position(|line| line.starts_with(start));
            let (example, fix) = (part("Example:"), part("Fix: "));
            assert!(example > Some(2) && fix > example.map(|line| line + 2), "{page}");
        }
    }

    #[test]
    fn list_of_rules_fits_in_80_columns() {
        for group in rule_groups() {
            let list = format_group(&group);
            let wide = list.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{}", group.title);
            assert_eq!(list.lines().count(), group.rules.len() + 1);
        }
    }

    #[test]
    fn rule_id_is_parsed_from_a_finding() {
        for typed in ["empty-cell", "warning[empty-cell]", "warning[empty-cell]:", "Empty-Cell"] {
            assert_eq!(parse_rule_id(typed), "empty-cell");
        }
    }
}
