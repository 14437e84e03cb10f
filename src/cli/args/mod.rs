//! The arguments of every command.

mod about_run;
mod check;
mod connector;
mod examples;
mod gateway;
mod init;
mod ledger;
mod ledger_url;
mod outcome;
mod page;
mod people;
mod plan;
mod report;
mod sandbox;
mod schedule;
mod serve;
mod suppress;
mod worker;

pub(super) use about_run::{Decision, ResolveArgs, RetryArgs, ShowArgs};
pub(super) use check::{CheckArgs, ExplainArgs, Format, PreviewArgs};
pub(super) use connector::ConnectorArgs;
pub(super) use examples::{command, command_without_environment};
pub(super) use gateway::{
    AddArgs, GatewayCommand, GatewayOption, HookArgs, MessageArgs, SingleArgs, SmsTemplatesCommand, TestArgs, TextArgs,
    ViberTemplatesCommand,
};
pub(super) use init::InitArgs;
pub(super) use ledger::LedgerCommand;
pub(super) use ledger_url::LedgerUrl;
pub(super) use outcome::OutcomeArgs;
pub(super) use people::{FindArgs, ForgetArgs, PurgeArgs};
pub(super) use plan::{ApproveArgs, PlanArgs};
pub(super) use report::ReportArgs;
pub(super) use sandbox::SandboxArgs;
pub(super) use schedule::{ArmArgs, NextArgs, ScheduleCommand};
pub(super) use serve::{LinkArgs, ServeArgs, ServeCommand};
pub(super) use suppress::{ImportArgs, ListedArgs, NumberArgs, RemoveArgs, SuppressCommand, TermsArgs};
pub(super) use worker::WorkerArgs;

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::domain::RowSet;
use crate::ledger::State;

/// Send message campaigns from a file: SMS, Viber, RCS, voice, Telegram, WhatsApp.
#[derive(Debug, Parser)]
#[command(name = "campaign", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The heading of the options that every command takes.
const GLOBAL: &str = "Options of every command";

/// Options that every command takes.
#[derive(Clone, Debug, Args)]
pub(super) struct Global {
    /// The ledger that several machines share, such as postgres://user@host/database, whose password belongs into
    /// PGPASSWORD or ~/.pgpass [default: a file in the state folder]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "URL", env = "CAMPAIGN_LEDGER", hide_env_values = true)]
    pub(super) ledger: Option<LedgerUrl>,
    /// Where the ledger and the frozen runs are kept [default: the user's state folder]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "DIR", env = "CAMPAIGN_STATE_DIR")]
    pub(super) state_dir: Option<PathBuf>,
    /// The file with the gateways' profiles [default: gateways.yaml beside the campaign, above it, or in the user's
    /// configuration folder]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "FILE", env = "CAMPAIGN_GATEWAYS")]
    pub(super) gateways: Option<PathBuf>,
    /// Print one JSON object for programs instead of text
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(super) json: bool,
    /// Say nothing of what was done, only what was not
    #[arg(short, long, global = true, help_heading = GLOBAL, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Log to standard error: the steps and each request; -vv also turns, intents and outcomes; -vvv also sizes. RUST_LOG
    /// such as `campaign=debug` sets the same
    #[arg(short, long, global = true, help_heading = GLOBAL, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Whether to colour what is shown
    #[arg(long, global = true, help_heading = GLOBAL, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub(super) color: ColorChoice,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressForm {
    /// A bar on a terminal, lines elsewhere, nothing with --json or -q
    #[default]
    Auto,
    /// A bar that moves
    Bar,
    /// A line every ten seconds, with the time
    Lines,
    /// An object a line, for programs
    Json,
    /// Nothing
    None,
}

impl Command {
    /// Whether it prints one JSON object although `--json` was not written.
    pub(super) fn prints_json(&self) -> bool {
        matches!(self, Command::Check(CheckArgs { format: Some(Format::Json), .. }))
    }

    /// How its progress is shown.
    pub(super) fn progress(&self) -> ProgressForm {
        match self {
            Command::Run(args) => args.progress,
            Command::Retry(args) => args.progress,
            _ => ProgressForm::Auto,
        }
    }
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    /// On a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a campaign file, texts and a list to start from; overwrites nothing
    Init(InitArgs),
    /// Find everything that can be known before sending
    Check(CheckArgs),
    /// Tell why a rule of `check` is one, and how to mend what breaks it
    Explain(ExplainArgs),
    /// Show messages as people will see them
    Preview(PreviewArgs),
    /// Send a message of a campaign to yourself first; it counts as none of the campaign's
    Test(TestArgs),
    /// Send a campaign, or go on where it stopped
    Run(RunArgs),
    /// Look at what a run would send, and keep it under a digest for thirty days
    Plan(PlanArgs),
    /// Agree to what was planned, so that one run may send it
    Approve(ApproveArgs),
    /// Ask a running campaign to stop after what is in flight
    Stop(StopArgs),
    /// Show runs, their counts, and what to do next
    Status(StatusArgs),
    /// Write the results of a run as CSV
    Results(ResultsArgs),
    /// Write a run as a page: its numbers, charts and first messages
    Report(ReportArgs),
    /// Print what recipients answered, as CSV
    Replies(RepliesArgs),
    /// Count what people bought after their message, against those who got none
    Outcome(OutcomeArgs),
    /// Ask the gateway about rows in doubt
    Reconcile(ReconcileArgs),
    /// Decide about rows in doubt
    Resolve(ResolveArgs),
    /// Send again what was rejected or not sent, as new messages
    Retry(RetryArgs),
    /// Show the history of one message
    Show(ShowArgs),
    /// Ask about the account of a gateway, and manage its templates
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// Keep the list of who gets no marketing
    #[command(subcommand)]
    Suppress(SuppressCommand),
    /// Show every message to a person: all rows of all runs with that number
    Find(FindArgs),
    /// Take a person out of the ledger, the copies and the results: the number and all cells
    Forget(ForgetArgs),
    /// Take the people of old runs out of the ledger and the copies; counts and identifiers stay
    Purge(PurgeArgs),
    /// Look after the ledger itself
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Have campaigns run by themselves
    #[command(subcommand)]
    Schedule(ScheduleCommand),
    /// Run the emulated gateway to rehearse against
    Sandbox(SandboxArgs),
    /// Run the process of a server
    Serve(ServeArgs),
    /// Take shares of runs that other processes on the ledger began with `run --shared`
    Worker(WorkerArgs),
    /// Be the gateway for AI assistants, as tools of the Model Context Protocol
    Connector(ConnectorArgs),
    /// Print the JSON Schema of a kind of files, for editors
    Schema {
        /// The files
        #[arg(value_enum, default_value_t = SchemaOf::Campaign)]
        of: SchemaOf,
    },
    /// Print completions for a shell
    Completions {
        /// The shell
        #[arg(required_unless_present = "names")]
        shell: Option<clap_complete::Shell>,
        /// Print these names, for the completions
        #[arg(long, value_enum, hide = true, conflicts_with = "shell")]
        names: Option<Names>,
    },
}

/// What a schema is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaOf {
    /// Campaign files
    Campaign,
    /// gateways.yaml
    Gateways,
    /// Scenarios of the sandbox
    Scenario,
}

/// What completions are offered the names of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Names {
    Runs,
    Gateways,
    Campaigns,
}

/// The headings of the options of `run`.
const WHO: &str = "Who gets it";
const ASKED: &str = "What is asked first";
const TRIED: &str = "Without people";

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The campaign file
    #[arg(id = "campaign", value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Send without asking
    #[arg(short, long, help_heading = ASKED)]
    pub(super) yes: bool,
    /// Send a campaign with a schedule at once
    #[arg(long, conflicts_with = "when_due")]
    pub(super) now: bool,
    /// Wait until a campaign with a schedule is due, then send it
    #[arg(long, conflicts_with_all = ["dry_run", "again", "accept_changes"])]
    pub(super) when_due: bool,
    /// Send only what `campaign plan` printed this digest for
    #[arg(long, value_name = "DIGEST", conflicts_with_all = ["dry_run", "accept_changes"], help_heading = ASKED)]
    pub(super) plan: Option<String>,
    /// Send what this token approves, which `campaign approve --key` printed on another machine
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["dry_run", "accept_changes"], help_heading = ASKED)]
    pub(super) approval: Option<String>,
    /// Do everything but send
    #[arg(long, conflicts_with_all = [
        "limit", "rows", "again", "keep_going", "real_time", "scenario",
    ], help_heading = TRIED)]
    pub(super) dry_run: bool,
    /// Send to the first N of the rows that are left, then pause
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = WHO)]
    pub(super) limit: Option<u64>,
    /// Send to these rows only, such as 2-51,60, then pause
    #[arg(long, help_heading = WHO)]
    pub(super) rows: Option<RowSet>,
    /// Send through this gateway instead of the campaign's
    #[arg(long, value_name = "NAME")]
    pub(super) gateway: Option<String>,
    /// Send to everybody once more; N is their number
    #[arg(long, value_name = "N", help_heading = WHO)]
    pub(super) again: Option<u64>,
    /// Begin anew with changed inputs; whoever has a message is skipped
    #[arg(long, help_heading = ASKED)]
    pub(super) accept_changes: bool,
    /// The runs of this name are of this file, which was moved
    #[arg(long, help_heading = ASKED)]
    pub(super) moved: bool,
    /// Allow up to N recipients, above the gateway's own limit
    #[arg(long, value_name = "N", help_heading = ASKED)]
    pub(super) up_to: Option<u64>,
    /// Do not stop because of rejected messages
    #[arg(long)]
    pub(super) keep_going: bool,
    /// Have workers take shares of the run (see `campaign worker`); this process takes some too
    #[arg(long, conflicts_with_all = ["dry_run", "limit", "rows", "real_time", "scenario"])]
    pub(super) shared: bool,
    /// Do not ask a live gateway about key, sender names and money first
    #[arg(long, conflicts_with = "dry_run", help_heading = ASKED)]
    pub(super) offline: bool,
    /// In a rehearsal, keep the pace of the real run
    #[arg(long, help_heading = TRIED)]
    pub(super) real_time: bool,
    /// Ask about rows in doubt once at the end, and do not stay to ask again
    #[arg(long)]
    pub(super) no_wait: bool,
    /// In a rehearsal, play this scenario: prices, lags and faults
    #[arg(long, value_name = "FILE", help_heading = TRIED)]
    pub(super) scenario: Option<PathBuf>,
    /// How progress is shown, on standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    pub(super) progress: ProgressForm,
    /// Go on with this ledger although messages went out that it does not know of
    #[arg(long, conflicts_with = "dry_run", help_heading = ASKED)]
    pub(super) new_ledger: bool,
    /// Accept that N people may get the message twice, because the ledger was restored from a backup
    #[arg(long, value_name = "N", conflicts_with = "dry_run", help_heading = ASKED)]
    pub(super) i_accept_duplicates: Option<u64>,
}

#[derive(Debug, Args)]
pub(super) struct RunName {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(super) run: String,
}

#[derive(Debug, Args)]
pub(super) struct StopArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(super) run: String,
    /// End it for good: cancel its planned rows. A later `run` of the same edition skips their recipients, unless you pass
    /// `--again`
    #[arg(long)]
    pub(super) for_good: bool,
    /// Cancel without asking
    #[arg(short, long, requires = "for_good")]
    pub(super) yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Rehearsals of more than a day ago too
    #[arg(long, conflicts_with = "run")]
    pub(super) all: bool,
    /// Follow one run until nothing more can come; without RUN the one that is being sent, else the latest
    #[arg(long, conflicts_with = "all")]
    pub(super) watch: bool,
    /// A run such as autumn-sale@3, or a campaign's name or file [default: all runs]
    pub(super) run: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ResultsArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(super) run: String,
    /// The file to write: a workbook if its name ends in .xlsx, else CSV; - for standard output [default: where the run wrote
    /// them, or NAME.excel.xlsx, NAME.people.csv beside that; with --state standard output]
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// For Excel: a workbook with a summary. A CSV has a byte order mark, the separator that Excel expects in the country of
    /// the list, and all digits of long numbers
    #[arg(long, conflicts_with = "json")]
    pub(super) excel: bool,
    /// One row per person of the campaign's edition, whatever run they were in
    #[arg(long)]
    pub(super) people: bool,
    /// Only rows in these states, such as rejected,in_doubt
    #[arg(long, value_delimiter = ',', value_parser = state())]
    pub(super) state: Vec<State>,
}

#[derive(Debug, Args)]
pub(super) struct RepliesArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(super) run: String,
    /// The file to write; one that is there already is left alone [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// Show only replies that look like an opt-out and were not recorded as one
    #[arg(long, conflicts_with = "out")]
    pub(super) review: bool,
}

#[derive(Debug, Args)]
pub(super) struct ReconcileArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(super) run: String,
    /// Ask about every message that has no end yet, and not only about rows in doubt
    #[arg(long)]
    pub(super) all: bool,
}

/// The words of the states, which shells then offer.
fn state() -> impl TypedValueParser<Value = State> {
    PossibleValuesParser::new(State::ALL.map(State::name))
        .try_map(|name| State::from_name(&name).ok_or("there is no such state"))
}
