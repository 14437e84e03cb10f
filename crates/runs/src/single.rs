//! Single operations that a person or assistant waits for: lookups, verification calls, assistant messages and test
//! messages.
//!
//! Single operations through the same profile are rows of a shared run. An operation is in the ledger before it is
//! sent, and is never repeated automatically.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use secrecy::SecretString;
use tokio::sync::watch;

use super::ledger_health::refuse_backup;
use super::plan::check_profile;
use super::policy::{
    PolicyRefusal, assistant_caps, assistant_hours, build_hours, refuse_closed_window, refuse_opted_out,
    refuse_other_countries, refuse_suppressed_by_files, test_hours,
};
use super::ports::confirm;
use super::recipient_consent::refuse_message_without_consent;
use super::send::opt_out_rules;
use super::test_messages::test_edition;
use super::{
    Adapters, Connection, Consent, Error, Inputs, Proposal, RunEvent, TestMessage, load_hook, read_destination_key,
};
use campaign_core::domain::{
    CountrySet, Endpoint, FrequencyCap, MessageContent, MessageId, Operation, OperationOutcome, Phone, Purpose, Row,
};
use campaign_engine::delivery::{
    Interrupt, SendContext, SendOptions, SendingHours, SendingPasses, SendingRules, SingleEnding, SingleKind, Stop,
    send_single,
};
use campaign_gateway::EncodedOperation;
use campaign_ledger::{
    BlockRequest, Bounds, DrawOutcome, Lease, RowState, RowUpdate, Run, RunActivity, SharedRun, StopKind,
    SuppressionPolicy, is_number_capped,
};
use campaign_manifest::{CampaignBrief, Destination};

/// The time limit for the gateway's answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The time in which a gateway must accept a message.
pub const INTAKE_TIMEOUT: Duration = Duration::from_secs(15);
/// The time for which an unreachable gateway is retried while a person waits.
const UNREACHABLE_LIMIT: Duration = Duration::from_secs(5);

/// A single operation that was requested.
#[derive(Clone)]
pub struct SingleOperation {
    operation: SingleKind,
    endpoint: Endpoint,
    purpose: Purpose,
    /// Whether the message must arrive, so that opt-outs do not apply.
    mandatory: bool,
    /// The campaign of a test, with its edition.
    tested: Option<String>,
    content: MessageContent<Cow<'static, str>>,
    phone: Phone,
    block_request: BlockRequest,
    destination: Destination,
    key: SecretString,
    /// The sending hours. `None` if they are unlimited.
    hours: Option<SendingRules>,
    /// The frequency caps that apply to the phone number.
    caps: Vec<FrequencyCap>,
    /// The countries that the operation may reach. `None` for all.
    countries: Option<CountrySet>,
}

/// A message to one number.
#[derive(Clone, Debug)]
pub struct SingleMessage {
    /// The content, which is sent as it is.
    pub content: MessageContent<Cow<'static, str>>,
    /// The recipient.
    pub phone: Phone,
    /// The message identifier, if the caller has already assigned one.
    pub id: Option<MessageId>,
}

/// A confirmed operation, whose policy is checked again when it is sent.
pub struct ConfirmedOperation {
    operation: SingleOperation,
    adapters: Adapters,
}

/// The result of an operation.
#[derive(Debug)]
pub struct EndedOperation {
    /// The run of the operation.
    pub run: Run,
    /// The row of the operation in the run.
    pub row: Row,
    /// Our identifier.
    pub id: MessageId,
    /// The state of the row.
    pub state: RowState,
    /// The reason the row was skipped: [`OPTED_OUT`](campaign_ledger::OPTED_OUT) or
    /// [`CAPPED`](campaign_ledger::CAPPED).
    pub skipped: Option<&'static str>,
    /// The gateway's answer, if there is one.
    pub outcome: Option<OperationOutcome>,
    /// The reason the message was not sent, or was abandoned.
    pub stop: Option<Stop>,
}

impl SingleOperation {
    /// Creates an operation for a phone number, with the key of the profile. Confirmation is requested later.
    ///
    /// # Errors
    /// If the key is missing.
    pub fn with_profile_key(operation: SingleKind, phone: Phone, destination: Destination) -> Result<Self, Error> {
        let key = read_destination_key(&destination)?;
        Ok(Self::from_key(key, operation, phone, destination))
    }

    /// Creates an operation for a phone number, with a key from the caller.
    pub fn from_key(key: SecretString, operation: SingleKind, phone: Phone, destination: Destination) -> Self {
        let (content, block_request) = (operation.content(), BlockRequest::for_message(None, None));
        let (endpoint, purpose) = (operation.endpoint(), operation.purpose());
        // The profile's policy applies to every message of an assistant.
        let (hours, caps) = match operation {
            SingleKind::Message => (assistant_hours(&destination), assistant_caps(&destination)),
            SingleKind::Lookup | SingleKind::CodeCall | SingleKind::Test => (None, Vec::new()),
        };
        let mandatory = false;
        let countries = destination.profile().and_then(|profile| profile.countries.clone());
        Self {
            operation,
            endpoint,
            purpose,
            mandatory,
            tested: None,
            content,
            phone,
            block_request,
            destination,
            key,
            hours,
            caps,
            countries,
        }
    }

    /// Creates a message from an assistant, with a key from the caller and a limit per hour. The profile's policy
    /// applies.
    pub fn for_message(key: SecretString, message: SingleMessage, destination: Destination, per_hour: u32) -> Self {
        let SingleMessage { content, phone, id } = message;
        let block_request = BlockRequest::for_message(id, Some(per_hour));
        Self { content, block_request, ..Self::from_key(key, SingleKind::Message, phone, destination) }
    }

    /// Creates a lookup for an assistant, with a key from the caller and a limit per hour.
    pub fn for_lookup(key: SecretString, phone: Phone, destination: Destination, per_hour: u32) -> Self {
        let block_request = BlockRequest::for_message(None, Some(per_hour));
        Self { block_request, ..Self::from_key(key, SingleKind::Lookup, phone, destination) }
    }

    /// Creates a test message with the campaign's destination, opt-outs and sending hours. A test does not count as a
    /// message of the campaign. Confirmation is requested later.
    ///
    /// # Errors
    /// If the key is missing.
    pub(super) fn for_test(message: &TestMessage, phone: Phone, inputs: &Inputs) -> Result<Self, Error> {
        let (brief, content) = (&inputs.campaign.brief, message.content.clone());
        let test = Self::with_profile_key(SingleKind::Test, phone, inputs.destination.clone())?;
        let (tested, hours) = (Some(test_edition(brief, &message.edition)), test_hours(inputs));
        let CampaignBrief { endpoint, purpose, mandatory, .. } = *brief;
        let countries = brief.allowed_countries(inputs.destination.profile());
        Ok(Self { content, endpoint, purpose, mandatory, tested, hours, countries, ..test })
    }

    /// The operation without sending hours, because sending outside of the sending hours was confirmed.
    pub(super) fn without_hours(self) -> Self {
        Self { hours: None, ..self }
    }

    /// Checks the policy and returns the time before which the message must be sent.
    ///
    /// # Errors
    /// If the window is closed, or the recipient is outside the allowed countries, lacks consent or is in a suppression
    /// file.
    pub async fn check_policy(&self, adapters: &Adapters) -> Result<Option<Timestamp>, Error> {
        refuse_other_countries(self.countries.as_ref(), &[self.phone])?;
        let (now, hours) = ((adapters.clock)(), self.build_hours(adapters));
        let until = hours.map(|hours| refuse_closed_window(&hours, self.phone, now)).transpose()?.flatten();
        if let (SingleKind::Message, Some(profile)) = (self.operation, self.destination.profile()) {
            refuse_message_without_consent(profile, self.phone)?;
            refuse_suppressed_by_files(profile, self.phone).await?;
        }
        Ok(until)
    }

    /// Lists every reason to refuse an assistant's message now: profile, policy, identifier and hourly limit. The
    /// check does not count towards any limit. Sending repeats all of these checks.
    pub async fn list_refusals(&self, adapters: &Adapters) -> Vec<Error> {
        let ledger = adapters.ledger.as_ref();
        let mut refusals: Vec<Error> = self.refuse_backup(adapters).await.err().into_iter().collect();
        refusals.extend(refuse_other_countries(self.countries.as_ref(), &[self.phone]).err().map(Error::from));
        if let Some(hours) = self.build_hours(adapters) {
            let closed = refuse_closed_window(&hours, self.phone, (adapters.clock)());
            refusals.extend(closed.err().map(Error::from));
        }
        if let Some(profile) = self.destination.profile() {
            refusals.extend(check_profile(adapters, profile).await.err());
            if self.operation == SingleKind::Message {
                refusals.extend(refuse_message_without_consent(profile, self.phone).err().map(Error::from));
            }
            let suppression_check = match refuse_suppressed_by_files(profile, self.phone).await {
                Ok(()) => refuse_opted_out(ledger, self.shared_run(adapters), self.phone).await,
                refused => refused,
            };
            refusals.extend(suppression_check.err());
        }
        match is_number_capped(ledger, self.phone, &self.caps, self.destination.is_loopback()).await {
            Ok(false) => {}
            Ok(true) => refusals.push(PolicyRefusal::Capped.into()),
            Err(error) => refusals.push(error.into()),
        }
        match ledger.list_draw_refusals(&self.shared_run(adapters), self.block_request).await {
            Ok(refused) => refusals.extend(refused.into_iter().map(Error::from)),
            Err(error) => refusals.push(error.into()),
        }
        refusals
    }

    fn build_hours(&self, adapters: &Adapters) -> Option<Arc<SendingHours>> {
        self.hours.clone().map(|rules| build_hours(rules, adapters.clock))
    }

    /// Confirms the operation without asking, because the operator authorized it in advance.
    ///
    /// # Errors
    /// If the ledger is a backup, the host of the gateway changed, or the approval rule became weaker.
    pub async fn confirm_in_advance(self, adapters: Adapters) -> Result<ConfirmedOperation, Error> {
        self.refuse_backup(&adapters).await?;
        if let Some(profile) = self.destination.profile() {
            check_profile(&adapters, profile).await?;
        }
        Ok(ConfirmedOperation { operation: self, adapters })
    }

    /// Asks for confirmation, except for a gateway on this machine.
    ///
    /// # Errors
    /// If the policy forbids the operation, the host of the gateway has changed, or the operation is not confirmed.
    pub async fn confirm(self, adapters: Adapters, consent: &dyn Consent) -> Result<ConfirmedOperation, Error> {
        self.confirm_for(&[self.phone], &adapters, consent).await?;
        Ok(ConfirmedOperation { operation: self, adapters })
    }

    /// Asks for one confirmation of the same operation for several phone numbers.
    ///
    /// # Errors
    /// If the policy forbids the operation, the host of the gateway has changed, or the operation is not confirmed.
    pub async fn confirm_all(
        operations: Vec<Self>,
        adapters: Adapters,
        consent: &dyn Consent,
    ) -> Result<Vec<ConfirmedOperation>, Error> {
        let phones: Vec<Phone> = operations.iter().map(|operation| operation.phone).collect();
        if let Some(first) = operations.first() {
            first.confirm_for(&phones, &adapters, consent).await?;
        }
        Ok(operations
            .into_iter()
            .map(|operation| ConfirmedOperation { operation, adapters: adapters.clone() })
            .collect())
    }

    /// Asks for one confirmation for all of these phone numbers, after the checks that need no confirmation.
    async fn confirm_for(&self, phones: &[Phone], adapters: &Adapters, consent: &dyn Consent) -> Result<(), Error> {
        self.refuse_backup(adapters).await?;
        refuse_other_countries(self.countries.as_ref(), phones)?;
        if let Some(profile) = self.destination.profile() {
            check_profile(adapters, profile).await?;
        }
        if let Some(profile) = self.destination.remote_profile() {
            confirm(consent, Proposal::Single { operation: self.operation, phones, profile }).await?;
        }
        Ok(())
    }

    /// Refuses a live operation if the ledger is a backup that has not been restored.
    async fn refuse_backup(&self, adapters: &Adapters) -> Result<(), Error> {
        match self.destination.is_live() {
            true => refuse_backup(adapters.ledger.as_ref()).await,
            false => Ok(()),
        }
    }
}

impl ConfirmedOperation {
    /// Sends the operation and waits for the result.
    ///
    /// # Errors
    /// If the operation is refused or the ledger cannot be written before sending begins.
    pub async fn send(self, interrupt: watch::Receiver<Interrupt>) -> Result<EndedOperation, Error> {
        // The policy is checked again, because the confirmation might have taken a long time.
        let leave_by = self.operation.check_policy(&self.adapters).await?;
        let (shared, hours) = (self.operation.shared_run(&self.adapters), self.operation.build_hours(&self.adapters));
        let SingleOperation { operation, content, phone, block_request, destination, key, caps, .. } = self.operation;
        let hook = match (operation, destination.profile()) {
            (SingleKind::Message | SingleKind::Test, Some(profile)) => load_hook(profile)?,
            _ => None,
        };
        // The block is held until the end, so that other processes know that the operation is in progress.
        let block = match self.adapters.ledger.draw_block(&shared, block_request).await? {
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
        let context = SendContext { ledger, gateway, observer, interrupt, passes, late_opt_outs: None };
        let lease = block.lease;
        let opt_outs = Arc::new(opt_out_rules(&run, &destination, self.adapters.clock));
        let options = SendOptions { opt_outs, ..build_options(&run, lease, caps, timeout, &destination) };
        let SingleEnding { outcome, stopped: stop, skipped } =
            send_single(options, context, encoded.with_leave_before(leave_by)).await;
        tracing::info!(run = run.name(), row = row.get(), "asked");
        if stop.as_ref().is_some_and(|stop| stop.kind == StopKind::KeyRefused) {
            // The row is kept, but an operation with a rejected key does not count towards the hourly limit.
            self.adapters.ledger.update_rows(lease, RowUpdate::NotCounted).await?;
        }
        if let Some(sandbox) = connection.into_sandbox() {
            sandbox.stop().await;
        }
        // The operation is never resumed, whatever its result. A new request is a new operation.
        let state = if skipped.is_some() {
            RowState::Skipped
        } else {
            RunActivity::Finished.single_attempt_state(outcome.as_ref())
        };
        if let Some(hours) = hours.filter(|_| stop.as_ref().is_some_and(|stop| stop.kind == StopKind::Window)) {
            // The window closed while the message waited for the account's rate limit.
            let closes = leave_by.unwrap_or_else(self.adapters.clock);
            refuse_closed_window(&hours, phone, closes.max((self.adapters.clock)()))?;
        }
        Ok(EndedOperation { run, row, id, state, skipped, outcome, stop })
    }
}

impl SingleOperation {
    /// The run that operations of this kind share: messages by day, tests by campaign and edition, lookups and
    /// verification calls by month.
    fn shared_run(&self, adapters: &Adapters) -> SharedRun {
        let Self { operation, endpoint, purpose, mandatory, tested, destination, .. } = self;
        let today = || (adapters.clock)().to_zoned(TimeZone::system()).date();
        SharedRun {
            campaign: operation.campaign_name().to_owned(),
            edition: match operation {
                SingleKind::Message => today().to_string(),
                SingleKind::Test => tested.clone().unwrap_or_default(),
                // These operations are grouped by month, so that old operations can be purged.
                _ => today().strftime("%Y-%m").to_string(),
            },
            gateway: destination.gateway_name().to_owned(),
            account: destination.account_name().to_owned(),
            endpoint: *endpoint,
            kind: operation.kind(),
            live: destination.is_live(),
            suppression: match (*operation, *purpose) {
                (SingleKind::Lookup | SingleKind::CodeCall, _) => {
                    SuppressionPolicy { loopback: destination.is_loopback(), ..SuppressionPolicy::SERVICE }
                }
                // The list has no version here, because each message is checked against the current suppression list.
                (_, purpose) => SuppressionPolicy {
                    purpose,
                    mandatory: *mandatory,
                    loopback: destination.is_loopback(),
                    version: 0,
                },
            },
        }
    }
}

fn build_options(
    run: &Run,
    lease: Lease,
    caps: Vec<FrequencyCap>,
    timeout: Duration,
    destination: &Destination,
) -> SendOptions {
    let allowance = run.allowance(destination.account_rate().per_second());
    let bounds = (!caps.is_empty()).then(|| Arc::new(Bounds { caps, ..Bounds::default() }));
    SendOptions { bounds, ..SendOptions::for_single(lease, allowance, timeout, UNREACHABLE_LIMIT) }
}
