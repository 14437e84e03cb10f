//! A lookup, a code call, a message of an assistant or a test message: one paid operation that somebody waits for.
//!
//! It is a row of a run that such operations through a profile share: the ledger knows of it before it is sent, and it is
//! never repeated by itself.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use secrecy::SecretString;
use tokio::sync::watch;

use super::consent::confirm;
use super::plan::check_profile;
use super::policy::{
    PolicyRefusal, assistant_caps, assistant_hours, build_hours, refuse_closed_window, refuse_opted_out,
    refuse_suppressed_by_files, test_hours,
};
use super::restore::refuse_backup;
use super::test_message::test_edition;
use super::{
    Adapters, Connection, Consent, Error, Inputs, Proposal, RunEvent, TestMessage, load_hook, read_destination_key,
};
use crate::delivery::{
    Interrupt, SendContext, SendingHours, SendingPasses, SendingRules, SingleConditions, SingleEnding, SingleKind,
    Stop, send_single,
};
use crate::domain::{
    Endpoint, FrequencyCap, MessageContent, MessageId, Operation, OperationOutcome, Phone, Purpose, Row,
};
use crate::gateway::EncodedOperation;
use crate::ledger::{
    BlockRequest, Bounds, DrawOutcome, Lease, RowState, Run, RunActivity, SharedRun, StopKind, SuppressionPolicy,
};
use crate::manifest::Destination;

/// How long the answer to a question is waited for.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a gateway may take to take a message.
pub const INTAKE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a gateway that cannot be reached is tried while somebody waits.
const UNREACHABLE_LIMIT: Duration = Duration::from_secs(5);

/// An operation that somebody wants.
#[derive(Clone)]
pub struct SingleOperation {
    operation: SingleKind,
    endpoint: Endpoint,
    purpose: Purpose,
    /// The campaign that a test is of, with its edition.
    of: Option<String>,
    content: MessageContent<Cow<'static, str>>,
    phone: Phone,
    wanted: BlockRequest,
    destination: Destination,
    key: SecretString,
    /// When it may leave; nothing where it may at any time.
    hours: Option<SendingRules>,
    /// How often its number may be written to.
    caps: Vec<FrequencyCap>,
}

/// A message to one number.
#[derive(Clone, Debug)]
pub struct SingleMessage {
    /// What it says.
    pub content: MessageContent<Cow<'static, str>>,
    /// Whom it is for.
    pub phone: Phone,
    /// Our identifier of it, where whoever sends it has one.
    pub id: Option<MessageId>,
}

/// An operation that somebody agreed to.
pub struct ConfirmedSingle {
    single: SingleOperation,
    adapters: Adapters,
}

/// What came of an operation.
#[derive(Debug)]
pub struct EndedSingle {
    /// The run that it is in.
    pub run: Run,
    /// Its row there.
    pub row: Row,
    /// Our identifier.
    pub id: MessageId,
    /// Its state.
    pub state: RowState,
    /// Why it was skipped: [`OPTED_OUT`](crate::ledger::OPTED_OUT) or [`CAPPED`](crate::ledger::CAPPED).
    pub skipped: Option<&'static str>,
    /// What the gateway said; nothing if it was left before that.
    pub outcome: Option<OperationOutcome>,
    /// Why it was not sent, or was left.
    pub stop: Option<Stop>,
}

impl SingleOperation {
    /// An operation about a number. Nobody is asked yet.
    ///
    /// # Errors
    /// When there is no key.
    pub fn with_profile_key(operation: SingleKind, phone: Phone, destination: Destination) -> Result<Self, Error> {
        let key = read_destination_key(&destination)?;
        Ok(Self::from_key(key, operation, phone, destination))
    }

    /// The same for somebody who brings the key.
    #[must_use]
    pub fn from_key(key: SecretString, operation: SingleKind, phone: Phone, destination: Destination) -> Self {
        let (content, wanted) = (operation.content(), BlockRequest::for_message(None, None));
        let (endpoint, purpose) = (operation.endpoint(), operation.purpose());
        // Whatever asks for a message of an assistant, the profile's policy holds for it.
        let (hours, caps) = match operation {
            SingleKind::Message => (assistant_hours(&destination), assistant_caps(&destination)),
            SingleKind::Lookup | SingleKind::CodeCall | SingleKind::Test => (None, Vec::new()),
        };
        Self { operation, endpoint, purpose, of: None, content, phone, wanted, destination, key, hours, caps }
    }

    /// A message of an assistant for somebody who brings the key; so many go through the profile within an hour at most. The
    /// profile's policy holds for it.
    #[must_use]
    pub fn for_message(key: SecretString, message: SingleMessage, destination: Destination, per_hour: u32) -> Self {
        let SingleMessage { content, phone, id } = message;
        let wanted = BlockRequest::for_message(id, Some(per_hour));
        Self { content, wanted, ..Self::from_key(key, SingleKind::Message, phone, destination) }
    }

    /// A lookup of an assistant for somebody who brings the key; so many lookups go through the profile within an hour at most.
    #[must_use]
    pub fn for_lookup(key: SecretString, phone: Phone, destination: Destination, per_hour: u32) -> Self {
        let wanted = BlockRequest::for_message(None, Some(per_hour));
        Self { wanted, ..Self::from_key(key, SingleKind::Lookup, phone, destination) }
    }

    /// A campaign's message to somebody who wants to see it: it goes where the campaign's messages go and heeds the same
    /// opt-outs and hours, and counts as none of them. Nobody is asked yet.
    ///
    /// # Errors
    /// When there is no key.
    pub(super) fn for_test(message: &TestMessage, phone: Phone, inputs: &Inputs) -> Result<Self, Error> {
        let (brief, content) = (&inputs.campaign.brief, message.content.clone());
        let test = Self::with_profile_key(SingleKind::Test, phone, inputs.destination.clone())?;
        let (of, hours) = (Some(test_edition(brief, &message.edition)), test_hours(inputs));
        Ok(Self { content, endpoint: brief.endpoint, purpose: brief.purpose, of, hours, ..test })
    }

    /// The same at any time of the day, because somebody agreed to that.
    pub(super) fn at_any_time(self) -> Self {
        Self { hours: None, ..self }
    }

    /// Before which moment it has to leave that may leave now.
    ///
    /// # Errors
    /// When its window is closed, or its recipient is in a file of the profile under `suppress`.
    pub async fn check_policy(&self, adapters: &Adapters) -> Result<Option<Timestamp>, Error> {
        let (now, hours) = ((adapters.clock)(), self.build_hours(adapters));
        let until = hours.map(|hours| refuse_closed_window(&hours, self.phone, now)).transpose()?.flatten();
        if let (SingleKind::Message, Some(profile)) = (self.operation, self.destination.profile()) {
            refuse_suppressed_by_files(profile, self.phone).await?;
        }
        Ok(until)
    }

    /// Everything that refuses a message of an assistant now: the profile, its policy, the identifier, the hour's limit.
    /// Nothing is used up. Sending checks all of it again.
    pub async fn list_refusals(&self, adapters: &Adapters) -> Vec<Error> {
        let ledger = adapters.ledger.as_ref();
        let mut refusals: Vec<Error> = self.refuse_backup(adapters).await.err().into_iter().collect();
        if let Some(hours) = self.build_hours(adapters) {
            let closed = refuse_closed_window(&hours, self.phone, (adapters.clock)());
            refusals.extend(closed.err().map(Error::from));
        }
        if let Some(profile) = self.destination.profile() {
            refusals.extend(check_profile(adapters, profile).await.err());
            let held = match refuse_suppressed_by_files(profile, self.phone).await {
                Ok(()) => refuse_opted_out(ledger, self.shared_run(adapters), self.phone).await,
                refused => refused,
            };
            refusals.extend(held.err());
        }
        match ledger.is_number_capped(self.phone, &self.caps, self.destination.is_loopback()).await {
            Ok(false) => {}
            Ok(true) => refusals.push(PolicyRefusal::Capped.into()),
            Err(error) => refusals.push(error.into()),
        }
        match ledger.list_draw_refusals(&self.shared_run(adapters), self.wanted).await {
            Ok(refused) => refusals.extend(refused.into_iter().map(Error::from)),
            Err(error) => refusals.push(error.into()),
        }
        refusals
    }

    fn build_hours(&self, adapters: &Adapters) -> Option<Arc<SendingHours>> {
        self.hours.clone().map(|keeping| build_hours(keeping, adapters.clock))
    }

    /// What somebody agreed to who may: the operator that lets it be asked for.
    ///
    /// # Errors
    /// When the host of the gateway changed.
    pub async fn confirm_by_order(self, adapters: Adapters) -> Result<ConfirmedSingle, Error> {
        self.refuse_backup(&adapters).await?;
        if let Some(profile) = self.destination.profile() {
            check_profile(&adapters, profile).await?;
        }
        Ok(ConfirmedSingle { single: self, adapters })
    }

    /// Asks for a yes, without which no gateway but one on this machine is asked.
    ///
    /// # Errors
    /// When there is none, or the host of the gateway changed.
    pub async fn confirm(self, adapters: Adapters, consent: &dyn Consent) -> Result<ConfirmedSingle, Error> {
        self.confirm_for(&[self.phone], &adapters, consent).await?;
        Ok(ConfirmedSingle { single: self, adapters })
    }

    /// Asks for one yes to the same for several numbers.
    ///
    /// # Errors
    /// When there is none, or the host of the gateway changed.
    pub async fn confirm_each(
        singles: Vec<Self>,
        adapters: Adapters,
        consent: &dyn Consent,
    ) -> Result<Vec<ConfirmedSingle>, Error> {
        let phones: Vec<Phone> = singles.iter().map(|single| single.phone).collect();
        if let Some(first) = singles.first() {
            first.confirm_for(&phones, &adapters, consent).await?;
        }
        Ok(singles.into_iter().map(|single| ConfirmedSingle { single, adapters: adapters.clone() }).collect())
    }

    async fn confirm_for(&self, phones: &[Phone], adapters: &Adapters, consent: &dyn Consent) -> Result<(), Error> {
        self.refuse_backup(adapters).await?;
        if let Some(profile) = self.destination.profile() {
            check_profile(adapters, profile).await?;
        }
        if let Some(profile) = self.destination.remote_profile() {
            confirm(consent, Proposal::Single { operation: self.operation, phones, profile }).await?;
        }
        Ok(())
    }

    async fn refuse_backup(&self, adapters: &Adapters) -> Result<(), Error> {
        match self.destination.is_live() {
            true => refuse_backup(adapters.ledger.as_ref()).await,
            false => Ok(()),
        }
    }
}

impl ConfirmedSingle {
    /// Sends it, and waits for what comes of it.
    ///
    /// # Errors
    /// When the ledger cannot be written before anything is begun.
    pub async fn send(self, interrupt: watch::Receiver<Interrupt>) -> Result<EndedSingle, Error> {
        // Somebody may have thought about it for long.
        let leave_by = self.single.check_policy(&self.adapters).await?;
        let (shared, hours) = (self.single.shared_run(&self.adapters), self.single.build_hours(&self.adapters));
        let SingleOperation { operation, content, phone, wanted, destination, key, caps, .. } = self.single;
        let hook = match (operation, destination.profile()) {
            (SingleKind::Message | SingleKind::Test, Some(profile)) => load_hook(profile)?,
            _ => None,
        };
        // Kept until the end: it is what tells others that somebody is at it.
        let block = match self.adapters.ledger.draw_block(&shared, wanted).await? {
            DrawOutcome::Block(block) => block,
            DrawOutcome::Refused(refusal) => return Err(refusal.into()),
        };
        let (run, row) = (block.run.clone(), block.lease.rows.first);
        let id = run.message_id(row, None).ok_or_else(|| Error::Internal("the row has no identifier".to_owned()))?;
        let timeout = if operation == SingleKind::Message { INTAKE_TIMEOUT } else { ANSWER_TIMEOUT };
        let connection = Connection::open(&destination, key, Arc::default(), None).await?;
        let gateway = connection.create_client(self.adapters.connect, run.endpoint, timeout)?;
        let encoded = EncodedOperation::encode(row, &Operation { id, phone, content });
        let encoded = match hook {
            Some(hook) => encoded.with_hook(&hook.message_url(&run.name(), id)),
            None => encoded,
        };
        let (ledger, observer) = (Arc::clone(&self.adapters.ledger), Arc::clone(&self.adapters.observer));
        let observer = Arc::new(move |event| observer(RunEvent::Sending(event)));
        let passes = hours.as_ref().map(|hours| Arc::new(SendingPasses::for_one_message(Arc::clone(hours))));
        let edges = SendContext { ledger, gateway, observer, interrupt, passes };
        let lease = block.lease;
        let conditions = build_conditions(&run, (lease, caps), timeout, &destination);
        let SingleEnding { outcome, stopped: stop, skipped } =
            send_single(conditions, edges, encoded.with_leave_before(leave_by)).await;
        tracing::info!(run = run.name(), row = row.get(), "asked");
        if stop.as_ref().is_some_and(|stop| stop.kind == StopKind::KeyRefused) {
            // The row stays, but whoever brings a key that is not accepted uses up nobody's hour.
            self.adapters.ledger.uncount_block(lease).await?;
        }
        if let Some(sandbox) = connection.into_sandbox() {
            sandbox.stop().await;
        }
        // Whatever came of it, nothing goes on with it: whoever wants it again asks again.
        let state = if skipped.is_some() {
            RowState::Skipped
        } else {
            RunActivity::Finished.single_attempt_state(outcome.as_ref())
        };
        if let Some(hours) = hours.filter(|_| stop.as_ref().is_some_and(|stop| stop.kind == StopKind::Window)) {
            // It closed while the message waited for the account's pace.
            let closes = leave_by.unwrap_or_else(self.adapters.clock);
            refuse_closed_window(&hours, phone, closes.max((self.adapters.clock)()))?;
        }
        Ok(EndedSingle { run, row, id, state, skipped, outcome, stop })
    }
}

impl SingleOperation {
    /// The run that takes such operations through the profile: of messages those of a day, of tests those of a campaign, of
    /// lookups and code calls those of a month.
    fn shared_run(&self, adapters: &Adapters) -> SharedRun {
        let Self { operation, endpoint, purpose, of, destination, .. } = self;
        let today = || (adapters.clock)().to_zoned(TimeZone::system()).date();
        SharedRun {
            campaign: operation.campaign_name().to_owned(),
            edition: match operation {
                SingleKind::Message => today().to_string(),
                SingleKind::Test => of.clone().unwrap_or_default(),
                // By the month, so that what is long over can be purged.
                _ => today().strftime("%Y-%m").to_string(),
            },
            gateway: destination.gateway_name().to_owned(),
            account: destination.account_name().to_owned(),
            endpoint: *endpoint,
            kind: operation.kind(),
            live: destination.is_live(),
            suppression: match (*operation, *purpose) {
                (SingleKind::Lookup | SingleKind::CodeCall, _) => {
                    SuppressionPolicy { loopback: destination.is_loopback(), ..SuppressionPolicy::NONE }
                }
                // The version of no list: each message is held against the list as it is then.
                (_, purpose) => SuppressionPolicy { purpose, loopback: destination.is_loopback(), version: 0 },
            },
        }
    }
}

fn build_conditions(
    run: &Run,
    (lease, caps): (Lease, Vec<FrequencyCap>),
    timeout: Duration,
    destination: &Destination,
) -> SingleConditions {
    let account = run.allowance(destination.account_rate().per_second());
    let bounds = (!caps.is_empty()).then(|| Arc::new(Bounds { caps, ..Bounds::default() }));
    SingleConditions { lease, endpoint: run.endpoint, account, bounds, timeout, patience: UNREACHABLE_LIMIT }
}
