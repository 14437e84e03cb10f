//! Errors of the command line. Suggestions for misspelt options never name an option or a value that protects recipients less,
//! and the usage shows only options that the person typed.

use std::ffi::OsString;

use clap::Error;
use clap::error::{ContextKind, ContextValue};

use super::{args, shell};

/// Options that switch a guard off, or confirm before anybody looks.
pub(super) const RISKY_OPTIONS: [&str; 15] = [
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
    "--yes",
];
/// Values of options by which messages are sent again.
pub(super) const RISKY_VALUES: [(&str, &str); 3] =
    [("--as", "send-again"), ("--as", "not-sent"), ("--state", "failed")];

/// The same error without options from the environment in its usage, which would show them as required.
pub(super) fn hide_environment_options(error: Error, arguments: &[OsString]) -> Error {
    if !error.use_stderr() {
        return error;
    }
    // An error about a value from the environment needs that value.
    let command = shell::with_chosen_colors(args::build_command_without_environment(), arguments);
    command.try_get_matches_from(arguments).err().unwrap_or(error)
}

/// The error without advice that protects less. The usage goes with it, since it repeats the option.
pub(super) fn remove_risky_advice(mut error: Error) -> Error {
    let text = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(" ")),
        _ => None,
    };
    let names = |text: &str, name: &str| text.split([' ', '=', ',']).any(|word| word == name);
    let option = text(ContextKind::SuggestedArg);
    let value = text(ContextKind::SuggestedValue).zip(text(ContextKind::InvalidArg));
    if option.is_some_and(|option| RISKY_OPTIONS.iter().any(|risky| names(&option, risky))) {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
    }
    let is_risky = |(value, option): (String, String)| {
        RISKY_VALUES.iter().any(|(of, risky)| names(&option, of) && names(&value, risky))
    };
    if value.is_some_and(is_risky) {
        error.remove(ContextKind::SuggestedValue);
    }
    error
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;
    use crate::cli::args;

    /// Every command with the words that call it.
    fn collect_commands(command: &Command, words: &[String], found: &mut Vec<Vec<String>>) {
        found.push(words.to_vec());
        for inner in command.get_subcommands() {
            collect_commands(inner, &[words, &[inner.get_name().to_owned()]].concat(), found);
        }
    }

    fn parse_error(command: &mut Command, arguments: &[String]) -> Option<String> {
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
                    let Some(told) = parse_error(&mut command, &typed) else { continue };
                    let told: BTreeSet<&str> = told.split(|c: char| !(c.is_alphanumeric() || c == '-')).collect();
                    assert!(!told.contains(option), "{words:?} {slip}: {told:?}");
                }
            }
        }
    }

    #[test]
    fn misspelt_value_never_suggests_a_riskier_one() {
        let mut command = args::build_command();
        let mut refused = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            parse_error(&mut command, &words).expect("a refusal")
        };
        for (typed, risky) in [
            ("campaign resolve sale@1 --all --as send-agan", "send-again"),
            ("campaign resolve sale@1 --all --as notsent", "not-sent"),
            ("campaign retry sale@1 --state faild", "failed"),
        ] {
            let told = refused(typed);
            assert!(!told.contains(&format!("similar value exists: '{risky}'")), "{typed}: {told}");
        }
        let told = refused("campaign resolve sale@1 --all --as snt");
        assert!(told.contains("similar value exists: 'sent'"), "{told}");
        let told = refused("campaign run sale.yaml --dry-rn");
        assert!(told.contains("'--dry-run'"), "{told}");
    }

    #[test]
    fn risky_options_and_values_exist() {
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
