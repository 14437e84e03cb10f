//! The errors of the messages that a retry sends again, if sending some of them again does not help.

use super::suggested::Options;
use crate::domain::{LastingError, thousands};
use crate::finding::{one_line, quoted};
use crate::ledger::State;
use crate::runs::{RetriedError, RetryScope};

/// How many errors are listed, and how many a suggested command names.
const LISTED: usize = 8;
const NAMED: usize = 4;
/// The most characters of an error in a suggested command.
const LONGEST: usize = 80;
/// What `retry` sends without `--state`.
const DEFAULT_STATES: [State; 2] = [State::Rejected, State::NotSent];

/// Lines that say how many messages have which error, and the command that sends only the others again. Empty if sending all
/// of them again can help.
pub(super) fn lines(options: &Options, run: &str, errors: &[RetriedError], scope: &RetryScope) -> Vec<String> {
    let (lasting, others): (Vec<&RetriedError>, Vec<&RetriedError>) =
        errors.iter().partition(|error| LastingError::of(&error.text).is_some());
    if lasting.is_empty() {
        return Vec::new();
    }
    let mut sorted: Vec<&RetriedError> = errors.iter().collect();
    sorted.sort_by_key(|error| std::cmp::Reverse(error.rows));
    let mut lines: Vec<String> = sorted.iter().take(LISTED).map(|error| line(error)).collect();
    if sorted.len() > LISTED {
        let rows: u64 = sorted[LISTED..].iter().map(|error| error.rows).sum();
        lines.push(format!("  {} with other errors", thousands(rows)));
    }
    let rows: u64 = lasting.iter().map(|error| error.rows).sum();
    let again = format!("retrying {} of these messages does not help", thousands(rows));
    lines.push(match command(options, run, (&lasting, &others), &scope.states) {
        Some(command) => format!("{again}; to retry only the others: {command}"),
        None if others.is_empty() => again,
        None => format!("{again}; to retry only some errors, add `--error TEXT`"),
    });
    lines
}

fn line(RetriedError { state, text, rows }: &RetriedError) -> String {
    let (rows, state) = (thousands(*rows), state.words());
    let advice = match LastingError::of(text) {
        Some(LastingError::InvalidNumber) => " (correct the number in the list and run the campaign again)",
        Some(LastingError::OptedOut) => " (add the number with `campaign suppress add`)",
        Some(LastingError::EmptyText) => " (correct the message text and run the campaign with `--accept-changes`)",
        None => "",
    };
    let text = if text.is_empty() { String::new() } else { format!(": {}", one_line(text)) };
    format!("  {rows} {state}{text}{advice}")
}

/// The command that sends only the others again. `None` if no `--error` tells them from the lasting errors.
fn command(
    options: &Options,
    run: &str,
    (lasting, others): (&[&RetriedError], &[&RetriedError]),
    states: &[State],
) -> Option<String> {
    let shortened = |text: &str| -> String { text.lines().next().unwrap_or_default().chars().take(LONGEST).collect() };
    let mut texts: Vec<String> = others.iter().map(|error| shortened(&error.text)).collect();
    texts.sort_unstable();
    texts.dedup();
    let matched = |text: &String| {
        let text = text.to_lowercase();
        text.trim().is_empty() || lasting.iter().any(|error| error.text.to_lowercase().contains(&text))
    };
    if texts.is_empty() || texts.len() > NAMED || texts.iter().any(matched) {
        return None;
    }
    let errors: String = texts.iter().map(|text| format!(" --error {}", quoted(text))).collect();
    let names: Vec<&str> = states.iter().map(|state| state.name()).collect();
    let state = if states == DEFAULT_STATES { String::new() } else { format!(" --state {}", names.join(",")) };
    Some(options.command(format!("retry {run}{state}{errors}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::RunId;

    const NUMBER: &str = "Please enter valid receiver phone number";

    fn told(errors: &[(State, &str, u64)], states: &[State]) -> Vec<String> {
        let errors: Vec<RetriedError> =
            errors.iter().map(|&(state, text, rows)| RetriedError { state, text: text.to_owned(), rows }).collect();
        let scope = RetryScope { run: RunId(1), states: states.to_vec(), errors: Vec::new() };
        lines(&Options::default(), "sale@1", &errors, &scope)
    }

    #[test]
    fn retry_lists_errors_only_if_some_are_lasting() {
        assert!(told(&[(State::Rejected, "No route", 7)], &DEFAULT_STATES).is_empty());
        let lines = told(&[(State::Rejected, NUMBER, 2), (State::Rejected, "No route", 7)], &DEFAULT_STATES);
        assert_eq!(lines[0], "  7 rejected: No route");
        assert!(lines[1].starts_with(&format!("  2 rejected: {NUMBER} (correct the number")), "{lines:?}");
        let last = "retrying 2 of these messages does not help; to retry only the others: campaign retry sale@1 --error \
                    'No route'";
        assert_eq!(lines[2], last);
        assert_eq!(
            told(&[(State::Rejected, NUMBER, 1)], &DEFAULT_STATES)[1],
            "retrying 1 of these messages does not help"
        );
    }

    #[test]
    fn retry_suggestion_repeats_states_and_names_each_error() {
        let errors = [
            (State::Failed, "INVALID DESTINATION ADDRESS", 1),
            (State::Failed, "NO ROUTE", 2),
            (State::Failed, "EXPIRED", 3),
        ];
        let last = told(&errors, &[State::Failed]).pop().unwrap();
        assert!(last.ends_with("campaign retry sale@1 --state failed --error EXPIRED --error 'NO ROUTE'"), "{last}");
    }

    #[test]
    fn retry_suggests_no_command_that_includes_lasting_errors() {
        for other in ["", "phone number"] {
            let last =
                told(&[(State::Rejected, NUMBER, 1), (State::NotSent, other, 2)], &DEFAULT_STATES).pop().unwrap();
            assert!(last.ends_with("add `--error TEXT`"), "{last}");
        }
    }
}
