//! Why something was not done. Surfaces find the words.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;

use super::{
    AccountView, BackupRefusal, PlanRefusal, PolicyRefusal, ProposalKind, Refusal, RetryLeftOut, ScheduleRefusal,
    WeakerRule,
};
use crate::delivery::SingleKind;
use crate::domain::Row;
use crate::finding::Finding;
use crate::gateway::{InquiryFailure, JsonApiError};
use crate::ledger::{DrawRefusal, LedgerError, State};
use crate::report::{LossSign, ResultsError};

/// Why something was not done. A text is what a layer below said.
#[derive(Debug)]
pub enum Error {
    /// The inputs are wrong.
    Findings(Vec<Finding>),
    /// A campaign is to go through a gateway that has no profile.
    UnknownGateway {
        /// The gateway.
        name: String,
        /// The campaign's file.
        file: PathBuf,
        /// What is wrong.
        findings: Vec<Finding>,
    },
    /// The gateway refused the key; the findings tell it, with what else is wrong.
    KeyRefused(Vec<Finding>),
    /// An input cannot be read or used.
    Input(String),
    /// No client of the gateway can be made.
    Client(JsonApiError),
    /// The account gave no good answer.
    Unanswered {
        /// The profile.
        gateway: String,
        /// Where it has its key from.
        key: String,
        /// Why, and whether it is proven that nothing was done.
        failure: InquiryFailure,
    },
    /// An order was given, and nobody knows whether it was done.
    OrderUnclear {
        /// The profile.
        gateway: String,
        /// Why that is not known.
        failure: InquiryFailure,
        /// Where it can be seen.
        view: AccountView,
    },
    /// A deletion deleted nothing.
    NothingDeleted {
        /// The gateway's identifier of the template.
        id: u64,
    },
    /// The account has no such Viber template.
    NoSuchTemplate {
        /// The profile.
        gateway: String,
        /// The gateway's identifier of the template.
        id: u64,
    },
    /// The gateway does not tell the text of a template, which its deletion takes.
    TemplateTextUnknown {
        /// The gateway's identifier of the template.
        id: u64,
    },
    /// The identifier that somebody brought for a message belongs to another one.
    IdTaken,
    /// As many messages as are allowed within an hour were sent.
    TooManyThisHour {
        /// When the next may be sent.
        next: Timestamp,
    },
    /// The questions that may be asked beside messages are used up.
    TooManyQuestions {
        /// How long another one would wait.
        wait: Duration,
    },
    /// The built-in sandbox has no account that could be asked.
    SandboxAccount,
    /// There is no profile.
    NoGateway,
    /// There are several profiles, and none was named.
    SeveralGateways(Vec<String>),
    /// There is no run of that name.
    NoSuchRun {
        /// The name.
        name: String,
        /// A run with nearly that name.
        near: Option<String>,
    },
    /// Another process sends the campaign.
    Busy {
        /// The campaign.
        campaign: String,
        /// The gateway.
        gateway: String,
        /// Since when, as far as that is known.
        since: Option<Timestamp>,
    },
    /// Another process sends the campaign, so nothing of its run can be asked or decided about.
    BusyRun {
        /// The campaign.
        campaign: String,
        /// The gateway.
        gateway: String,
        /// Since when, as far as that is known.
        since: Option<Timestamp>,
    },
    /// Another process has the campaign and does not send this run: what it is going to do cannot be stopped by this run's name.
    NothingToStopYet {
        /// The run.
        run: String,
        /// The campaign.
        campaign: String,
    },
    /// Another process took the run meanwhile.
    Taken {
        /// The run.
        run: String,
    },
    /// A run is unfinished, so everybody cannot be sent to once more.
    RoundUnfinished {
        /// The run.
        run: String,
    },
    /// A run is unfinished, so rejected rows of another cannot be sent again.
    RetryUnfinished {
        /// The run that is unfinished.
        run: String,
        /// The campaign file.
        file: PathBuf,
        /// The gateway.
        gateway: String,
    },
    /// Nothing of this run goes on, because a newer one took its place.
    Replaced {
        /// The run.
        run: String,
    },
    /// Nothing of this run goes on, because it was stopped for good.
    Cancelled {
        /// The run.
        run: String,
        /// The campaign file, if the ledger has it.
        file: Option<PathBuf>,
        /// The gateway.
        gateway: String,
    },
    /// A lookup or a code call is never repeated.
    SingleRun {
        /// The run.
        run: String,
    },
    /// Lookups and code calls are on their way, and each is stopped by whoever waits for it.
    SinglesOnTheirWay {
        /// The run that they are in.
        run: String,
    },
    /// The name of a lookup or a code call was given for a campaign.
    NoCampaign(SingleKind),
    /// A campaign of the same name was sent from another file.
    OtherFile {
        /// The campaign.
        campaign: String,
        /// Its last run from there.
        run: String,
        /// When that began.
        began_at: Timestamp,
        /// The other file.
        there: PathBuf,
    },
    /// The runs of a campaign began from another file than the one that was named.
    RunsElsewhere {
        /// The campaign.
        campaign: String,
        /// Its last run.
        run: String,
        /// The other file.
        there: PathBuf,
    },
    /// Whoever has a message of an edition would get nothing of what the campaign says now.
    TextChanged {
        /// The last run of the edition.
        run: String,
        /// When it began.
        began_at: Timestamp,
        /// How many people have a message.
        people: u64,
    },
    /// A yes was given beforehand, and no gateway was named.
    NoGatewayNamed,
    /// A run cannot go on, because what it was begun with changed.
    InputsChanged {
        /// The run.
        run: String,
        /// What changed, in words.
        changes: Vec<String>,
        /// Whether the run's own copies are damaged.
        damaged: bool,
        /// Of which edition it is, where that is not the one of now.
        earlier_edition: Option<EarlierEdition>,
    },
    /// Rejected rows cannot be sent again, because what their run was begun with changed.
    RetryChanged {
        /// The run.
        run: String,
        /// What changed, in words.
        changes: Vec<String>,
    },
    /// There is no yes.
    NotConfirmed {
        /// What to.
        what: ProposalKind,
        /// Why not.
        refusal: Refusal,
    },
    /// Everybody would be another number than was said.
    OtherNumber {
        /// The number that was said.
        said: u64,
        /// The number of recipients.
        number: u64,
    },
    /// More recipients than the profile allows.
    TooManyRecipients {
        /// The number of recipients.
        number: u64,
        /// How many are allowed.
        limit: u64,
    },
    /// There is no such row.
    NoSuchRow {
        /// The row.
        row: Row,
        /// The row of the last recipient.
        last: Row,
    },
    /// No rejected row can be sent again.
    NothingToRetry {
        /// The run.
        run: String,
        /// Rows whose message failed, which was not asked for.
        failed: u64,
        /// The words that the errors were to have.
        error: Option<String>,
        /// Rows that are not sent again, by their reason.
        left_out: RetryLeftOut,
    },
    /// The gateway did not confirm that messages failed, so they are not sent again.
    RetryUnconfirmed {
        /// The run.
        run: String,
        /// Their number.
        rows: u64,
        /// The number of duplicates that somebody accepted.
        said: Option<u64>,
    },
    /// A row cannot become what was decided.
    Undecidable {
        /// The row.
        row: Row,
        /// Its state.
        state: State,
    },
    /// A row that was named waits for no decision.
    NotInDoubt {
        /// The row.
        row: Row,
        /// Its state.
        state: State,
    },
    /// No row of a run waits for a decision.
    NothingToDecide {
        /// The run.
        run: String,
    },
    /// People may get a message twice by a decision, and not so many were said to be right.
    DuplicatesNotAccepted {
        /// About how many rows it is.
        rows: u64,
        /// How many were said.
        said: Option<u64>,
    },
    /// Nothing of a run is sent any more, because a newer one took its place.
    ReplacedForGood,
    /// A file with identifiers cannot be read.
    IdsUnreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        finding: Box<Finding>,
    },
    /// A file has no columns that name messages.
    NoIds {
        /// The file.
        path: PathBuf,
        /// The run whose identifiers were meant.
        run: String,
    },
    /// A spreadsheet shortened the numbers in a file, so that nothing in a line names a message any more.
    Shortened {
        /// The file.
        path: PathBuf,
        /// The row in the file.
        row: Row,
        /// What stands there.
        cell: String,
        /// The run.
        run: String,
    },
    /// What a file names is no message of the run.
    ForeignId {
        /// The file.
        path: PathBuf,
        /// The row in the file.
        row: Row,
        /// What stands there, as it reads before "of" and the run.
        named: String,
        /// The run.
        run: String,
    },
    /// A run was a rehearsal, of which nobody knows anything any more.
    RehearsalForgotten {
        /// The run.
        run: String,
    },
    /// A run has come to its end, so that nothing of it can be stopped.
    NothingToCancel {
        /// The run.
        run: String,
    },
    /// A profile's host is not the one that it had at its first use.
    HostChanged {
        /// The profile.
        gateway: String,
        /// The host that it had.
        known: String,
        /// The host that it has now.
        now: String,
    },
    /// A profile's `approval` became weaker than the ledger keeps of its account.
    WeakerApproval(Box<WeakerRule>),
    /// A run went through loopback and its profile is now at a live host, or the other way round.
    OtherReach {
        /// The run.
        run: String,
        /// The profile.
        gateway: String,
        /// Whether the run went through loopback.
        loopback: bool,
    },
    /// The ledger is a backup, or was put back from one.
    Backup(BackupRefusal),
    /// Messages went out that the ledger does not know of.
    LedgerLost {
        /// Where the ledger is, or would be.
        ledger: String,
        /// How that is known.
        signs: Vec<LossSign>,
    },
    /// The ledger failed.
    Ledger(LedgerError),
    /// The results cannot be written or read.
    Results(ResultsError),
    /// Results cannot take this place.
    ResultsPlace(String),
    /// Something in the state folder cannot be read or written.
    Storage(String),
    /// A signal of this number came.
    Interrupted {
        /// Its number.
        signal: u8,
        /// What it interrupted.
        phase: RunPhase,
    },
    /// A policy of the profile or of the campaign holds a single message back.
    Policy(PolicyRefusal),
    /// It is not sent, or not approved, for what was planned.
    Plan(PlanRefusal),
    /// Nothing was done about a schedule.
    Schedule(ScheduleRefusal),
    /// A bug.
    Internal(String),
}

/// The edition of an unfinished run, where the campaign has another one by now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierEdition {
    /// That of the run; empty where it has none.
    pub unfinished: String,
    /// That of now; empty where there is none.
    pub now: String,
    /// Whether a run that takes its place by a start with changed inputs is of the earlier one still.
    pub is_kept: bool,
}

/// What an interrupt came into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// Nothing was sent yet.
    Preparing,
    /// So many messages were on their way, and are in doubt from now on.
    Sending(u64),
    /// Everything was sent that was going to be.
    Ending,
}

impl From<DrawRefusal> for Error {
    fn from(refusal: DrawRefusal) -> Self {
        match refusal {
            DrawRefusal::IdTaken => Error::IdTaken,
            DrawRefusal::TooMany(next) => Error::TooManyThisHour { next },
        }
    }
}

impl From<LedgerError> for Error {
    fn from(error: LedgerError) -> Self {
        Error::Ledger(error)
    }
}

impl From<ResultsError> for Error {
    fn from(error: ResultsError) -> Self {
        Error::Results(error)
    }
}
