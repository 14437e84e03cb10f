//! The yes without which nothing is sent off this machine.

use jiff::Zoned;
use roaring::RoaringBitmap;

use super::{Approving, Arming, Error, Inputs, ListSurvey, Standing, TemplateChange};
use crate::check::online::Cost;
use crate::delivery::{SingleKind, Snapshot};
use crate::domain::Phone;
use crate::gateway::BoxFuture;
use crate::ledger::Run;
use crate::manifest::Profile;

/// What somebody agrees to.
pub enum Proposal<'q> {
    /// A new run.
    Begin {
        /// The campaign.
        inputs: &'q Inputs,
        /// What it goes through.
        profile: &'q Profile,
        /// What was found in the list.
        survey: &'q ListSurvey,
        /// Where the ledger is.
        ledger: String,
        /// Whom messages go to.
        rows: &'q RoaringBitmap,
        /// Whether it is a new round, in which recipients get the message once more.
        again: bool,
    },
    /// That a campaign runs by itself from now on.
    Arm {
        /// What is going to be armed.
        arming: &'q Arming,
        /// What it goes through.
        profile: &'q Profile,
        /// Where the ledger is.
        ledger: String,
    },
    /// That what was planned is sent.
    Approve {
        /// What is approved.
        approving: &'q Approving,
        /// What it goes through.
        profile: &'q Profile,
        /// Whether it is for all that is due by its schedule.
        standing: Option<Standing>,
        /// Where the ledger is.
        ledger: String,
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
        /// What they cost, where the profile has prices.
        cost: Option<Cost>,
    },
    /// A lookup, a code call or a test message, which costs money.
    Single {
        /// Which.
        operation: SingleKind,
        /// Of whom.
        phones: &'q [Phone],
        /// What it goes through.
        profile: &'q Profile,
        /// Where the ledger is.
        ledger: String,
    },
    /// That test messages leave while the window is closed.
    OutsideWindow {
        /// When it opens; nothing if it stays closed for a year.
        opens: Option<&'q Zoned>,
    },
    /// A single thing that an assistant wants to have done.
    Pending {
        /// The gateway's profile.
        gateway: &'q str,
        /// What it is, as a person reads it.
        shown: &'q str,
        /// Where the ledger is.
        ledger: String,
    },
    /// A change of the templates of an account.
    Template {
        /// What it goes through.
        profile: &'q Profile,
        /// The change.
        change: &'q TemplateChange,
    },
}

impl Proposal<'_> {
    fn kind(&self) -> ProposalKind {
        match self {
            Proposal::Begin { rows, .. } => ProposalKind::Run(rows.len()),
            Proposal::Arm { .. } => ProposalKind::Arm,
            Proposal::Approve { .. } | Proposal::Pending { .. } => ProposalKind::Approve,
            Proposal::GoOn { number, .. } => ProposalKind::Run(*number),
            Proposal::Single { .. } => ProposalKind::Single,
            Proposal::OutsideWindow { opens } => ProposalKind::OutsideWindow(opens.cloned()),
            Proposal::Template { profile, change } => {
                ProposalKind::Template { gateway: profile.name.clone(), verb: change.verb() }
            }
        }
    }
}

/// What a proposal is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalKind {
    /// Messages to so many people.
    Run(u64),
    /// That a campaign runs by itself.
    Arm,
    /// That what was planned is sent.
    Approve,
    /// A lookup or a code call.
    Single,
    /// That test messages leave while the window is closed, which opens then.
    OutsideWindow(Option<Zoned>),
    /// A change of templates.
    Template {
        /// The profile.
        gateway: String,
        /// What it does: `create` or `delete`.
        verb: &'static str,
    },
}

/// Why there is no yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody can be asked.
    NobodyToAsk,
    /// Who was asked did not agree.
    No,
}

/// Somebody who can agree: a person at a terminal, an order that was given beforehand.
pub trait Consent: Send + Sync {
    /// Whether a yes can come at all; where none can, no gateway is asked anything either.
    fn can_come(&self) -> bool;

    /// Whether a person sees each proposal, with its warnings.
    fn shows_proposals(&self) -> bool {
        false
    }

    /// Asks for a yes.
    fn ask<'a>(&'a self, question: Proposal<'a>) -> BoxFuture<'a, Result<(), Refusal>>;
}

/// Asks for a yes.
pub(super) async fn confirm(consent: &dyn Consent, question: Proposal<'_>) -> Result<(), Error> {
    let what = question.kind();
    consent.ask(question).await.map_err(|refusal| Error::NotConfirmed { what, refusal })
}
