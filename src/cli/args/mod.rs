//! The arguments of every command.

mod about_run;

pub(super) use about_run::{Decision, ResolveArgs, RetryArgs, ShowArgs};

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use secrecy::SecretString;

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

/// Options that every command takes.
#[derive(Clone, Debug, Args)]
pub(super) struct Global {
    /// Where the ledger and the frozen runs are kept [default: the user's state folder]
    #[arg(long, global = true, value_name = "DIR", env = "CAMPAIGN_STATE_DIR")]
    pub(super) state_dir: Option<PathBuf>,
    /// The file with the gateways' profiles [default: gateways.yaml beside the campaign, above it, or in the user's
    /// configuration folder]
    #[arg(long, global = true, value_name = "FILE", env = "CAMPAIGN_GATEWAYS")]
    pub(super) gateways: Option<PathBuf>,
    /// Print one JSON object for programs instead of text
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Show no progress and no notes
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Log to standard error: the steps and each request; -vv also turns, intents and outcomes; -vvv also sizes. RUST_LOG
    /// such as `campaign=debug` sets the same
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
    /// Whether to colour what is shown
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    pub(super) color: ColorChoice,
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
    /// Show messages as people will see them
    Preview(PreviewArgs),
    /// Send a campaign, or go on where it stopped
    Run(RunArgs),
    /// Ask a running campaign to stop after what is in flight
    Stop(RunName),
    /// Show runs, their counts, and what to do next
    Status(StatusArgs),
    /// Write the results of a run as CSV
    Results(ResultsArgs),
    /// Ask the gateway about rows in doubt
    Reconcile(RunName),
    /// Decide about rows in doubt
    Resolve(ResolveArgs),
    /// Send rejected rows again, as new messages
    Retry(RetryArgs),
    /// Show the history of one message
    Show(ShowArgs),
    /// Ask about the account of a gateway, and manage its templates
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// Run the emulated gateway to rehearse against
    Sandbox(SandboxArgs),
    /// Print the JSON Schema of campaign files, for editors
    Schema,
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(super) struct InitArgs {
    /// The campaign's name: small letters, digits and dashes
    pub(super) name: String,
    /// A list of recipients (CSV) to write the campaign for
    #[arg(long, value_name = "LIST.csv")]
    pub(super) from: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// Campaign files
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Ask the gateway too: whether it takes the key, knows the sender names, and has enough money
    #[arg(long)]
    pub(super) online: bool,
    /// Check for this gateway instead of the campaign's
    #[arg(long, value_name = "NAME")]
    pub(super) gateway: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct PreviewArgs {
    /// The campaign file
    pub(super) file: PathBuf,
    /// Rows as a spreadsheet numbers them, such as 2-6,60 [default: the first three; with --json all]
    #[arg(long)]
    pub(super) rows: Option<RowSet>,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The campaign file
    pub(super) file: PathBuf,
    /// Send without asking
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Do everything but send
    #[arg(long, conflicts_with_all = [
        "limit", "rows", "again", "accept_changes", "keep_going", "real_time", "scenario",
    ])]
    pub(super) dry_run: bool,
    /// Send to the first N of the rows that are left, then pause
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Send to these rows only, such as 2-51,60, then pause
    #[arg(long)]
    pub(super) rows: Option<RowSet>,
    /// Send through this gateway instead of the campaign's
    #[arg(long, value_name = "NAME")]
    pub(super) gateway: Option<String>,
    /// Send to everybody once more; N is their number
    #[arg(long, value_name = "N")]
    pub(super) again: Option<u64>,
    /// Begin anew with changed inputs; whoever has a message is skipped
    #[arg(long)]
    pub(super) accept_changes: bool,
    /// Allow up to N recipients, above the gateway's own limit
    #[arg(long, value_name = "N")]
    pub(super) up_to: Option<u64>,
    /// Do not stop because of rejected messages
    #[arg(long)]
    pub(super) keep_going: bool,
    /// Do not ask a live gateway about key, sender names and money first
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) offline: bool,
    /// In a rehearsal, keep the pace of the real run
    #[arg(long)]
    pub(super) real_time: bool,
    /// Ask about rows in doubt once at the end, and do not stay to ask again
    #[arg(long)]
    pub(super) no_wait: bool,
    /// In a rehearsal, play this scenario: prices, lags and faults
    #[arg(long, value_name = "FILE")]
    pub(super) scenario: Option<PathBuf>,
    /// Go on with this ledger although messages went out that it does not know of
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) new_ledger: bool,
}

#[derive(Debug, Args)]
pub(super) struct RunName {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(super) run: String,
}

#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file [default: all runs]
    pub(super) run: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct ResultsArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(super) run: String,
    /// The file to write; - for standard output [default: where the run wrote them, or NAME.excel.csv, NAME.people.csv
    /// beside that; with --state standard output]
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
    /// For Excel: with a byte order mark, the separator of the list, and each digit of long numbers
    #[arg(long, conflicts_with = "json")]
    pub(super) excel: bool,
    /// One row per person of the campaign's edition, whatever run they were in
    #[arg(long)]
    pub(super) people: bool,
    /// Only rows in these states, such as rejected,in_doubt
    #[arg(long, value_delimiter = ',', value_parser = state)]
    pub(super) state: Vec<State>,
}

fn state(name: &str) -> Result<State, String> {
    State::from_name(name.trim()).ok_or_else(|| {
        let names = State::ALL.map(State::name);
        format!("there is no such state; use {}", crate::finding::list(names))
    })
}

#[derive(Debug, Subcommand)]
pub(super) enum GatewayCommand {
    /// Show how much money is left
    Balance(Through),
    /// Show the sender names and whether they are verified
    Senders(Through),
    /// Show what became of messages
    Status(MessageArgs),
    /// List, create or delete SMS templates
    #[command(subcommand)]
    Templates(SmsTemplatesCommand),
    /// List, create or delete Viber templates
    #[command(subcommand)]
    ViberTemplates(ViberTemplatesCommand),
    /// Accept that a profile's host has changed
    Trust {
        /// The profile's name
        name: String,
    },
    /// Look a number up: whether it is valid, and whose it is; costs money, the subscriber notices nothing
    Lookup(SingleArgs),
    /// Call a phone from a number whose last four digits are a one-time code, and print the code; costs money
    Otp(SingleArgs),
}

#[derive(Debug, Args)]
pub(super) struct SingleArgs {
    /// The number: international, or national with --region
    pub(super) phone: SecretString,
    /// The profile to ask through, or `sandbox` [default: the only profile there is]
    #[arg(long, value_name = "NAME")]
    pub(super) gateway: Option<String>,
    /// The country of a national number, such as UA
    #[arg(long, value_name = "ISO")]
    pub(super) region: Option<String>,
    /// Do it without asking
    #[arg(short, long)]
    pub(super) yes: bool,
}

/// The account that a command is about.
#[derive(Debug, Args)]
pub(super) struct Through {
    /// The gateway's profile [default: the only one of gateways.yaml]
    #[arg(long, value_name = "NAME")]
    pub(super) gateway: Option<String>,
}

/// A yes that is given beforehand.
#[derive(Debug, Args)]
pub(super) struct Agreed {
    /// Do it without asking
    #[arg(short, long)]
    pub(super) yes: bool,
}

#[derive(Debug, Args)]
pub(super) struct MessageArgs {
    /// Identifiers of messages: `id` in the results, or `msg_id` with --msg-id
    #[arg(required = true, value_name = "ID")]
    pub(super) ids: Vec<String>,
    /// The identifiers are the gateway's
    #[arg(long)]
    pub(super) msg_id: bool,
    #[command(flatten)]
    pub(super) through: Through,
}

#[derive(Debug, Subcommand)]
pub(super) enum SmsTemplatesCommand {
    /// Show the SMS templates
    List(Through),
    /// Create an SMS template
    Create {
        /// Its name
        name: String,
        #[command(flatten)]
        text: TextArgs,
        #[command(flatten)]
        agreed: Agreed,
        #[command(flatten)]
        through: Through,
    },
    /// Delete an SMS template
    Delete {
        /// Its number in the list
        id: u64,
        #[command(flatten)]
        agreed: Agreed,
        #[command(flatten)]
        through: Through,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ViberTemplatesCommand {
    /// Show the Viber templates
    List(Through),
    /// Create a Viber template, which the gateway then looks over
    Create {
        /// The sender name that it is for
        #[arg(long)]
        signature: String,
        #[command(flatten)]
        text: TextArgs,
        #[command(flatten)]
        agreed: Agreed,
        #[command(flatten)]
        through: Through,
    },
    /// Delete a Viber template
    Delete {
        /// Its number in the list
        id: u64,
        /// Its text, which the gateway wants as well [default: the text in the list]
        #[arg(long)]
        text: Option<String>,
        #[command(flatten)]
        agreed: Agreed,
        #[command(flatten)]
        through: Through,
    },
}

/// The text of a template: typed, or in a file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct TextArgs {
    /// The text
    #[arg(long)]
    pub(super) text: Option<String>,
    /// The file with the text; its last line break is dropped
    #[arg(long, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct SandboxArgs {
    /// The address to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8025", value_name = "ADDRESS")]
    pub(super) listen: SocketAddr,
    /// The API key that it accepts [default on this machine's own addresses: sandbox]
    #[arg(long)]
    pub(super) key: Option<String>,
    /// Play this scenario: accounts, prices, lags and faults
    #[arg(long, value_name = "FILE")]
    pub(super) scenario: Option<PathBuf>,
    /// Write all that happens to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(super) journal: Option<PathBuf>,
    /// Tell this address of statuses that no hook keeps, as the API settings of the first account would
    #[arg(long, value_name = "URL")]
    pub(super) notify: Option<String>,
    /// Send webhooks to any host, and not only to this machine
    #[arg(long)]
    pub(super) any_hook: bool,
    /// Print what it assumes where the gateway's contract is silent
    #[arg(long)]
    pub(super) assumptions: bool,
}
