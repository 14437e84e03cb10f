//! Suggested commands, such as the command on a `next:` line.
//!
//! People paste these commands, so each repeats the options of this command that name its ledger and gateways. Without
//! these options, a pasted command would use another ledger and might send messages a second time.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;

use super::args::GlobalOptions;
use super::output::Output;
use campaign_core::finding::quote_for_shell;
use campaign_engine::delivery::{NEVER_OPENS, SingleKind};
use campaign_engine::report::NextStep;
use campaign_gateway::TemplateChannel;
use campaign_ledger::{Ledger, RowState, Run, StateCounts, StopKind};
use campaign_manifest::Campaign;
use campaign_runs::{AccountView, find_campaign_file};

/// The default name of a live gateway.
pub(super) const LIVE_GATEWAY: &str = "production";

/// The options of this command that every suggested command needs.
#[derive(Clone, Debug, Default)]
pub(super) struct RepeatedOptions(String);

impl RepeatedOptions {
    /// Collects the options that the user typed on the command line. Options from the environment are not repeated,
    /// because the next command reads them from there too.
    pub(super) fn from_matches(global: &GlobalOptions, matches: &ArgMatches) -> Self {
        let path = |path: &Option<PathBuf>| path.as_ref().map(quote_for_shell);
        let ledger = || quote_for_shell(global.ledger.as_ref()?.without_password()?).into();
        let options = [
            ("ledger", "--ledger", ledger()),
            ("state_dir", "--state-dir", path(&global.state_dir)),
            ("gateways", "--gateways", path(&global.gateways)),
        ];
        let is_typed = |id| matches.value_source(id) == Some(ValueSource::CommandLine);
        let typed = options.into_iter().filter(|(id, ..)| is_typed(id));
        Self(typed.filter_map(|(_, name, value)| Some(format!(" {name} {}", value?))).collect())
    }
}

impl Display for RepeatedOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl RepeatedOptions {
    /// Formats a command to suggest; `arguments` begin with the subcommand.
    ///
    /// No other code formats suggested commands; `tests/house.rs` checks this.
    pub(super) fn command(&self, arguments: impl Display) -> String {
        format!("campaign {arguments}{self}")
    }

    /// Formats the command that shows a part of a profile's gateway account.
    pub(super) fn view_command(&self, view: AccountView, profile: &str) -> String {
        let action = match view {
            AccountView::Balance => "balance",
            AccountView::Senders => "senders",
            AccountView::Templates(TemplateChannel::Sms) => "templates list",
            AccountView::Templates(TemplateChannel::Viber) => "viber-templates list",
        };
        self.command(with_gateway(format!("gateway {action}"), Some(profile)))
    }
}

impl Output {
    /// Formats a command to suggest, with the options of this command that must be repeated.
    pub(super) fn command(&self, arguments: impl Display) -> String {
        self.options.command(arguments)
    }

    /// Describes how to repair a ledger that failed.
    pub(super) fn describe_ledger_repair(&self) -> &'static str {
        match self.shared_ledger {
            true => "check the ledger database and the connection to it",
            false => "free up disk space or repair the disk",
        }
    }

    /// The next command for a run that is not being sent.
    pub(super) fn suggest_for_run(&self, run: &str, step: &NextStep) -> String {
        self.command(match step {
            NextStep::Reconcile => format!("reconcile {run}"),
            NextStep::Decide => format!("resolve {run} --all --as DECISION"),
            NextStep::Review(states) => {
                let states: Vec<&str> = states.iter().map(|state| state.name()).collect();
                format!("results {run} --state {} --out -", states.join(","))
            }
            NextStep::Nothing => format!("results {run}"),
            NextStep::Wait | NextStep::Resume => format!("status {run}"),
        })
    }
}

/// Adds `--gateway` to the arguments of a command if a gateway replaces the campaign's own gateway.
pub(super) fn with_gateway(arguments: impl Display, gateway: Option<&str>) -> String {
    let gateway = gateway.map(|gateway| format!(" --gateway {}", quote_for_shell(gateway))).unwrap_or_default();
    format!("{arguments}{gateway}")
}

/// The arguments of `run` that send a campaign now. A campaign with a schedule needs `--now`.
pub(super) fn send_arguments(campaign: &Campaign, gateway: Option<&str>) -> String {
    let run = with_gateway(format_args!("run {}", shell_path(&campaign.file)), gateway);
    if campaign.schedule.is_some() { format!("{run} --now") } else { run }
}

impl Output {
    /// Describes how to retry rejected or undelivered messages of a finished run; `None` if there are none or the run
    /// cannot be retried.
    pub(super) fn suggest_retry(&self, run: &Run, counts: &StateCounts) -> Option<String> {
        let any = |states: &[RowState]| states.iter().any(|state| counts.get(*state) > 0);
        let (description, state_option) = if any(&[RowState::Rejected, RowState::NotSent]) {
            ("rejected", "")
        } else if any(&[RowState::Failed]) {
            ("undelivered", " --state failed")
        } else {
            return None;
        };
        let retry = || self.command(format!("retry {}{state_option}", run.name()));
        (run.live && SingleKind::from_run(run).is_none())
            .then(|| format!("to retry {description} messages, once the cause is fixed: {}", retry()))
    }
}

impl Output {
    /// Suggests how to resume an unfinished run. If it stopped at a limit, the limit must be raised first.
    pub(super) async fn suggest_resuming(&self, ledger: &dyn Ledger, run: &Run) -> String {
        resume_step(run.stop, run.stop_reason.as_deref(), self.resume_command(ledger, run).await)
    }

    /// The command that resumes an unfinished run, with its gateway.
    async fn resume_command(&self, ledger: &dyn Ledger, run: &Run) -> String {
        let path = find_campaign_file(ledger, run).await;
        let file = path.map_or_else(|| "FILE".to_owned(), |path| shell_path(&path));
        self.command(with_gateway(format!("run {file}"), Some(&run.gateway)))
    }

    /// The command that repeats a lookup, a code call or a test, or shows the messages of assistants. It contains no
    /// phone number, because people might save the command.
    pub(super) fn repeat_command(&self, single: SingleKind, run: &Run) -> String {
        let command = match single {
            SingleKind::Lookup => "lookup",
            SingleKind::CodeCall => "otp",
            SingleKind::Test => return self.command(with_gateway("test FILE --to PHONE", Some(&run.gateway))),
            // Only the assistant knows the text, so no command can send the message again.
            SingleKind::Message => return self.command(format!("status {}", run.name())),
        };
        self.command(with_gateway(format!("gateway {command} PHONE"), Some(&run.gateway)))
    }
}

/// The next step for an unfinished run: the command `resume`, preceded by the change without which the run would stop
/// again at once. `kind` and `reason` say why the run stopped.
pub(super) fn resume_step(kind: Option<StopKind>, reason: Option<&str>, resume: String) -> String {
    let change = match (kind, reason.unwrap_or_default()) {
        (Some(StopKind::Budget), reason) if reason.contains("`limits.recipients`") => "raise `limits.recipients`",
        (Some(StopKind::Budget), reason) if reason.contains("`limits.cost`") => "raise `limits.cost`",
        (Some(StopKind::Window), NEVER_OPENS) => "change the sending window",
        _ => return resume,
    };
    format!("{change}, then: {resume}")
}

/// The path of a file as the operator types it in the current folder.
pub(super) fn shell_path(path: &Path) -> String {
    let current_dir = std::env::current_dir().ok();
    let relative = current_dir
        .and_then(|current_dir| path.strip_prefix(current_dir).ok())
        .filter(|relative| *relative != Path::new(""));
    let path = relative.unwrap_or(path);
    // A path with a leading dash would be parsed as an option.
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        quote_for_shell(Path::new(".").join(path))
    } else {
        quote_for_shell(path)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;
    use crate::args::CliArguments;

    #[test]
    fn resume_step_names_the_change_that_is_needed_first() {
        let step = |kind, reason: &str| resume_step(Some(kind), Some(reason), "campaign run sale.yaml".to_owned());
        let reached = "this edition has reached its `limits.recipients` of 4";
        assert_eq!(step(StopKind::Budget, reached), "raise `limits.recipients`, then: campaign run sale.yaml");
        assert_eq!(step(StopKind::Window, NEVER_OPENS), "change the sending window, then: campaign run sale.yaml");
        assert_eq!(step(StopKind::Window, "the sending window is closed"), "campaign run sale.yaml");
        assert_eq!(step(StopKind::StopRequested, "asked to stop"), "campaign run sale.yaml");
    }

    #[test]
    fn global_options_are_repeated_regardless_of_their_position() {
        let options = |arguments: &[&str]| {
            let matches = CliArguments::command().try_get_matches_from([&["campaign"], arguments].concat()).unwrap();
            let parsed = CliArguments::from_arg_matches(&matches).unwrap();
            RepeatedOptions::from_matches(&parsed.global, &matches).to_string()
        };
        assert_eq!(options(&["status"]), "");
        for arguments in [
            &["--state-dir", "a b", "status"][..],
            &["status", "--state-dir", "a b"],
            &["gateway", "senders", "--state-dir=a b"],
            &["gateway", "--state-dir", "a b", "templates", "list", "--json"],
        ] {
            assert_eq!(options(arguments), " --state-dir 'a b'", "{arguments:?}");
        }
        let shared = ["status", "--ledger", "postgres://me:s3cret@db/c?sslmode=require"];
        assert_eq!(options(&shared), " --ledger 'postgres://me@db/c?sslmode=require'");
        let both = ["run", "--gateways", "../g.yaml", "sale.yaml", "--state-dir", "/s"];
        assert_eq!(options(&both), " --state-dir /s --gateways ../g.yaml");
    }
}
