//! The groups of commands in `campaign --help`.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};

use super::STYLES;

/// Each group with its commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Write", &["init", "check", "explain", "preview", "schema"]),
    ("Send", &["test", "plan", "approve", "run", "stop"]),
    ("Follow up", &["status", "results", "report", "show", "replies", "outcome"]),
    ("Fix", &["reconcile", "resolve", "retry"]),
    ("Automate", &["schedule", "serve", "worker", "connector"]),
    ("People", &["suppress", "find", "forget", "purge"]),
    ("Administer", &["gateway", "ledger", "sandbox", "completions"]),
];

/// The command line whose help shows its commands in groups, and the most common of its options.
pub(super) fn with_groups(command: Command) -> Command {
    let template = help_template(&command);
    command.help_template(template)
}

/// The command line with `--help` for each command. For the program, `-h` and `--help` print the same: the long form of clap
/// would spread its few options over two screens.
pub(super) fn with_help_options(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help");
    command.disable_help_flag(true).arg(help).mut_subcommands(with_long_help)
}

fn with_long_help(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    let help = help.help("Print help (see more with '--help')").long_help("Print help (see a summary with '-h')");
    command.arg(help).mut_subcommands(with_long_help)
}

/// The template of the help: all of it but the groups is clap's.
fn help_template(command: &Command) -> StyledStr {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let width = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or_default();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (group, names) in GROUPS {
        text += &format!("{header}{group}:{header:#}\n");
        for below in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let (name, about) = (below.get_name(), below.get_about().map(ToString::to_string).unwrap_or_default());
            text += &format!("  {literal}{name}{literal:#}{:gap$}  {about}\n", "", gap = width - name.len());
        }
        text.push('\n');
    }
    text += &format!("{header}Options:{header:#}\n{{options}}{{after-help}}");
    text.into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cli::args::build_command;

    fn render_help() -> String {
        build_command().render_help().to_string()
    }

    #[test]
    fn every_command_is_in_one_group() {
        let command = build_command();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let all = command.get_subcommands().map(Command::get_name).filter(|name| *name != "help");
        assert_eq!(all.collect::<BTreeSet<_>>(), grouped.iter().copied().collect(), "put each command into one group");
        assert_eq!(grouped.iter().collect::<BTreeSet<_>>().len(), grouped.len(), "a command is in two groups");
    }

    #[test]
    fn help_shows_groups_with_one_line_per_command() {
        let help = render_help();
        for (group, names) in GROUPS {
            let shown = help.split(&format!("\n{group}:\n")).nth(1).and_then(|rest| rest.split("\n\n").next());
            let lines: Vec<&str> = shown.unwrap_or_else(|| panic!("no group {group}: {help}")).lines().collect();
            let first: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
            assert_eq!(first, names, "{help}");
            assert!(lines.iter().all(|line| line.starts_with("  ") && line.len() <= 80), "{lines:?}");
        }
        assert!(help.contains("--json") && !help.contains("--state-dir"), "only the common options: {help}");
        assert!(help.contains("\nExamples:\n  campaign init"), "{help}");
        assert!(!help.contains('\u{1b}') && !help.contains('{'), "{help}");
    }

    #[test]
    fn short_and_long_help_of_the_program_are_the_same() {
        let help =
            |option: &str| build_command().try_get_matches_from(["campaign", option]).expect_err("help").to_string();
        assert_eq!(help("-h"), help("--help"));
    }
}
