//! The yes without which nothing is sent off this machine.

use jiff::Zoned;
use roaring::RoaringBitmap;

use super::policy::describe_closed_window;
use super::{
    Error, Inputs, ListSurvey, PlanReview, RestOfRun, Sample, ScheduleActivation, StandingApproval, TemplateChange,
};
use crate::check::online::Cost;
use crate::delivery::{SingleKind, Snapshot};
use crate::domain::{Phone, format_count};
use crate::gateway::{Balance, BoxFuture};
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
        /// Whom messages go to.
        rows: &'q RoaringBitmap,
        /// Some of their messages, if a person sees them.
        samples: &'q [Sample],
        /// The balance of the account, if it is known.
        balance: Option<&'q Balance>,
        /// Whether it is a new round, in which recipients get the message once more.
        again: bool,
    },
    /// That a campaign runs by itself from now on.
    ActivateSchedule {
        /// What is going to be armed.
        arming: &'q ScheduleActivation,
        /// What it goes through.
        profile: &'q Profile,
        /// Some of the messages, if a person sees them.
        samples: &'q [Sample],
    },
    /// That what was planned is sent.
    Approve {
        /// What is approved.
        approving: &'q PlanReview,
        /// What it goes through.
        profile: &'q Profile,
        /// Whether it is for all that is due by its schedule.
        standing: Option<StandingApproval>,
        /// Some of the messages, if a person sees them.
        samples: &'q [Sample],
    },
    /// Resuming a run, or sending rows of it again.
    Resume {
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
        /// The balance of the account, if it is known.
        balance: Option<&'q Balance>,
        /// What the call sends, if a person sees it.
        rest: Option<&'q RestOfRun>,
        /// Whether the messages are sent again.
        is_retry: bool,
    },
    /// A lookup, a code call or a test message, which costs money.
    Single {
        /// Which.
        operation: SingleKind,
        /// Of whom.
        phones: &'q [Phone],
        /// What it goes through.
        profile: &'q Profile,
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
            Proposal::ActivateSchedule { .. } => ProposalKind::ActivateSchedule,
            Proposal::Approve { .. } | Proposal::Pending { .. } => ProposalKind::Approve,
            Proposal::Resume { number, .. } => ProposalKind::Run(*number),
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
    ActivateSchedule,
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

/// Why there is no confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentRefusal {
    /// There is no terminal to ask at.
    NoTerminal,
    /// The person who was asked did not confirm.
    Declined,
}

/// Somebody who can agree: a person at a terminal, an order that was given beforehand.
pub trait Consent: Send + Sync {
    /// Whether a yes can come at all; where none can, no gateway is asked anything either.
    fn can_confirm(&self) -> bool;

    /// Whether a person sees each proposal, with its warnings.
    fn shows_proposals(&self) -> bool {
        false
    }

    /// Asks for a yes.
    fn ask<'a>(&'a self, question: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>>;
}

/// Why something was not confirmed, in words.
pub(super) fn describe_refusal(what: &ProposalKind, refusal: ConsentRefusal) -> String {
    let needs = match (what, refusal) {
        (ProposalKind::Run(_) | ProposalKind::Single | ProposalKind::OutsideWindow(_), ConsentRefusal::Declined) => {
            return "Cancelled. Nothing was sent.".to_owned();
        }
        (ProposalKind::ActivateSchedule, ConsentRefusal::Declined) => {
            return "Cancelled. The schedule was not activated.".to_owned();
        }
        (ProposalKind::Approve, ConsentRefusal::Declined) => return "Cancelled. Nothing was approved.".to_owned(),
        (ProposalKind::Template { .. }, ConsentRefusal::Declined) => {
            return "Cancelled. Nothing was changed.".to_owned();
        }
        (ProposalKind::OutsideWindow(opens), ConsentRefusal::NoTerminal) => {
            return format!("{}; nothing was sent", describe_closed_window(opens.as_ref()));
        }
        (ProposalKind::Approve, ConsentRefusal::NoTerminal) => {
            return "the reviewer must confirm the approval at a terminal; nothing was approved".to_owned();
        }
        (ProposalKind::Run(number), ConsentRefusal::NoTerminal) => {
            format!("sending to {} through a live gateway", format_count(*number, "recipient"))
        }
        (ProposalKind::ActivateSchedule, ConsentRefusal::NoTerminal) => {
            return "a schedule that sends through a live gateway needs confirmation; it was not activated".to_owned();
        }
        (ProposalKind::Single, ConsentRefusal::NoTerminal) => "a paid request to a live gateway".to_owned(),
        (ProposalKind::Template { gateway, verb }, ConsentRefusal::NoTerminal) => {
            return format!(
                "confirmation is required to {verb} a template on the live gateway `{gateway}`; nothing was changed"
            );
        }
    };
    format!("{needs} needs confirmation; nothing was sent")
}

/// Asks for a yes.
pub(super) async fn confirm(consent: &dyn Consent, question: Proposal<'_>) -> Result<(), Error> {
    let what = question.kind();
    consent.ask(question).await.map_err(|refusal| Error::NotConfirmed { what, refusal })
}
