//! Command-line arguments of the commands that follow up on a run, such as `status` and `results`, and the options for
//! HTML pages that commands write.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};
use jiff::SignedDuration;
use secrecy::{ExposeSecret as _, SecretString};

use super::sending::parse_validity;
use crate::exit::CommandFailure;
use campaign_content::audience::parse_phone_number;
use campaign_core::domain::{Channel, Phone, Region, RowSet};
use campaign_engine::report::RowSelection;
use campaign_ledger::RowState;
use campaign_server::web::words::PageLanguage;

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file [default: all runs]
    pub(crate) run: Option<String>,
    /// Include rehearsals older than a day
    #[arg(long, conflicts_with = "run")]
    pub(crate) all: bool,
    /// Follow the run until its last receipt; without RUN, follow the run being sent or the latest one
    #[arg(long, conflicts_with = "all")]
    pub(crate) watch: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResultsArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    /// Write to this file (- for standard output): a workbook if its name ends in .xlsx, otherwise a CSV file
    ///
    /// The default is the run's own results file. With --excel, it is NAME.excel.xlsx next to that file; with --people,
    /// NAME.people.csv. If you select messages, the default is standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write a file for Excel: a workbook with a summary, or a CSV file that Excel reads without losing digits
    #[arg(long, conflicts_with = "json")]
    pub(crate) excel: bool,
    /// Write one row per recipient of the campaign's edition, across all runs of the edition
    #[arg(long, conflicts_with = "rows")]
    pub(crate) people: bool,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RepliesArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    /// Write to this file, which must not exist yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Show only replies that look like opt-outs but were not recorded as such
    #[arg(long, conflicts_with = "out")]
    pub(crate) review: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReconcileArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    /// Ask about all messages without a final status, not only those in doubt
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    /// Cancel the planned rows for good
    ///
    /// Later runs of the same edition skip these recipients, unless you pass `--again`.
    #[arg(long)]
    pub(crate) for_good: bool,
    /// Cancel without asking
    #[arg(short, long, requires = "for_good")]
    pub(crate) yes: bool,
}

/// The heading of the selection options.
const SELECTION_HEADING: &str = "Selection";

/// Which messages a command is about. All selectors must match; without any, all messages do.
#[derive(Debug, Args)]
pub(crate) struct SelectionArgs {
    /// Select these rows, for example 2-51,60; the header is row 1
    #[arg(long, visible_alias = "row", value_name = "ROWS", help_heading = SELECTION_HEADING)]
    pub(crate) rows: Option<RowSet>,
    /// Select messages to this number
    ///
    /// Use the international format, or the national format of the campaign's `region`.
    #[arg(long, value_name = "PHONE", help_heading = SELECTION_HEADING)]
    pub(crate) to: Option<SecretString>,
    /// Select messages in these states, for example rejected,in_doubt
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_parser(), help_heading = SELECTION_HEADING)]
    pub(crate) state: Vec<RowState>,
    /// Select messages whose error contains this text; can be repeated
    ///
    /// The search ignores case. If a message has no error, its gateway status is searched instead.
    #[arg(long, value_name = "TEXT", help_heading = SELECTION_HEADING)]
    pub(crate) error: Vec<String>,
    /// Select messages on these channels, for example viber,sms
    ///
    /// A message belongs to the channel that delivered it or, if none did, to the last channel that the gateway
    /// reported.
    #[arg(long, value_name = "CHANNEL", value_delimiter = ',', value_parser = channel_parser(), help_heading = SELECTION_HEADING)]
    pub(crate) channel: Vec<Channel>,
}

impl SelectionArgs {
    /// Whether no selector was typed.
    pub(crate) fn is_empty(&self) -> bool {
        let Self { rows, to, state, error, channel } = self;
        rows.is_none() && to.is_none() && state.is_empty() && error.is_empty() && channel.is_empty()
    }

    /// Whether the selectors name a single row or a single phone number, and no other condition.
    pub(crate) fn names_one_recipient(&self) -> bool {
        let Self { rows, to, state, error, channel } = self;
        let is_single = match (rows, to) {
            (Some(rows), None) => rows.single_row().is_some(),
            (rows, to) => rows.is_none() && to.is_some(),
        };
        is_single && state.is_empty() && error.is_empty() && channel.is_empty()
    }

    /// Returns the row selection; `--to` is parsed like a phone number in a list of this region.
    ///
    /// # Errors
    /// If `--to` is not a phone number, or no row can match all selectors.
    pub(crate) fn row_selection(&self, region: Option<Region>) -> Result<RowSelection, CommandFailure> {
        self.refuse_contradiction()?;
        let phone = self.to.as_ref().map(|typed| parse_phone(typed, region)).transpose()?;
        Ok(RowSelection { phone, ..self.row_selection_without_phone() })
    }

    /// Refuses selectors that exclude each other: rows without a message have neither a channel nor an error.
    ///
    /// # Errors
    /// If no row can match all selectors.
    pub(crate) fn refuse_contradiction(&self) -> Result<(), CommandFailure> {
        let is_unsent = |state: &RowState| matches!(state, RowState::Planned | RowState::Invalid);
        let selector = match (self.channel.is_empty(), self.error.is_empty()) {
            (false, _) => "--channel",
            (_, false) => "--error",
            _ => return Ok(()),
        };
        if self.state.is_empty() || !self.state.iter().all(is_unsent) {
            return Ok(());
        }
        let states: Vec<&str> = self.state.iter().map(|state| state.name()).collect();
        let message = format!("`{selector}` cannot be used with `--state {}`", states.join(","));
        Err(CommandFailure::invalid(message)
            .with_help(format!("no messages have been sent for rows in this state; remove `{selector}` or `--state`")))
    }

    /// Returns the row selection without the phone number, for a command that looks up the number itself.
    pub(crate) fn row_selection_without_phone(&self) -> RowSelection {
        let Self { rows, to: _, state, error, channel } = self;
        let (states, errors, channels) = (state.clone(), error.clone(), channel.clone());
        RowSelection { rows: rows.clone(), phone: None, states, errors, channels }
    }
}

/// Parses the phone number in `--to`: national in the region of the list, or international with or without `+`.
///
/// # Errors
/// If the value is not a phone number.
pub(crate) fn parse_phone(typed: &SecretString, region: Option<Region>) -> Result<Phone, CommandFailure> {
    let typed = typed.expose_secret();
    let international = || parse_phone_number(&format!("+{}", typed.trim_start_matches('+')), None);
    parse_phone_number(typed, region).or_else(|_| international()).map_err(|problem| {
        CommandFailure::invalid(format!("the `--to` value is not a valid phone number: {problem}"))
            .with_help("write the number with its country code, for example +380501234567")
    })
}

/// Creates a parser for state names, which shells can complete.
fn state_parser() -> impl TypedValueParser<Value = RowState> {
    PossibleValuesParser::new(RowState::ALL.map(RowState::name))
        .try_map(|name| RowState::from_name(&name).ok_or("unknown state"))
}

/// Creates a parser for channel names, which shells can complete.
fn channel_parser() -> impl TypedValueParser<Value = Channel> {
    PossibleValuesParser::new(Channel::ALL.map(Channel::name))
        .try_map(|name| Channel::from_name(&name).ok_or("unknown channel"))
}

/// The heading of the page options.
pub(crate) const PAGE_HEADING: &str = "HTML page";
/// The identifier of the option that names the file of a page.
pub(crate) const PAGE_FILE: &str = "page_file";

/// How a page is written.
#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    /// Open the page in a browser
    #[arg(long, help_heading = PAGE_HEADING)]
    pub(crate) open: bool,
    /// Show full phone numbers instead of only their last digits
    #[arg(long, help_heading = PAGE_HEADING)]
    pub(crate) unmasked: bool,
    /// Language of the page [default: the system's language if available, otherwise en]
    #[arg(long, value_enum, value_name = "LANGUAGE", help_heading = PAGE_HEADING)]
    pub(crate) lang: Option<LanguageName>,
}

/// Makes the page options of `preview` and `plan` require the option that names the file of the page.
pub(super) fn with_page_options(command: Command) -> Command {
    let require_file = |option: Arg| {
        let is_page_option = ["open", "unmasked", "lang"].contains(&option.get_id().as_str());
        if is_page_option { option.requires(PAGE_FILE) } else { option }
    };
    // `mut_subcommands` and `mut_args` keep the order of commands and options in the help.
    command.mut_subcommands(|sub| {
        let needs_file = ["preview", "plan"].contains(&sub.get_name());
        if needs_file { sub.mut_args(require_file) } else { sub }
    })
}

/// A language, as typed on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageName {
    /// English
    En,
    /// Ukrainian
    Uk,
}

impl PageArgs {
    /// Returns the language that was typed for the page, or else the language of the system.
    pub(crate) fn page_language(&self) -> PageLanguage {
        LanguageName::choose_language(self.lang)
    }
}

impl LanguageName {
    /// Returns the typed language, or else the language of the system.
    pub(crate) fn choose_language(typed: Option<Self>) -> PageLanguage {
        match typed {
            Some(LanguageName::En) => PageLanguage::English,
            Some(LanguageName::Uk) => PageLanguage::Ukrainian,
            None => {
                // As in POSIX, the first non-empty variable determines the locale.
                let is_set = |name: &&str| std::env::var(name).is_ok_and(|locale| !locale.is_empty());
                let name = ["LC_ALL", "LC_MESSAGES", "LANG"].into_iter().find(is_set);
                name.and_then(|name| std::env::var(name).ok())
                    .map(|locale| PageLanguage::from_locale(&locale))
                    .unwrap_or_default()
            }
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    /// Write the page to this file [default: NAME.report.html next to the results]
    #[arg(id = PAGE_FILE, long = "out", value_name = "FILE", help_heading = PAGE_HEADING)]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) page: PageArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OutcomeArgs {
    /// A run such as autumn-sale@3, or a campaign's name or file
    pub(crate) run: String,
    /// CSV file or workbook with the phone number and time of each purchase or other action
    #[arg(long, value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Column with the time of each purchase or action
    #[arg(long, value_name = "COLUMN")]
    pub(crate) at: String,
    /// Count actions taken within this time after the message
    #[arg(long, value_name = "DURATION", default_value = "7d", value_parser = parse_validity)]
    pub(crate) within: SignedDuration,
    /// Column with the amount of each purchase
    #[arg(long, value_name = "COLUMN")]
    pub(crate) amount: Option<String>,
    /// Column with the phone numbers [default: detected from the cells]
    #[arg(long, value_name = "COLUMN")]
    pub(crate) phone: Option<String>,
    /// Country of national numbers, such as UA [default: the campaign's `region`]
    #[arg(long, value_name = "COUNTRY")]
    pub(crate) region: Option<String>,
}
