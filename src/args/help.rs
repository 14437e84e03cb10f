//! Help texts: command groups, and the examples of each command.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command, CommandFactory as _};

use super::results::with_page_options;
use super::{CliArguments, STYLES};

/// The command groups in the order of the help.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Write", &["demo", "init", "check", "explain", "preview", "lsp", "schema"]),
    ("Send", &["test", "plan", "approve", "run", "stop"]),
    ("Follow up", &["status", "results", "report", "show", "replies", "outcome"]),
    ("Fix", &["reconcile", "resolve", "retry"]),
    ("Automate", &["schedule", "serve", "worker", "connector"]),
    ("People", &["suppress", "find", "forget", "purge"]),
    ("Administer", &["gateway", "ledger", "sandbox", "doctor", "completions", "man"]),
];

/// Groups the commands in the help of the program.
fn with_groups(command: Command) -> Command {
    let template = help_template(&command);
    command.help_template(template)
}

/// Adds `--help` to each command. For the program, `-h` and `--help` print the same short form, because clap's long form
/// would spread the few options over two screens.
fn with_help_options(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort).help("Print help");
    command.disable_help_flag(true).arg(help).mut_subcommands(with_long_help)
}

fn with_long_help(command: Command) -> Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    let help = help.help("Print help (see more with '--help')").long_help("Print help (see a summary with '-h')");
    command.arg(help).mut_subcommands(with_long_help)
}

/// Builds the help template: the default template of clap, with the command groups added.
fn help_template(command: &Command) -> StyledStr {
    let (header, literal) = (STYLES.get_header(), STYLES.get_literal());
    let width = command.get_subcommands().map(|sub| sub.get_name().len()).max().unwrap_or_default();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (group, names) in GROUPS {
        text += &format!("{header}{group}:{header:#}\n");
        for sub in names.iter().filter_map(|name| command.find_subcommand(name)) {
            let (name, about) = (sub.get_name(), sub.get_about().map(ToString::to_string).unwrap_or_default());
            text += &format!("  {literal}{name}{literal:#}{:gap$}  {about}\n", "", gap = width - name.len());
        }
        text.push('\n');
    }
    text += &format!("{header}Options:{header:#}\n{{options}}{{after-help}}");
    text.into()
}

/// The last line of the help of the program.
const MORE_HELP: &str = "\n\nRun `campaign COMMAND --help` for a command's options and examples.";

/// The examples: the path of a command, and the arguments.
const EXAMPLES: &[(&str, &str)] = &[
    ("", "init autumn-sale --from clients.csv"),
    ("", "check autumn-sale.yaml"),
    ("", "run autumn-sale.yaml"),
    ("", "run autumn-sale.yaml --gateway production"),
    ("", "status"),
    ("demo", ""),
    ("demo", "tour --fast"),
    ("init", "autumn-sale --from clients.csv"),
    ("init", "autumn-sale --example sale"),
    ("check", "autumn-sale.yaml"),
    ("check", "autumn-sale.yaml --online --gateway production"),
    ("check", "autumn-sale.yaml --fix"),
    ("check", "autumn-sale.yaml --show-settings"),
    ("check", "autumn-sale.yaml --tests-only --format junit > tests.xml"),
    ("check", "autumn-sale.yaml welcome.yaml --strict --format sarif > campaigns.sarif"),
    ("explain", "empty-cell"),
    ("preview", "autumn-sale.yaml --first 5"),
    ("preview", "autumn-sale.yaml --rows 2-6,60"),
    ("preview", "autumn-sale.yaml --given first_name=Olena,plan=gold"),
    ("preview", "autumn-sale.yaml --html preview.html --open"),
    ("test", "autumn-sale.yaml --to +380501234567 --gateway production"),
    ("test", "autumn-sale.yaml --to +380501234567 --to +380671234567 --row 17"),
    ("run", "autumn-sale.yaml"),
    ("run", "autumn-sale.yaml --gateway production --limit 10"),
    ("run", "autumn-sale.yaml --gateway production --yes"),
    ("run", "autumn-sale.yaml --gateway production --shared"),
    ("run", "autumn-sale.yaml --gateway production --plan 3f9a1c22d04be781"),
    ("plan", "autumn-sale.yaml --gateway production"),
    ("plan", "autumn-sale.yaml --gateway production --out plan.html"),
    ("approve", "3f9a1c22d04be781"),
    ("approve", "3f9a1c22d04be781 --key olha.key"),
    ("approve", "--new-key olha"),
    ("stop", "autumn-sale"),
    ("stop", "autumn-sale@3 --for-good"),
    ("status", ""),
    ("status", "autumn-sale"),
    ("status", "autumn-sale --watch"),
    ("results", "autumn-sale --out results.csv"),
    ("results", "autumn-sale@3 --state rejected,in_doubt --out -"),
    ("results", "autumn-sale --channel viber --state read --out readers.csv"),
    ("report", "autumn-sale --out report.html"),
    ("replies", "autumn-sale --out replies.csv"),
    ("replies", "autumn-sale --review"),
    ("outcome", "autumn-sale --file purchases.csv --at Date --amount Total --within 14d"),
    ("reconcile", "autumn-sale"),
    ("reconcile", "autumn-sale --all"),
    ("resolve", "autumn-sale --rows 3,7 --as sent --why 'both called back'"),
    ("resolve", "autumn-sale --file decided.csv --as not-sent --i-accept-duplicates 2"),
    ("retry", "autumn-sale"),
    ("retry", "autumn-sale --error 'No route'"),
    ("retry", "autumn-sale --state failed"),
    ("show", "autumn-sale --row 7"),
    ("show", "autumn-sale --to 380501234567"),
    ("show", "autumn-sale --state rejected --error 'No route'"),
    ("gateway", "add production --for autumn-sale.yaml"),
    ("gateway add", "production --for autumn-sale.yaml"),
    ("gateway add", "production --base-url https://gateway.example --rate 10/s --key-env CAMPAIGN_API_KEY"),
    ("gateway balance", "--gateway production"),
    ("gateway senders", "--gateway production"),
    ("gateway status", "1700000001 --gateway production"),
    ("gateway templates", "list --gateway production"),
    ("gateway templates list", "--gateway production"),
    ("gateway templates create", "welcome --text 'Hello, %name%' --gateway production"),
    ("gateway templates delete", "17 --gateway production"),
    ("gateway viber-templates", "list --gateway production"),
    ("gateway viber-templates list", "--gateway production"),
    ("gateway viber-templates create", "--signature OlenaCo --file welcome.txt --gateway production"),
    ("gateway viber-templates delete", "17 --gateway production"),
    ("gateway hook", "production"),
    ("gateway trust", "production"),
    ("gateway lookup", "0501234567 --region UA --gateway production"),
    ("gateway otp", "+380501234567 --gateway production"),
    ("suppress", "add +380501234567 --reason 'requested by phone'"),
    ("suppress add", "0501234567 --region UA --campaign autumn-sale"),
    ("suppress remove", "+380501234567 --reason 'asked to resubscribe'"),
    ("suppress remove", "--source stop-list.csv"),
    ("suppress import", "stop-list.csv --region UA"),
    ("suppress export", "> stop-list.csv"),
    ("suppress list", ""),
    ("find", "+380501234567"),
    ("find", "+380501234567 --state failed"),
    ("find", "0501234567 --region UA --json > person.json"),
    ("forget", "+380501234567"),
    ("forget", "0501234567 --region UA --yes --json"),
    ("purge", "--older-than 400d"),
    ("ledger", "check"),
    ("ledger check", "--json"),
    ("ledger copy", "--to postgres://campaign@db.example/campaign"),
    ("ledger backup", "/backups/2026-11-23"),
    ("ledger restore", "/backups/2026-11-23"),
    ("ledger upgrade", "--ledger postgres://campaign@db.example/campaign"),
    ("schedule", "add autumn-sale.yaml"),
    ("schedule add", "autumn-sale.yaml"),
    ("schedule list", ""),
    ("schedule pause", "autumn-sale"),
    ("schedule resume", "autumn-sale"),
    ("schedule remove", "autumn-sale"),
    ("schedule next", "autumn-sale.yaml --count 10 --from 2027-01-01"),
    ("doctor", ""),
    ("doctor", "--gateway production"),
    ("sandbox", ""),
    ("sandbox", "--scenario bad-day.yaml --journal journal.jsonl"),
    ("connector", "--gateway production"),
    ("connector", "--gateway production --allow-send --approve"),
    ("connector", "--gateway production --allow-send --only-to team.csv --max-sends-per-hour 5"),
    ("connector", "--stdio --gateway production --campaigns campaigns"),
    ("connector", "--print-config --client vscode > .vscode/mcp.json"),
    ("connector", "--print-config --stdio --client claude --gateway production > .mcp.json"),
    ("serve", ""),
    ("serve", "--listen 127.0.0.1:9000 --json"),
    ("serve", "link --for Olha"),
    ("serve link", "--for Olha"),
    ("serve link", "--for Ivan --decide"),
    ("serve list", ""),
    ("serve revoke", "Olha"),
    ("worker", ""),
    ("worker", "--metrics 127.0.0.1:9100"),
    ("lsp", ""),
    ("schema", "gateways"),
    ("completions", "bash > ~/.local/share/bash-completion/completions/campaign"),
    ("man", "~/.local/share/man/man1"),
];

/// Builds the command-line parser without the parts that only help texts and errors need. In a development build, those
/// parts take much of the CPU time of a short command.
pub(crate) fn build_parser() -> Command {
    with_help_options(with_page_options(CliArguments::command()))
}

/// Builds the command-line parser, with examples in the help.
pub(crate) fn build_command() -> Command {
    finish_command(CliArguments::command())
}

/// Builds the command-line parser, but does not read options from the environment.
pub(crate) fn build_command_without_environment() -> Command {
    let options = ["ledger", "state_dir", "gateways"];
    let without_environment = |option: Arg| option.env(None::<&'static str>);
    finish_command(
        options.into_iter().fold(CliArguments::command(), |command, id| command.mut_arg(id, without_environment)),
    )
}

fn finish_command(command: Command) -> Command {
    let mut command = with_help_options(with_page_options(command));
    command.build();
    with_groups(with_examples(command, ""))
}

fn with_examples(mut command: Command, path: &str) -> Command {
    let examples: String = EXAMPLES
        .iter()
        .filter(|(command_path, _)| *command_path == path)
        .map(|(command_path, rest)| wrap_example(command_path, rest))
        .collect();
    if !examples.is_empty() {
        let (header, more) = (STYLES.get_header(), if path.is_empty() { MORE_HELP } else { "" });
        command = command.after_help(format!("{header}Examples:{header:#}\n{}{more}", examples.trim_end()));
    }
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| {
        let path = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command.mut_subcommand(name, |sub| with_examples(sub, &path))
    })
}

/// The maximum length of a line of an example, which fits 80 columns with its indent and a backslash.
const MAX_LINE_WIDTH: usize = 76;

/// Formats an example for pasting into a shell. A long example is wrapped before an option or a `>`.
fn wrap_example(command: &str, rest: &str) -> String {
    let words = ["campaign", command, rest].into_iter().filter(|word| !word.is_empty());
    let text = words.collect::<Vec<_>>().join(" ").replace(" --", "\n--").replace(" > ", "\n> ");
    let (mut lines, mut width) = (String::from(" "), 0);
    for part in text.split('\n') {
        if width + part.len() >= MAX_LINE_WIDTH {
            lines += " \\\n     ";
            width = 4;
        }
        lines += &format!(" {part}");
        width += part.len() + 1;
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::args::build_command;

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
            let group_text = help.split(&format!("\n{group}:\n")).nth(1).and_then(|rest| rest.split("\n\n").next());
            let lines: Vec<&str> = group_text.unwrap_or_else(|| panic!("no group {group}: {help}")).lines().collect();
            let first_words: Vec<&str> = lines.iter().filter_map(|line| line.split_whitespace().next()).collect();
            assert_eq!(first_words, names, "{help}");
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

    /// The paths of all commands except `help`.
    fn command_paths(command: &Command, path: &str) -> Vec<String> {
        let subcommands = command.get_subcommands().filter(|sub| sub.get_name() != "help");
        subcommands
            .flat_map(|sub| {
                let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
                [vec![path.clone()], command_paths(sub, &path)].concat()
            })
            .collect()
    }

    #[test]
    fn every_command_has_an_example_that_parses() {
        for path in command_paths(&CliArguments::command(), "") {
            assert!(EXAMPLES.iter().any(|(command_path, _)| *command_path == path), "{path} has no example");
        }
        for (command_path, rest) in EXAMPLES {
            let (typed, mut words, mut is_quoted) =
                (format!("campaign {command_path} {rest}"), vec![String::new()], false);
            let typed = typed.split(" > ").next().unwrap();
            for character in typed.chars() {
                match character {
                    '\'' => is_quoted = !is_quoted,
                    ' ' if !is_quoted => words.push(String::new()),
                    other => words.last_mut().unwrap().push(other),
                }
            }
            let words = words.into_iter().filter(|word| !word.is_empty());
            let parsed = build_command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{typed}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn long_examples_are_continued_with_a_backslash() {
        assert_eq!(wrap_example("run", "autumn-sale.yaml --yes"), "  campaign run autumn-sale.yaml --yes\n");
        let long = wrap_example(
            "gateway add",
            "production --base-url https://gateway.example --rate 10/s --key-env CAMPAIGN_API_KEY",
        );
        let (first, second) = long.trim_end().split_once(" \\\n").expect("two lines");
        assert_eq!(first, "  campaign gateway add production --base-url https://gateway.example");
        assert_eq!(second, "      --rate 10/s --key-env CAMPAIGN_API_KEY");
    }

    #[test]
    fn help_lines_are_short_and_end_without_a_full_stop() {
        let mut pending = vec![build_command()];
        while let Some(command) = pending.pop() {
            let name = command.get_name().to_owned();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(about.starts_with(char::is_uppercase) && about.chars().count() <= 75, "{name}: {about}");
            let mut lines = vec![about];
            for option in command.get_arguments().filter(|option| !option.is_hide_set()) {
                lines.push(option.get_help().map(ToString::to_string).unwrap_or_default());
                for value in option.get_value_names().unwrap_or_default() {
                    assert!(!value.contains(char::is_lowercase), "{name}: {value}");
                }
            }
            for line in lines {
                assert!(line.starts_with(char::is_uppercase) && !line.ends_with('.'), "{name}: {line}");
                assert!(line.chars().count() <= 125, "{name}: {line}");
            }
            pending.extend(command.get_subcommands().filter(|sub| sub.get_name() != "help").cloned());
        }
    }

    #[test]
    fn command_help_lists_global_options_last() {
        for path in command_paths(&CliArguments::command(), "") {
            let mut command = build_command();
            for name in path.split(' ') {
                command = command.find_subcommand(name).unwrap().clone();
            }
            let help = command.render_long_help().to_string();
            let global = help.find("Global options:").unwrap_or_else(|| panic!("{path}: {help}"));
            let example = help.find("Examples:").unwrap_or_else(|| panic!("{path}: {help}"));
            assert!(global < example && !help[..global].contains("--state-dir"), "{path}: {help}");
            let options =
                command.get_arguments().filter(|option| !option.is_global_set() && option.get_long().is_some());
            for name in
                options.filter_map(|option| option.get_long()).filter(|name| !["help", "version"].contains(name))
            {
                let global_options = &help[global..example];
                assert!(
                    !global_options.contains(&format!("--{name} ")) && !global_options.contains(&format!("--{name}\n")),
                    "{path}: --{name}"
                );
            }
        }
    }
}
