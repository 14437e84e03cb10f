//! The yes without which nothing is sent off this machine.

use std::path::Path;

use super::{Inputs, ListSurvey};
use crate::delivery::Snapshot;
use crate::gateway::BoxFuture;
use crate::ledger::Run;
use crate::manifest::Profile;

/// What somebody agrees to.
pub enum Question<'q> {
    /// A new run.
    Begin {
        /// The campaign.
        inputs: &'q Inputs,
        /// What it goes through.
        profile: &'q Profile,
        /// What was found in the list.
        survey: &'q ListSurvey,
        /// The state folder, where the ledger is.
        state: &'q Path,
        /// How many people get a message.
        number: u64,
    },
    /// Going on with a run.
    GoOn {
        /// The run.
        run: &'q Run,
        /// Where it stands.
        snapshot: &'q Snapshot,
        /// What it goes through.
        profile: &'q Profile,
        /// How many people get a message.
        number: u64,
    },
}

/// Why there is no yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody can be asked about messages to so many people.
    NobodyToAsk(u64),
    /// Who was asked did not agree.
    No,
}

/// Somebody who can agree: a person at a terminal, an order that was given beforehand.
pub trait Consent: Send + Sync {
    /// Whether a yes can come at all; where none can, no gateway is asked anything either.
    fn can_come(&self) -> bool;

    /// Asks for a yes.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<(), Refusal>>;
}
