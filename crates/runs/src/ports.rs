//! Ports of runs: adapters for storage, network and time, the observer of events, and the consent of a person.
//!
//! Surfaces choose the adapters. Without consent, nothing is sent off this machine.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{Timestamp, Zoned};
use roaring::RoaringBitmap;
use secrecy::SecretString;

use super::policy::describe_closed_window;
use super::{
    Error, FetchContext, Inputs, ListSurvey, PlanReview, Profiles, RestOfRun, RetriedError, RetryScope, Sample,
    ScheduleActivation, SkippedRetries, StaleResults, StandingApproval, TemplateChange,
};
use campaign_core::domain::{Endpoint, Phone, format_count};
use campaign_core::finding::Finding;
use campaign_engine::check::online::Cost;
use campaign_engine::delivery::{self, Reconciliation, SingleKind, Snapshot};
use campaign_engine::report::{LossSign, ResultsBackup};
use campaign_gateway::{AnswerRules, Balance, BoxFuture, GatewayAddress, JsonApi, JsonApiError, TemplateChannel};
use campaign_ledger::{Ledger, Run, SlotWait, StateCounts};
use campaign_manifest::Profile;

/// Creates a client of a gateway. No request is sent.
pub type Connect = fn(&GatewayAddress, Endpoint, SecretString, AnswerRules) -> Result<JsonApi, JsonApiError>;

/// Returns the piped input of the process, if there is any.
pub type PipedInput = fn() -> Option<Box<dyn Read + Send>>;

/// Pages about an account that a person can open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccountView {
    /// The remaining balance.
    Balance,
    /// The sender names.
    Senders,
    /// The message templates of a channel.
    Templates(TemplateChannel),
}

/// Returns the command or link that opens a page of an account. The second argument is the name of the profile.
pub type NameView = Arc<dyn Fn(AccountView, &str) -> String + Send + Sync>;

/// The adapters through which a run reaches the ledger, gateways, profiles, the clock and its observer.
#[derive(Clone)]
pub struct Adapters {
    /// The display name of this process: machine and process number.
    pub process: String,
    /// The state folder.
    pub state: PathBuf,
    /// The ledger, which other processes can use at the same time.
    pub ledger: Arc<dyn Ledger>,
    /// Where gateway profiles are loaded from.
    pub profiles: Profiles,
    /// Creates clients of gateways.
    pub connect: Connect,
    /// The piped input.
    pub input: PipedInput,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
    /// Names the pages that findings mention.
    pub name_view: NameView,
    /// The observer of events.
    pub observer: RunObserver,
}

impl Adapters {
    /// The context for fetching a list.
    pub fn fetch_context(&self) -> FetchContext<'_> {
        let Self { state, ledger, profiles, observer, input, .. } = self;
        FetchContext { state, ledger: Some(ledger.as_ref()), profiles, input: *input, observer }
    }
}

/// An event for a [`RunObserver`]. Checks, inquiries and receipts also report events.
#[derive(Debug)]
pub enum RunEvent {
    /// Problems that do not prevent sending.
    Warnings(Vec<Finding>),
    /// Other profiles cannot be used.
    OtherProfiles(Vec<Finding>),
    /// Webhooks to the address of a profile cannot be received.
    HookUnusable {
        /// The name of the profile.
        profile: String,
        /// The problem with a webhook secret, in words.
        reason: String,
    },
    /// Messages were sent that the ledger does not contain, so its data might be wrong.
    Contradicted(LossSign),
    /// A list is being fetched from its source.
    Fetching {
        /// The source, in words.
        what: String,
    },
    /// Recipients of an earlier run are selected, and some of its messages have no final status.
    NotFinal {
        /// The name of the earlier run, such as `sale@2`.
        run: String,
        /// The number of messages, in words.
        messages: String,
    },
    /// Copies or results that contradict the ledger were renamed.
    PutAside {
        /// The copies or results.
        sign: LossSign,
        /// Their new path.
        aside: String,
    },
    /// Results of another run were renamed, because this run writes to their path.
    ResultsKept(ResultsBackup),
    /// An inquiry waits for the account's rate limit.
    WaitingToAsk(SlotWait),
    /// The balance of the account and the cost of the messages.
    Money {
        /// The balance, as the gateway has just reported it.
        balance: Balance,
        /// The maximum cost of the messages that would be sent.
        cost: Cost,
    },
    /// An approval replaces the confirmation.
    Approved {
        /// The approver.
        by: String,
        /// The time at which the plan was approved.
        at: Timestamp,
    },
    /// An earlier run is resumed.
    GoingOn {
        /// The name of the resumed run.
        run: String,
        /// The edition of the resumed run, if the campaign now has a different one.
        other_edition: Option<String>,
    },
    /// A new run replaces another run and keeps the edition of that run, although the campaign now has a different
    /// edition.
    EditionKept {
        /// The name of the replaced run.
        replaced: String,
        /// The edition that is kept, not the campaign's current edition.
        edition: String,
    },
    /// The gateway is asked about messages with several channels before a retry.
    AskingBeforeRetry {
        /// The number of rows.
        rows: u64,
    },
    /// The selection of a retry.
    RetryPlanned {
        /// The run's name.
        run: String,
        /// Rows that are sent again.
        rows: u64,
        /// Rows that are not sent again, by reason.
        skipped: SkippedRetries,
        /// The errors of the rows that are sent again, with the number of rows.
        errors: Vec<RetriedError>,
        /// The requested scope of the retry.
        scope: RetryScope,
    },
    /// Rows of a run are sent as new messages.
    Retrying {
        /// The run's name.
        run: String,
        /// The number of rows.
        rows: u64,
    },
    /// An interrupted process left requests with an unknown outcome.
    DoubtFromBefore {
        /// The number of requests.
        requests: usize,
    },
    /// Rows in doubt are reconciled.
    AskingAboutDoubt {
        /// The number of rows.
        rows: u64,
    },
    /// The result of reconciling rows in doubt.
    Reconciliation(Reconciliation),
    /// The results of a run whose rows in doubt were only reconciled or decided were not updated.
    ResultsUnwritten(StaleResults),
    /// Sending begins. [`Self::SendingEnded`] follows even if it fails.
    SendingBegins {
        /// The run's name.
        run: String,
        /// The number of recipients.
        recipients: u64,
        /// Planned rows that this invocation does not send.
        later: u64,
        /// The run's rows by state.
        counts: StateCounts,
    },
    /// An event of the delivery.
    Sending(delivery::DeliveryEvent),
    /// This invocation sends nothing more.
    SendingEnded,
}

/// The observer of events.
pub type RunObserver = Arc<dyn Fn(RunEvent) + Send + Sync>;

/// A proposal that needs confirmation.
pub enum Proposal<'q> {
    /// A new run.
    Begin {
        /// The campaign.
        inputs: &'q Inputs,
        /// The profile through which the run sends.
        profile: &'q Profile,
        /// The survey of the list.
        survey: &'q ListSurvey,
        /// The rows that get a message.
        rows: &'q RoaringBitmap,
        /// Sample messages, if a person sees the proposal.
        samples: &'q [Sample],
        /// The balance of the account, if it is known.
        balance: Option<&'q Balance>,
        /// Whether the run begins a new round, in which all recipients get the message again.
        again: bool,
    },
    /// The activation of a schedule.
    ActivateSchedule {
        /// The schedule.
        activation: &'q ScheduleActivation,
        /// The profile through which the runs of the schedule send.
        profile: &'q Profile,
        /// Sample messages, if a person sees the proposal.
        samples: &'q [Sample],
    },
    /// The approval of a plan.
    Approve {
        /// The plan under review.
        approving: &'q PlanReview,
        /// The profile through which the planned run sends.
        profile: &'q Profile,
        /// The standing approval for all occurrences of its schedule, if requested.
        standing: Option<StandingApproval>,
        /// Sample messages, if a person sees the proposal.
        samples: &'q [Sample],
    },
    /// Resuming a run, or retrying rows of it.
    Resume {
        /// The run to resume, or whose rows are retried.
        run: &'q Run,
        /// The state of the run.
        snapshot: &'q Snapshot,
        /// The profile through which the run sends.
        profile: &'q Profile,
        /// The number of messages.
        number: u64,
        /// The cost, if the profile has prices.
        cost: Option<Cost>,
        /// The balance of the account, if it is known.
        balance: Option<&'q Balance>,
        /// The messages of this invocation, if a person sees the proposal.
        rest: Option<&'q RestOfRun>,
        /// Whether the messages are sent again.
        is_retry: bool,
    },
    /// A paid lookup, verification call or test message.
    Single {
        /// The kind of operation.
        operation: SingleKind,
        /// The numbers.
        phones: &'q [Phone],
        /// The profile whose gateway executes the operation.
        profile: &'q Profile,
    },
    /// Test messages outside of the sending window.
    OutsideWindow {
        /// The time at which the window opens. `None` if it stays closed for a year.
        opens: Option<&'q Zoned>,
    },
    /// A single operation that an assistant requests.
    Pending {
        /// The gateway's profile.
        gateway: &'q str,
        /// The text for a person.
        shown: &'q str,
    },
    /// A change of the templates of an account.
    Template {
        /// The profile of the account that has the templates.
        profile: &'q Profile,
        /// The template to create or delete.
        change: TemplateChange<'q>,
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

/// The facts about a proposal that an error names if it is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalKind {
    /// A run to this number of recipients.
    Run(u64),
    /// The activation of a schedule.
    ActivateSchedule,
    /// The approval of a plan.
    Approve,
    /// A paid lookup, verification call or test message.
    Single,
    /// Test messages outside of the sending window, with the time at which it opens.
    OutsideWindow(Option<Zoned>),
    /// A change of templates.
    Template {
        /// The profile.
        gateway: String,
        /// The verb: `create` or `delete`.
        verb: &'static str,
    },
}

/// The reason for a missing confirmation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConsentRefusal {
    /// The process has no terminal for a prompt.
    NoTerminal,
    /// The person did not confirm.
    Declined,
}

/// The source of confirmations: a person at a terminal, or consent that was given in advance.
pub trait Consent: Send + Sync {
    /// Whether a confirmation is possible. If not, the gateway is not queried either.
    fn can_confirm(&self) -> bool;

    /// Whether a person sees each proposal, with its warnings.
    fn shows_proposals(&self) -> bool {
        false
    }

    /// Asks for confirmation of a proposal.
    fn ask<'a>(&'a self, proposal: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>>;
}

/// The consent of a person who activated a schedule or approved a plan. This consent covers the runs of that schedule
/// or plan, and nothing else.
pub(crate) struct ConsentInAdvance;

impl Consent for ConsentInAdvance {
    fn can_confirm(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, proposal: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        let is_covered = matches!(proposal, Proposal::Begin { .. } | Proposal::Resume { .. });
        Box::pin(async move { if is_covered { Ok(()) } else { Err(ConsentRefusal::NoTerminal) } })
    }
}

/// Describes why a proposal was not confirmed.
pub(super) fn describe_refusal(proposal: &ProposalKind, refusal: ConsentRefusal) -> String {
    let needs = match (proposal, refusal) {
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
            return "the approver must confirm the approval at a terminal; nothing was approved".to_owned();
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

/// Asks for confirmation of a proposal, and converts a refusal into an error.
pub(super) async fn confirm(consent: &dyn Consent, proposal: Proposal<'_>) -> Result<(), Error> {
    let kind = proposal.kind();
    consent.ask(proposal).await.map_err(|refusal| Error::NotConfirmed { proposal: kind, refusal })
}

/// Runs blocking work, such as reading files, on a blocking thread.
///
/// # Errors
/// If the work panicked, which is a bug.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(format!("a task ended early: {error}")))
}
