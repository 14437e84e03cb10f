//! Command-line arguments: global options and the list of commands. The options of each command family are in a file of
//! their own.

mod administration;
mod automation;
mod campaign;
mod help;
mod recipients;
mod results;
mod sending;
mod suggestions;

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(super) use administration::{
    AddArgs, DoctorArgs, GatewayCommand, GatewayOption, HookArgs, LedgerCommand, LedgerUrl, MessageArgs, SingleArgs,
    SmsTemplatesCommand, TextArgs, ViberTemplatesCommand,
};
pub(super) use automation::{
    ConnectorArgs, LinkArgs, NextArgs, ScheduleAddArgs, ScheduleCommand, ServeArgs, ServeCommand, WorkerArgs,
};
pub(super) use campaign::{
    CheckArgs, DemoArgs, ExplainArgs, Format, InitArgs, PreviewArgs, PreviewedCells, PreviewedRows, SandboxArgs,
};
pub(super) use help::{build_command, build_command_without_environment, build_parser};
pub(super) use recipients::{
    EvidenceArgs, FindArgs, ForgetArgs, ImportArgs, NumberArgs, PurgeArgs, RemoveArgs, ScopeName, SuppressCommand,
    SuppressListArgs, TermsArgs,
};
pub(super) use results::{
    LanguageName, OutcomeArgs, ReconcileArgs, RepliesArgs, ReportArgs, ResultsArgs, SelectionArgs, ShowArgs,
    StatusArgs, StopArgs, parse_phone,
};
pub(super) use sending::{ApproveArgs, DecisionArg, PlanArgs, ResolveArgs, RetryArgs, RunArgs, TestArgs};
pub(super) use suggestions::{hide_environment_options, remove_risky_advice, suggest_command};

/// The colours of help and usage errors.
const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// The version of the program, with its commit and the date of the commit if the build knows them:
/// `0.1.0 (0369fa321c9b 2026-11-27)`.
///
/// Package builds (`just dist`) set `CAMPAIGN_COMMIT` and `CAMPAIGN_COMMIT_DATE`. Other builds do not read `.git`:
/// Cargo would rebuild this crate after each commit, and the version of a changed working folder would be wrong.
pub(super) fn program_version() -> &'static str {
    static VERSION: LazyLock<String> =
        LazyLock::new(|| format_version(option_env!("CAMPAIGN_COMMIT"), option_env!("CAMPAIGN_COMMIT_DATE")));
    &VERSION
}

fn format_version(commit: Option<&str>, date: Option<&str>) -> String {
    let parts = [commit, date].into_iter().flatten().map(str::trim).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    let version = env!("CARGO_PKG_VERSION");
    if parts.is_empty() { version.to_owned() } else { format!("{version} ({})", parts.join(" ")) }
}

/// Send message campaigns by SMS, Viber, RCS, voice, Telegram and WhatsApp
#[derive(Debug, Parser)]
#[command(
    name = "campaign",
    version = program_version(),
    styles = STYLES,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub(super) struct CliArguments {
    #[command(flatten)]
    pub(super) global: GlobalOptions,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The heading of the options that every command takes.
const GLOBAL_HEADING: &str = "Global options";

/// Options that every command takes.
#[derive(Clone, Debug, Args)]
pub(super) struct GlobalOptions {
    /// Use the ledger in this database, which several machines can share [default: a file in the state folder]
    ///
    /// The format is postgres://user@host/database. Keep the password in PGPASSWORD or ~/.pgpass.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        help_heading = GLOBAL_HEADING,
        value_name = "URL",
        env = "CAMPAIGN_LEDGER",
        hide_env_values = true
    )]
    pub(super) ledger: Option<LedgerUrl>,
    /// Keep the ledger and list copies in this folder [default: your state folder]
    ///
    /// On a machine with a system ledger, the default is /var/lib/campaign for all users who can write to it.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        help_heading = GLOBAL_HEADING,
        value_name = "DIR",
        env = "CAMPAIGN_STATE_DIR",
        hide_env_values = true
    )]
    pub(super) state_dir: Option<PathBuf>,
    /// Read gateway profiles from this file
    ///
    /// The default is gateways.yaml next to the campaign, in a folder above it, or in your configuration folder.
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        help_heading = GLOBAL_HEADING,
        value_name = "FILE",
        env = "CAMPAIGN_GATEWAYS",
        hide_env_values = true
    )]
    pub(super) gateways: Option<PathBuf>,
    /// Print JSON for scripts instead of text
    #[arg(long, global = true, help_heading = GLOBAL_HEADING)]
    pub(super) json: bool,
    /// Suppress normal output; errors are still printed
    #[arg(short, long, global = true, help_heading = GLOBAL_HEADING, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Log steps and requests to standard error; repeat for more detail
    ///
    /// -vv also logs waiting times, intents and outcomes; -vvv also logs sizes. You can set RUST_LOG instead,
    /// for example to `campaign=debug`.
    #[arg(short, long, global = true, help_heading = GLOBAL_HEADING, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Choose when to use colors
    #[arg(
        long,
        global = true,
        help_heading = GLOBAL_HEADING,
        value_enum,
        default_value_t = ColorChoice::Auto,
        value_name = "WHEN"
    )]
    pub(super) color: ColorChoice,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressForm {
    /// A bar on a terminal, lines elsewhere, nothing with --json or --quiet
    #[default]
    Auto,
    /// A progress bar
    Bar,
    /// A line with a timestamp every ten seconds
    Lines,
    /// JSON lines, for programs
    Json,
    /// Nothing
    None,
}

impl Command {
    /// Whether the command prints one JSON object even without `--json`.
    pub(super) fn prints_json(&self) -> bool {
        matches!(self, Command::Check(CheckArgs { format: Some(Format::Json), .. }))
    }

    /// How the progress of the command is shown.
    pub(super) fn progress_form(&self) -> ProgressForm {
        match self {
            Command::Run(args) => args.progress,
            Command::Retry(args) => args.progress,
            _ => ProgressForm::Auto,
        }
    }
}

/// When to use colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The commands. Their groups and examples are in `help.rs`.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// See what campaign does: check, rehearse, crash and resume
    ///
    /// Writes a campaign into a new folder and rehearses it in a sandbox. It needs no files and no account, and sends no
    /// messages to recipients. It uses a ledger of its own in that folder.
    Demo(DemoArgs),
    /// Create a campaign file, templates and a list to start from
    ///
    /// Existing files are not overwritten.
    Init(InitArgs),
    /// Find mistakes in campaign files before you send
    ///
    /// Reads the campaign, its templates and every row of its list. Sends nothing.
    Check(CheckArgs),
    /// Explain a `check` finding and how to fix it
    Explain(ExplainArgs),
    /// Show messages as recipients will see them
    Preview(PreviewArgs),
    /// Send a test message to your own number
    ///
    /// A test message is a real message and costs money, but does not count as a campaign message.
    Test(TestArgs),
    /// Send a campaign, or resume an unfinished run
    ///
    /// A campaign without a gateway is sent to the built-in sandbox, which delivers nothing to recipients. Recipients
    /// who already got the message are skipped. With a live gateway, the command shows what it will send and asks for
    /// confirmation first.
    Run(RunArgs),
    /// Show what a run would send, and record it for approval
    ///
    /// Prints a digest that is valid for 30 days. `campaign run --plan DIGEST` sends exactly what was planned.
    Plan(PlanArgs),
    /// Approve a plan, so that a run can send it
    Approve(ApproveArgs),
    /// Stop a run once the requests in flight are complete, or cancel it
    Stop(StopArgs),
    /// Show runs, their counts and what to do next
    Status(StatusArgs),
    /// Write the results of a run: one row per recipient
    Results(ResultsArgs),
    /// Write an HTML report on a run, with figures and charts
    Report(ReportArgs),
    /// Print recipients' replies as CSV
    Replies(RepliesArgs),
    /// Compare recipients' purchases with those of the holdout group
    Outcome(OutcomeArgs),
    /// Ask the gateway about messages in doubt
    Reconcile(ReconcileArgs),
    /// Decide whether messages in doubt were sent
    Resolve(ResolveArgs),
    /// Send rejected, unsent or failed messages again
    ///
    /// Each is sent as a new message. Before a failed message is sent again, the gateway is asked whether it was delivered
    /// after all.
    Retry(RetryArgs),
    /// Show the history of a run's messages
    ///
    /// Shows attempts, gateway responses, receipts and decisions. Select messages with at least one of the
    /// options under Selection.
    Show(ShowArgs),
    /// Add gateways, query accounts and manage templates
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// Manage the suppression list of recipients who opted out
    #[command(subcommand)]
    Suppress(SuppressCommand),
    /// Find all messages to a phone number, in all runs
    Find(FindArgs),
    /// Erase a recipient from the ledger, list copies and results
    ///
    /// Removes the number and all data in its rows, and opts the number out of marketing.
    Forget(ForgetArgs),
    /// Erase personal data from old runs; keep counts and identifiers
    Purge(PurgeArgs),
    /// Check, back up, restore, move or upgrade the ledger
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Activate, list, pause and remove schedules
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Check this machine, the ledger and the gateways
    ///
    /// Checks the state folder, disk space, ledger, clock, time zone and file permissions, and whether each gateway can be
    /// reached and accepts its key. Also checks whether this machine can reach your webhook address. Sends no messages, and
    /// changes no ledger tables.
    Doctor(DoctorArgs),
    /// Start an emulated gateway to rehearse against
    Sandbox(SandboxArgs),
    /// Start the dashboard, webhook endpoint and scheduler
    Serve(ServeArgs),
    /// Send shards of runs that were started with `run --shared`
    Worker(WorkerArgs),
    /// Start the MCP connector, which offers tools to AI assistants
    Connector(ConnectorArgs),
    /// Start the language server, which shows mistakes as you type
    ///
    /// An editor starts it and talks to it over standard input and output. It checks campaign files, gateway profiles,
    /// sandbox scenarios and templates, including text that is not saved. It sends nothing, fetches no lists and opens
    /// no ledger.
    Lsp,
    /// Print the JSON Schema of a file format, for editors
    Schema {
        /// File format
        #[arg(value_enum, value_name = "FORMAT", default_value_t = SchemaOf::Campaign)]
        of: SchemaOf,
    },
    /// Print a completion script for your shell
    Completions {
        /// Shell
        #[arg(required_unless_present = "names")]
        shell: Option<clap_complete::Shell>,
        /// Print these names, for the completion script
        #[arg(long, value_enum, hide = true, conflicts_with = "shell")]
        names: Option<CompletionNames>,
    },
    /// Write the manual page of each command to a folder
    ///
    /// Existing files with the names of the pages are replaced.
    Man {
        /// Folder for the pages, which is created if it does not exist
        folder: PathBuf,
    },
}

/// The file formats with a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// Campaign files
    Campaign,
    /// The gateway profiles in gateways.yaml
    Gateways,
    /// Sandbox scenarios
    Scenario,
}

/// The names that completion scripts offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CompletionNames {
    Runs,
    Gateways,
    Campaigns,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use campaign_ledger::RowState;

    #[test]
    fn version_includes_the_commit_if_known_at_build_time() {
        let plain = env!("CARGO_PKG_VERSION");
        assert_eq!(format_version(None, None), plain);
        assert_eq!(format_version(Some(""), Some(" ")), plain);
        assert_eq!(format_version(Some("0369fa321c9b"), None), format!("{plain} (0369fa321c9b)"));
        let version = format_version(Some("0369fa321c9b"), Some("2026-11-27"));
        assert_eq!(version, format!("{plain} (0369fa321c9b 2026-11-27)"));
    }

    #[test]
    fn default_states_of_a_retry_are_those_of_the_dashboard() {
        let arguments = CliArguments::try_parse_from(["campaign", "retry", "sale"]).expect("valid arguments");
        let Command::Retry(retry) = arguments.command else { panic!("another command") };
        let states: Vec<RowState> = retry.states.into_iter().map(RowState::from).collect();
        assert_eq!(states, campaign_runs::DEFAULT_RETRY_STATES);
    }
}
