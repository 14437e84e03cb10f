//! The options that select messages of a run, for `results`, `show` and `find`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use secrecy::{ExposeSecret as _, SecretString};

use crate::audience::parse_phone_number;
use crate::cli::failure::CommandFailure;
use crate::domain::{Channel, Phone, Region, RowSet};
use crate::ledger::RowState;
use crate::report::RowSelection;

/// The heading of these options.
const SELECTION_HEADING: &str = "Selection";

/// Which messages a command is about. All selectors must match; without any, all messages do.
#[derive(Debug, Args)]
pub(in crate::cli) struct SelectionArgs {
    /// Select these rows, such as 2-51,60; the header is row 1
    #[arg(long, visible_alias = "row", value_name = "ROWS", help_heading = SELECTION_HEADING)]
    pub(in crate::cli) rows: Option<RowSet>,
    /// Select messages to this number
    ///
    /// Use the international format, or the national format of the campaign's `region`.
    #[arg(long, value_name = "PHONE", help_heading = SELECTION_HEADING)]
    pub(in crate::cli) to: Option<SecretString>,
    /// Select messages in these states, such as rejected,in_doubt
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state_parser(), help_heading = SELECTION_HEADING)]
    pub(in crate::cli) state: Vec<RowState>,
    /// Select messages whose error contains this text; can be repeated
    ///
    /// The search ignores case. If a message has no error, its gateway status is searched instead.
    #[arg(long, value_name = "TEXT", help_heading = SELECTION_HEADING)]
    pub(in crate::cli) error: Vec<String>,
    /// Select messages on these channels, such as viber,sms
    ///
    /// A message belongs to the channel that delivered it, otherwise to the last channel that the gateway reported.
    #[arg(long, value_name = "CHANNEL", value_delimiter = ',', value_parser = channel_parser(), help_heading = SELECTION_HEADING)]
    pub(in crate::cli) channel: Vec<Channel>,
}

impl SelectionArgs {
    /// Whether no selector was typed.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        let Self { rows, to, state, error, channel } = self;
        rows.is_none() && to.is_none() && state.is_empty() && error.is_empty() && channel.is_empty()
    }

    /// Whether a single row or number is selected, without any other condition.
    pub(in crate::cli) fn names_one_message(&self) -> bool {
        let Self { rows, to, state, error, channel } = self;
        let single = match (rows, to) {
            (Some(rows), None) => rows.single_row().is_some(),
            (rows, to) => rows.is_none() && to.is_some(),
        };
        single && state.is_empty() && error.is_empty() && channel.is_empty()
    }

    /// The selection, with the number read as a list of this region would be.
    ///
    /// # Errors
    /// When `--to` is not a phone number, or no row can match all selectors.
    pub(in crate::cli) fn row_selection(&self, region: Option<Region>) -> Result<RowSelection, CommandFailure> {
        self.refuse_contradiction()?;
        let phone = self.to.as_ref().map(|typed| parse_phone(typed, region)).transpose()?;
        Ok(RowSelection { phone, ..self.rows_without_number() })
    }

    /// Refuses selectors that exclude each other: rows without a message have neither a channel nor an error.
    ///
    /// # Errors
    /// When no row can match all selectors.
    pub(in crate::cli) fn refuse_contradiction(&self) -> Result<(), CommandFailure> {
        let unsent = |state: &RowState| matches!(state, RowState::Planned | RowState::Invalid);
        let selector = match (self.channel.is_empty(), self.error.is_empty()) {
            (false, _) => "--channel",
            (_, false) => "--error",
            _ => return Ok(()),
        };
        if self.state.is_empty() || !self.state.iter().all(unsent) {
            return Ok(());
        }
        let states: Vec<&str> = self.state.iter().map(|state| state.name()).collect();
        let message = format!("`{selector}` cannot be used with `--state {}`", states.join(","));
        Err(CommandFailure::invalid(message)
            .with_help(format!("no messages have been sent for rows in this state; remove `{selector}` or `--state`")))
    }

    /// The selection without the number, for a command that looks for the number itself.
    pub(in crate::cli) fn rows_without_number(&self) -> RowSelection {
        let Self { rows, to: _, state, error, channel } = self;
        let (states, errors, channels) = (state.clone(), error.clone(), channel.clone());
        RowSelection { rows: rows.clone(), phone: None, states, errors, channels }
    }
}

/// The number of `--to`, as a list of this region would have it, or international without its plus sign.
///
/// # Errors
/// When it is not a phone number.
pub(in crate::cli) fn parse_phone(typed: &SecretString, region: Option<Region>) -> Result<Phone, CommandFailure> {
    let typed = typed.expose_secret();
    let international = || parse_phone_number(&format!("+{}", typed.trim_start_matches('+')), None);
    parse_phone_number(typed, region).or_else(|_| international()).map_err(|problem| {
        CommandFailure::invalid(format!("`--to` is not a valid phone number: {problem}"))
            .with_help("write the number with its country code, for example +380501234567")
    })
}

/// The names of the states, which shells offer.
fn state_parser() -> impl TypedValueParser<Value = RowState> {
    PossibleValuesParser::new(RowState::ALL.map(RowState::name))
        .try_map(|name| RowState::from_name(&name).ok_or("unknown state"))
}

/// The names of the channels, which shells offer.
fn channel_parser() -> impl TypedValueParser<Value = Channel> {
    PossibleValuesParser::new(Channel::ALL.map(Channel::name))
        .try_map(|name| Channel::ALL.into_iter().find(|channel| channel.name() == name).ok_or("unknown channel"))
}
