//! Suggestions in usage errors: the right command for a guessed name, and no risky options.
//!
//! A suggestion for a misspelt option never protects recipients less than the option that was typed.

use std::ffi::OsString;

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::build_command;
use crate::{args, shell};

/// A command and its effect.
type GuessedCommand = (&'static str, &'static str);

/// Words that people type after a command ("" is the program itself), and the commands that they might mean.
const GUESSES: &[(&str, &[&str], &[GuessedCommand])] = &[
    ("", &["send", "start", "launch", "exec", "execute", "go", "deliver", "blast"], &[("run", RUN_EFFECT)]),
    ("", &["resume", "continue"], &[("run", RUN_EFFECT), ("schedule resume", "resumes a paused schedule")]),
    ("", &["rehearse", "simulate", "dry-run", "try"], &[("run", "rehearses a campaign that has no gateway")]),
    ("", &["pause", "halt", "abort"], &[("stop", STOP_EFFECT), ("schedule pause", "pauses a schedule")]),
    ("", &["kill", "cancel"], &[("stop", STOP_EFFECT)]),
    (
        "",
        &["delete", "remove", "rm", "erase", "clean", "prune"],
        &[
            ("stop --for-good", "cancels a run"),
            ("forget", "erases a recipient"),
            ("purge", "erases personal data from old runs"),
            ("schedule remove", "removes a schedule"),
        ],
    ),
    (
        "",
        &["list", "ls", "runs", "history", "jobs", "ps"],
        &[("status", STATUS_EFFECT), ("schedule list", "lists schedules")],
    ),
    ("", &["stats", "state", "progress", "info", "watch", "monitor"], &[("status", STATUS_EFFECT)]),
    (
        "",
        &["log", "logs", "message", "messages"],
        &[("show", "shows each message's history"), ("status", STATUS_EFFECT)],
    ),
    ("", &["validate", "verify", "lint", "analyze", "analyse"], &[("check", "finds mistakes in campaign files")]),
    ("", &["new", "create", "scaffold", "generate"], &[("init", "creates a campaign file")]),
    ("", &["view", "render", "open"], &[("preview", "shows messages as recipients will see them")]),
    (
        "",
        &["serve-dashboard", "server", "dashboard", "web", "ui", "daemon", "webhook", "webhooks", "scheduler"],
        &[("serve", "starts the dashboard, webhook endpoint and scheduler")],
    ),
    ("", &["export", "download", "csv", "output"], &[("results", "writes the results of a run")]),
    ("", &["reports", "charts", "html"], &[("report", "writes an HTML report on a run")]),
    ("", &["answers", "inbox"], &[("replies", "prints recipients' replies")]),
    ("", &["conversions", "sales"], &[("outcome", "compares recipients' purchases with those of the holdout group")]),
    ("", &["resend", "repeat", "redo"], &[("retry", "retries rejected, unsent or failed messages")]),
    (
        "",
        &["unsubscribe", "optout", "opt-out", "opt-outs", "block", "blacklist", "blocklist", "stop-list"],
        &[
            ("suppress add", "adds a number to the suppression list"),
            ("suppress import", "adds all numbers in a file to the list"),
        ],
    ),
    ("", &["search", "lookup", "whois"], &[("find", "finds all messages to a phone number"), LOOKUP]),
    (
        "",
        &["confirm", "accept"],
        &[("approve", "approves a plan"), ("resolve", "records whether messages in doubt were sent")],
    ),
    ("", &["cron", "activate", "arm", "enable"], &[("schedule add", "activates a campaign's schedule")]),
    ("", &["balance", "money", "credit"], &[("gateway balance", "shows the account balance")]),
    ("", &["senders"], &[("gateway senders", "shows the sender names")]),
    ("", &["templates"], &[("gateway templates", "manages SMS templates")]),
    ("", &["hlr"], &[LOOKUP]),
    ("", &["otp", "code"], &[("gateway otp", "calls a phone number with a one-time code")]),
    ("", &["profile", "profiles", "account", "config", "login", "setup"], &[("gateway add", "adds a gateway profile")]),
    ("", &["backup"], &[("ledger backup", "backs up the ledger")]),
    ("", &["restore"], &[("ledger restore", "restores a backup of the ledger")]),
    ("", &["migrate", "upgrade"], &[("ledger upgrade", "upgrades a shared database"), LEDGER_COPY]),
    ("", &["mcp", "assistant", "ai"], &[("connector", "starts the MCP connector for AI assistants")]),
    ("", &["completion"], &[("completions", "prints a completion script")]),
    ("", &["version"], &[("--version", "prints the version")]),
    (
        "schedule",
        &["create", "new", "arm", "activate", "enable", "start", "set"],
        &[("schedule add", "activates a schedule")],
    ),
    ("schedule", &["delete", "rm", "cancel", "disable", "deactivate"], &[SCHEDULE_REMOVE, SCHEDULE_PAUSE]),
    ("schedule", &["stop"], &[SCHEDULE_PAUSE, SCHEDULE_REMOVE]),
    ("schedule", &["show", "status", "ls"], &[("schedule list", "lists the active schedules")]),
    ("schedule", &["continue", "unpause"], &[("schedule resume", "resumes a paused schedule")]),
    (
        "suppress",
        &["delete", "rm", "unsuppress", "allow", "undo"],
        &[("suppress remove", "removes a number from the list")],
    ),
    ("suppress", &["block", "new", "create"], &[("suppress add", "adds a number to the list")]),
    ("suppress", &["show", "ls"], &[("suppress list", "shows the list")]),
    ("gateway", &["new", "create", "init"], &[("gateway add", "adds a gateway profile")]),
    ("gateway", &["money", "credit"], &[("gateway balance", "shows the account balance")]),
    ("gateway", &["sms-templates"], &[("gateway templates", "manages SMS templates")]),
    ("gateway", &["viber"], &[("gateway viber-templates", "manages Viber templates")]),
    ("gateway", &["webhook", "hooks"], &[("gateway hook", "prints the secret webhook URL")]),
    ("gateway", &["code", "call"], &[("gateway otp", "calls a phone number with a one-time code")]),
    ("gateway", &["hlr"], &[LOOKUP]),
    ("ledger", &["verify", "status", "fsck"], &[("ledger check", "checks the ledger")]),
    ("ledger", &["move", "export", "migrate"], &[LEDGER_COPY]),
];

const RUN_EFFECT: &str = "sends or resumes a campaign";
const STOP_EFFECT: &str = "stops a run; with `--for-good`, cancels it";
const STATUS_EFFECT: &str = "shows runs and their counts";
const LOOKUP: (&str, &str) = ("gateway lookup", "checks whether a number is valid");
const LEDGER_COPY: (&str, &str) = ("ledger copy", "moves the ledger to a shared database");
const SCHEDULE_PAUSE: (&str, &str) = ("schedule pause", "pauses a schedule");
const SCHEDULE_REMOVE: (&str, &str) = ("schedule remove", "removes a schedule");

/// Adds suggestions to a usage error: the commands that the user might have meant by an unknown command.
pub(crate) fn suggest_command(mut error: Error, arguments: &[OsString]) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let path = command_path_before(arguments, typed);
    let typed = typed.to_lowercase().replace('_', "-");
    let guess = GUESSES.iter().find(|(parent, words, _)| *parent == path && words.contains(&typed.as_str()));
    if let Some((_, _, commands)) = guess {
        let tips = commands
            .iter()
            .map(|(command, effect)| StyledStr::from(format!("did you mean `campaign {command}`? It {effect}")))
            .collect();
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// Returns the commands that precede an unknown command, such as `gateway templates`.
fn command_path_before(arguments: &[OsString], unknown: &str) -> String {
    let (mut command, mut path) = (build_command(), Vec::new());
    for argument in arguments.iter().skip(1).take_while(|argument| *argument != unknown) {
        if let Some(sub) = argument.to_str().and_then(|name| command.find_subcommand(name)) {
            path.push(sub.get_name().to_owned());
            command = sub.clone();
        }
    }
    path.join(" ")
}

/// Options that disable a guard or confirm in advance. An error never suggests them.
const RISKY_OPTIONS: [&str; 16] = [
    "--accept-changes",
    "--again",
    "--allow-send",
    "--fetch",
    "--i-accept-duplicates",
    "--keep-going",
    "--max-lookups-per-hour",
    "--max-sends-per-hour",
    "--moved",
    "--new-ledger",
    "--now",
    "--offline",
    "--outside-window",
    "--up-to",
    "--up-to-abroad",
    "--yes",
];
/// Values of options that send messages again. An error never suggests them.
const RISKY_VALUES: [(&str, &str); 3] = [("--as", "send-again"), ("--as", "not-sent"), ("--state", "failed")];

/// Rebuilds a usage error without the options from the environment, which the usage would otherwise show as required.
pub(crate) fn hide_environment_options(error: Error, arguments: &[OsString]) -> Error {
    if !error.use_stderr() {
        return error;
    }
    // An error about a value from the environment occurs only with that value, so the original error is kept.
    let command = shell::with_chosen_colors(args::build_command_without_environment(), arguments);
    command.try_get_matches_from(arguments).err().unwrap_or(error)
}

/// Removes suggestions that would weaken the protection of recipients. The usage is removed too, because it repeats the
/// option.
pub(crate) fn remove_risky_advice(mut error: Error) -> Error {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(" ")),
        _ => None,
    };
    let contains_name = |text: &str, name: &str| text.split([' ', '=', ',']).any(|word| word == name);
    let option = text(ContextKind::SuggestedArg);
    let value_and_option = text(ContextKind::SuggestedValue).zip(text(ContextKind::InvalidArg));
    if option.is_some_and(|option| RISKY_OPTIONS.iter().any(|risky| contains_name(&option, risky))) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
    }
    let is_risky = |(value, option): (String, String)| {
        RISKY_VALUES
            .iter()
            .any(|(option_name, risky)| contains_name(&option, option_name) && contains_name(&value, risky))
    };
    if value_and_option.is_some_and(is_risky) {
        error.remove(ContextKind::SuggestedValue);
    }
    error
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;
    use crate::args;

    fn parse_error(words: &str) -> String {
        let mut typed = vec!["campaign"];
        typed.extend(words.split(' '));
        let error = build_command().try_get_matches_from(&typed).expect_err("no such command");
        let typed: Vec<OsString> = typed.into_iter().map(OsString::from).collect();
        suggest_command(error, &typed).render().to_string()
    }

    #[test]
    fn existing_command_is_suggested_for_a_guessed_name() {
        for (typed, expected) in [
            ("send", "campaign run"),
            ("start", "campaign run"),
            ("list", "campaign status"),
            ("delete", "campaign stop --for-good"),
            ("validate", "campaign check"),
            ("serve-dashboard", "campaign serve"),
            ("SEND", "campaign run"),
            ("opt_out", "campaign suppress add"),
            ("schedule create", "campaign schedule add"),
            ("--json schedule delete", "campaign schedule remove"),
        ] {
            let message = parse_error(typed);
            let word = typed.rsplit(' ').next().unwrap();
            assert!(message.contains(&format!("unrecognized subcommand '{word}'")), "{message}");
            assert!(message.contains(&format!("did you mean `{expected}`?")), "{typed}: {message}");
        }
        assert!(parse_error("chekc").contains("'check'"), "typos keep clap's suggestion");
    }

    #[test]
    fn suggested_commands_exist_and_guessed_names_do_not() {
        let command = build_command();
        for (path, words, commands) in GUESSES {
            let parent = path.split(' ').filter(|name| !name.is_empty());
            let parent = parent.fold(&command, |parent, name| parent.find_subcommand(name).expect("a parent"));
            for word in *words {
                assert!(parent.find_subcommand(word).is_none(), "`{path} {word}` is a command");
            }
            for (suggested, _) in *commands {
                let mut names = suggested.split(' ').filter(|name| !name.starts_with("--"));
                let suggested_command = names.try_fold(&command, |parent, name| parent.find_subcommand(name));
                assert!(suggested_command.is_some(), "{suggested}");
            }
        }
    }

    /// Appends the words that call a command, and those that call each of its subcommands, to `commands`.
    fn collect_commands(command: &Command, words: &[String], commands: &mut Vec<Vec<String>>) {
        commands.push(words.to_vec());
        for inner in command.get_subcommands() {
            collect_commands(inner, &[words, &[inner.get_name().to_owned()]].concat(), commands);
        }
    }

    fn render_usage_error(command: &mut Command, arguments: &[String]) -> Option<String> {
        let error = command.try_get_matches_from_mut(arguments).err()?;
        Some(remove_risky_advice(error).render().to_string())
    }

    #[test]
    fn misspelt_option_never_suggests_a_riskier_one() {
        let (mut command, mut all) = (args::build_command(), Vec::new());
        collect_commands(&command, &["campaign".to_owned()], &mut all);
        for words in &all {
            for option in RISKY_OPTIONS {
                let (middle, last) = (option.len() / 2, option.len() - 1);
                let slips = [
                    option[..last].to_owned(),
                    format!("{option}s"),
                    format!("{}x{}", &option[..middle], &option[middle..]),
                    format!("{}{}", &option[..middle], &option[middle + 1..]),
                ];
                for slip in slips.into_iter().filter(|slip| !RISKY_OPTIONS.contains(&slip.as_str())) {
                    let typed = [words.as_slice(), std::slice::from_ref(&slip)].concat();
                    let Some(message) = render_usage_error(&mut command, &typed) else { continue };
                    let message: BTreeSet<&str> = message.split(|c: char| !(c.is_alphanumeric() || c == '-')).collect();
                    assert!(!message.contains(option), "{words:?} {slip}: {message:?}");
                }
            }
        }
    }

    #[test]
    fn misspelt_value_never_suggests_a_riskier_one() {
        let mut command = args::build_command();
        let mut refusal = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            render_usage_error(&mut command, &words).expect("a refusal")
        };
        for (typed, risky) in [
            ("campaign resolve sale@1 --all --as send-agan", "send-again"),
            ("campaign resolve sale@1 --all --as notsent", "not-sent"),
            ("campaign retry sale@1 --state faild", "failed"),
        ] {
            let message = refusal(typed);
            assert!(!message.contains(&format!("similar value exists: '{risky}'")), "{typed}: {message}");
        }
        let message = refusal("campaign resolve sale@1 --all --as snt");
        assert!(message.contains("similar value exists: 'sent'"), "{message}");
        let message = refusal("campaign run sale.yaml --dry-rn");
        assert!(message.contains("'--dry-run'"), "{message}");
    }

    #[test]
    fn options_marked_as_risky_exist() {
        let mut options = BTreeSet::new();
        let mut pending = vec![args::build_command()];
        while let Some(command) = pending.pop() {
            options.extend(command.get_arguments().filter_map(|option| Some(format!("--{}", option.get_long()?))));
            pending.extend(command.get_subcommands().cloned());
        }
        let values = RISKY_VALUES.iter().map(|(option, _)| option);
        for option in RISKY_OPTIONS.iter().chain(values) {
            assert!(options.contains(*option), "{option}");
        }
    }
}
