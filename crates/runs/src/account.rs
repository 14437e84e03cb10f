//! Gateway accounts: inquiries at the account's rate, new profiles, and templates.
//!
//! Inquiries from assistants wait in a short queue. An inquiry that would wait too long is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::ports::confirm;
use super::{
    Adapters, Consent, ConsentRefusal, Error, Proposal, ProposalKind, RunEvent, RunObserver, TemplateRefusal,
    check_host, read_api_key,
};
use crate::draft::ProfileDraft;
use campaign_core::domain::{Endpoint, GatewayMessageId};
use campaign_gateway::{
    AnswerRules, AskBalance, AskSenders, Balance, CreateTemplate, DeleteTemplate, FailureCause, GatewayAddress,
    Inquiry, InquiryFailure, JsonApi, ListTemplates, MessageTemplate, SenderName, TemplateChannel,
};
use campaign_ledger::{Allowance, HostChange, Ledger, RateRequest, SlotPermit, SlotWait};
use campaign_manifest::Profile;

/// The pause before an inquiry is repeated after a refused connection.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// The longest wait that the gateway can impose on every campaign of the account.
const MAX_IMPOSED_WAIT: Duration = Duration::from_secs(600);
/// Waits that are longer than this are reported.
const MAX_UNREPORTED_WAIT: Duration = Duration::from_secs(1);

/// The answers to two inquiries in one request. The outer error means that the whole request failed.
type BothAnswers<A, B> = Result<(Result<A, InquiryFailure>, Result<B, InquiryFailure>), InquiryFailure>;

/// Access to the account of a profile, for callers that supply the API key.
///
/// While messages are sent through the account, its inquiries take only a small part of the account's rate.
pub struct KeylessAccount(GatewayAccount);

impl KeylessAccount {
    /// Opens the account of a profile whose host the ledger trusts. No request is sent.
    ///
    /// # Errors
    /// If the host has changed, the ledger cannot be read, or the client cannot be created.
    pub async fn open(adapters: &Adapters, profile: &Profile, timeout: Duration) -> Result<Self, Error> {
        check_host(adapters.ledger.as_ref(), profile).await?;
        let account = GatewayAccount::from_key(SecretString::default(), adapters, profile, timeout)?;
        Ok(Self(GatewayAccount { queue: Some(Arc::default()), ..account }))
    }

    /// Copies the account with another API key. Both accounts share the same connections.
    pub fn with_key(&self, key: SecretString) -> GatewayAccount {
        let GatewayAccount { profile, api, ledger, observer, queue } = &self.0;
        let (ledger, observer) = (Arc::clone(ledger), Arc::clone(observer));
        GatewayAccount { profile: profile.clone(), api: api.with_key(key), ledger, observer, queue: queue.clone() }
    }

    /// The profile of the account, whose own API key is not used.
    pub fn profile(&self) -> &Profile {
        &self.0.profile
    }

    /// The host of the gateway.
    pub fn host(&self) -> String {
        self.0.profile.base_url.host_and_port()
    }
}

/// A gateway account that can be queried.
pub struct GatewayAccount {
    /// The profile of the account.
    pub profile: Profile,
    api: JsonApi,
    ledger: Arc<dyn Ledger>,
    observer: RunObserver,
    /// The queue of inquiries that must not slow down messages. `None` for an operator's inquiries.
    queue: Option<Arc<InquiryQueue>>,
}

impl GatewayAccount {
    /// Opens the account of a profile whose host the ledger trusts. No request is sent.
    ///
    /// # Errors
    /// If the key or the ledger cannot be read, the host has changed, or the client cannot be created.
    pub async fn open(adapters: &Adapters, profile: &Profile, timeout: Duration) -> Result<Self, Error> {
        let key = read_api_key(profile)?;
        check_host(adapters.ledger.as_ref(), profile).await?;
        Self::from_key(key, adapters, profile, timeout)
    }

    /// Opens the account of a new profile, which has no trusted host yet.
    pub(super) fn open_new(adapters: &Adapters, profile: &Profile, timeout: Duration) -> Result<Self, Error> {
        Self::from_key(read_api_key(profile)?, adapters, profile, timeout)
    }

    fn from_key(key: SecretString, adapters: &Adapters, profile: &Profile, timeout: Duration) -> Result<Self, Error> {
        let address = GatewayAddress {
            base_url: profile.base_url.as_str().to_owned(),
            async_url: String::new(),
            proxy: profile.proxy.clone(),
            timeout,
            embedded: false,
        };
        let rules = AnswerRules { trust_status: profile.trust_status.clone(), fatal_errors: Vec::new() };
        let api = (adapters.connect)(&address, Endpoint::Sync, key, rules).map_err(Error::Client)?;
        let (ledger, observer) = (Arc::clone(&adapters.ledger), Arc::clone(&adapters.observer));
        Ok(Self { profile: profile.clone(), api, ledger, observer, queue: None })
    }

    /// Sends one inquiry or change.
    ///
    /// # Errors
    /// If there is no usable response, the inquiry would wait too long, or the ledger cannot be used.
    pub async fn ask<I: Inquiry>(&self, inquiry: &I) -> Result<I::Answer, Error> {
        let answer = self.ask_at_rate(1, I::READS_ONLY, || self.api.ask(inquiry)).await?;
        answer.map_err(|failure| self.unanswered_error(failure))
    }

    /// Sends several inquiries of one kind in as many requests as necessary. The answers are in the order of the
    /// inquiries.
    ///
    /// After a failed request, no more requests are sent. Answers to earlier requests are kept, and the failure is
    /// returned for all remaining inquiries, with an unclear cause.
    ///
    /// # Errors
    /// If the first request fails, an inquiry would wait too long, or the ledger cannot be used.
    pub async fn ask_all<I: Inquiry>(&self, inquiries: &[I]) -> Result<Vec<Result<I::Answer, InquiryFailure>>, Error> {
        let mut answers = Vec::with_capacity(inquiries.len());
        for chunk in inquiries.chunks(self.profile.max_envelope_size()) {
            let count = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            match self.ask_at_rate(count, I::READS_ONLY, || self.api.ask_all(chunk)).await? {
                Ok(chunk_answers) => answers.extend(chunk_answers),
                Err(failure) if answers.is_empty() => return Err(self.unanswered_error(failure)),
                Err(failure) => {
                    // The whole request failed, so the answers to all remaining inquiries are unknown.
                    let unclear = InquiryFailure { cause: FailureCause::Unclear, ..failure };
                    answers.resize_with(inquiries.len(), || Err(unclear.clone()));
                    break;
                }
            }
        }
        Ok(answers)
    }

    /// Sends two inquiries in one request.
    ///
    /// # Errors
    /// If the inquiries would wait too long, or the ledger cannot be used.
    pub async fn ask_both<A: Inquiry, B: Inquiry>(
        &self,
        first: &A,
        second: &B,
    ) -> Result<BothAnswers<A::Answer, B::Answer>, Error> {
        self.ask_at_rate(2, A::READS_ONLY && B::READS_ONLY, || self.api.ask_both(first, second)).await
    }

    /// Sends a request with `count` inquiries when the account's rate permits it. If no connection was made and all
    /// inquiries are read-only, the request is repeated once.
    async fn ask_at_rate<T, F: Future<Output = Result<T, InquiryFailure>>>(
        &self,
        count: u32,
        is_read_only: bool,
        ask: impl Fn() -> F,
    ) -> Result<Result<T, InquiryFailure>, Error> {
        let allowance = Self::account_allowance(&self.profile);
        let wait = self.reserve_inquiries(&allowance, count).await?;
        if wait.time > MAX_UNREPORTED_WAIT {
            (self.observer)(RunEvent::WaitingToAsk(wait));
        }
        tokio::time::sleep(wait.time).await;
        let mut answer = ask().await;
        if is_read_only && answer.as_ref().is_err_and(|failed| failed.cause == FailureCause::NotConnected) {
            tokio::time::sleep(RETRY_PAUSE).await;
            answer = ask().await;
        }
        if let Err(InquiryFailure { cause: FailureCause::SlowDown(wait), .. }) = &answer {
            let slower = RateRequest::SlowDown(wait.filter(|wait| *wait <= MAX_IMPOSED_WAIT));
            self.ledger.use_rate_limit(&allowance, slower).await?;
        }
        Ok(answer)
    }

    /// Reserves rate-limit slots of the account for inquiries.
    async fn reserve_inquiries(&self, allowance: &Allowance, count: u32) -> Result<SlotWait, Error> {
        let Some(queue) = &self.queue else { return Ok(self.ledger.reserve_rate(allowance, count).await?) };
        let mut wait = SlotWait::NONE;
        for _ in 0..count {
            wait = queue.wait_for_slot(self.ledger.as_ref(), allowance).await?;
        }
        Ok(wait)
    }

    fn account_allowance(profile: &Profile) -> Allowance {
        Allowance::of_account(&profile.account, profile.is_loopback(), profile.rate.per_second())
    }

    fn unanswered_error(&self, failure: InquiryFailure) -> Error {
        Error::Unanswered { gateway: self.profile.name.clone(), key: self.profile.api_key.to_string(), failure }
    }
}

/// The longest time that an inquiry of an assistant waits for the account's rate limit.
const MAX_QUEUE_WAIT: Duration = Duration::from_secs(5);

/// The queue of inquiries that wait in this process.
#[derive(Debug, Default)]
pub(super) struct InquiryQueue {
    /// Held by the first inquiry in the queue while it asks the ledger.
    first: Mutex<()>,
    waiting: AtomicU64,
    /// The wait of the next inquiry for a slot, in microseconds, as the ledger last reported it.
    interval: AtomicU64,
}

/// An inquiry's place in the queue. Dropping the place removes the inquiry from the queue.
struct QueuePlace<'q>(&'q AtomicU64);

impl InquiryQueue {
    /// Waits until a rate-limit slot of the account is reserved for one inquiry, and returns the time that the caller
    /// must then wait for the slot.
    ///
    /// # Errors
    /// If the wait would be too long, or the ledger cannot be used.
    pub(super) async fn wait_for_slot(&self, ledger: &dyn Ledger, account: &Allowance) -> Result<SlotWait, Error> {
        let began = Instant::now();
        let ahead = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _place = QueuePlace(&self.waiting);
        let wait = Duration::from_micros(ahead.saturating_mul(self.interval.load(Ordering::Relaxed)));
        if wait > MAX_QUEUE_WAIT {
            return Err(Error::TooManyInquiries { wait });
        }
        let _first = self.first.lock().await;
        loop {
            match ledger.use_rate_limit(account, RateRequest::Inquiry { longest: MAX_QUEUE_WAIT }).await? {
                SlotPermit::Granted { wait, next } => {
                    self.interval.store(u64::try_from(next.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
                    return Ok(wait);
                }
                SlotPermit::Later(wait) if began.elapsed() + wait > MAX_QUEUE_WAIT => {
                    return Err(Error::TooManyInquiries { wait });
                }
                SlotPermit::Later(wait) => sleep(wait).await,
            }
        }
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The time limit for the gateway's answer about a new account.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The account of a new profile.
#[derive(Debug)]
pub struct NewAccount {
    /// The balance of the account.
    pub balance: Result<Balance, InquiryFailure>,
    /// The account's sender names.
    pub senders: Result<Vec<SenderName>, InquiryFailure>,
}

/// Writes a new gateway profile and trusts its host from now on. If `must_ask` is set, first asks the gateway about the
/// account and returns its answer.
///
/// # Errors
/// If the account cannot be queried, the gateway rejects the key, or the profile or ledger cannot be written. In the
/// first two cases, nothing is written.
pub async fn add_gateway(
    adapters: &Adapters,
    draft: &ProfileDraft,
    must_ask: bool,
) -> Result<Option<NewAccount>, Error> {
    let profile = &draft.profile;
    let account_answer = if must_ask { Some(ask_account(adapters, draft).await?) } else { None };
    draft.write().map_err(|error| Error::Storage(error.to_string()))?;
    adapters.ledger.remember_host(&profile.name, &profile.trusted_hosts(), HostChange::Replace).await?;
    Ok(account_answer)
}

async fn ask_account(adapters: &Adapters, ProfileDraft { profile, .. }: &ProfileDraft) -> Result<NewAccount, Error> {
    let account = GatewayAccount::open_new(adapters, profile, ANSWER_TIMEOUT)?;
    let answer = account.ask_both(&AskBalance, &AskSenders).await?;
    let (balance, senders) = answer.map_err(|failure| Error::Unanswered {
        gateway: profile.name.clone(),
        key: profile.api_key.to_string(),
        failure,
    })?;
    Ok(NewAccount { balance, senders })
}

/// A change to the templates of an account.
#[derive(Clone, Copy, Debug)]
pub enum TemplateChange<'t> {
    /// Creates a template.
    Create(&'t CreateTemplate),
    /// Deletes a template.
    Delete(&'t DeleteTemplate),
}

impl TemplateChange<'_> {
    /// The verb: `create` or `delete`.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Create(_) => "create",
            Self::Delete(_) => "delete",
        }
    }

    /// The channel of the template.
    pub fn channel(self) -> TemplateChannel {
        match self {
            Self::Create(template) => template.channel,
            Self::Delete(template) => template.channel,
        }
    }
}

impl GatewayAccount {
    /// Creates a template.
    ///
    /// # Errors
    /// If the label of the template is blank, the change is not confirmed, or the gateway does not report success.
    pub async fn create_template(
        &self,
        mut template: CreateTemplate,
        consent: &dyn Consent,
    ) -> Result<MessageTemplate, Error> {
        template.label = require_text(template.channel.label_key(), &template.label)?;
        self.confirm_and_send_change(&template, TemplateChange::Create(&template), consent).await
    }

    /// Deletes a template and returns the number of templates that the gateway reports as deleted. A missing text is
    /// looked up if the gateway requires it.
    ///
    /// # Errors
    /// If the template does not exist, the change is not confirmed, or the gateway does not report success.
    pub async fn delete_template(
        &self,
        mut template: DeleteTemplate,
        consent: &dyn Consent,
    ) -> Result<Option<u64>, Error> {
        let DeleteTemplate { channel, id, .. } = template;
        if channel.requires_text_to_delete() && template.text.is_none() {
            template.text = Some(self.find_template_text(channel, id, consent).await?);
        }
        let deleted = self.confirm_and_send_change(&template, TemplateChange::Delete(&template), consent).await?;
        if deleted == Some(0) { Err(TemplateRefusal::NothingDeleted { id }.into()) } else { Ok(deleted) }
    }

    /// Asks for confirmation of a change, then sends it. A gateway on this machine needs no confirmation.
    async fn confirm_and_send_change<I: Inquiry>(
        &self,
        inquiry: &I,
        change: TemplateChange<'_>,
        consent: &dyn Consent,
    ) -> Result<I::Answer, Error> {
        if !self.profile.is_loopback() {
            confirm(consent, Proposal::Template { profile: &self.profile, change }).await?;
        }
        self.ask(inquiry).await.map_err(|error| match error {
            Error::Unanswered { gateway, failure, .. } if !failure.not_executed => {
                TemplateRefusal::Unclear { gateway, failure, channel: change.channel() }.into()
            }
            error => error,
        })
    }

    /// Looks up the text of a template to delete. If the deletion cannot be confirmed, the gateway is not queried.
    async fn find_template_text(
        &self,
        channel: TemplateChannel,
        id: u64,
        consent: &dyn Consent,
    ) -> Result<String, Error> {
        let gateway = || self.profile.name.clone();
        if !self.profile.is_loopback() && !consent.can_confirm() {
            let proposal = ProposalKind::Template { gateway: gateway(), verb: "delete" };
            return Err(Error::NotConfirmed { proposal, refusal: ConsentRefusal::NoTerminal });
        }
        let templates = self.ask(&ListTemplates { channel }).await?;
        let has_id =
            |template: &MessageTemplate| template.id.as_ref().map(GatewayMessageId::to_string) == Some(id.to_string());
        let template = templates.into_iter().find(has_id);
        let template = template.ok_or_else(|| TemplateRefusal::NoSuchTemplate { gateway: gateway(), channel, id })?;
        Ok(template.text.ok_or(TemplateRefusal::TextUnknown { channel, id })?)
    }
}

fn require_text(field: &str, text: &str) -> Result<String, Error> {
    match text.trim() {
        "" => Err(Error::Input(format!("the template's {field} is empty"))),
        text => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::Profiles;
    use campaign_ledger::SqliteLedger;

    /// An account on loopback with its own ledger.
    async fn loopback_account(folder: &std::path::Path) -> GatewayAccount {
        let (file, key) = (folder.join("gateways.yaml"), folder.join("gateway.key"));
        std::fs::write(&key, "s3cret").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let profile = "local:\n  base_url: http://127.0.0.1:1\n  api_key: { file: gateway.key }\n  rate: 30/s\n";
        std::fs::write(&file, profile).unwrap();
        let profiles = Profiles { explicit: Some(file), ..Profiles::default() };
        let profile = profiles.load(None).unwrap().find_profile("local").unwrap().clone();
        let ledger = SqliteLedger::open(&folder.join("ledger.sqlite"), jiff::Timestamp::now).await.unwrap();
        let adapters = Adapters {
            process: "test".to_owned(),
            state: folder.to_owned(),
            ledger: Arc::new(ledger),
            profiles,
            connect: JsonApi::new,
            input: || None,
            clock: jiff::Timestamp::now,
            name_view: Arc::new(|_, _| String::new()),
            observer: Arc::new(|_| ()),
        };
        GatewayAccount::open(&adapters, &profile, Duration::from_secs(1)).await.unwrap()
    }

    fn inquiry_failure(cause: FailureCause) -> InquiryFailure {
        InquiryFailure { cause, reason: "why".into(), gateway_text: None, not_executed: true }
    }

    #[tokio::test]
    async fn only_reads_are_retried_once_after_a_failed_connection() {
        let folder = tempfile::tempdir().unwrap();
        let account = loopback_account(folder.path()).await;
        let table = [
            (true, FailureCause::NotConnected, 2),
            (false, FailureCause::NotConnected, 1),
            (true, FailureCause::Unclear, 1),
            (true, FailureCause::Refused, 1),
            (true, FailureCause::KeyRefused, 1),
        ];
        for (is_read_only, cause, expected) in table {
            let attempts = Cell::new(0);
            let answer = account.ask_at_rate(1, is_read_only, || {
                attempts.set(attempts.get() + 1);
                std::future::ready(Err::<(), _>(inquiry_failure(cause)))
            });
            assert!(answer.await.unwrap().is_err_and(|answer| answer == inquiry_failure(cause)));
            assert_eq!(attempts.get(), expected, "{is_read_only} {cause:?}");
        }
    }

    #[tokio::test]
    async fn wait_requested_by_gateway_applies_to_every_process() {
        let folder = tempfile::tempdir().unwrap();
        let account = loopback_account(folder.path()).await;
        let slow = || inquiry_failure(FailureCause::SlowDown(Some(Duration::from_secs(60))));
        let answer = account.ask_at_rate(1, true, || std::future::ready(Err::<(), _>(slow()))).await;
        assert!(answer.unwrap().is_err());
        let allowance = GatewayAccount::account_allowance(&account.profile);
        let wait = account.ledger.reserve_rate(&allowance, 1).await.unwrap().time;
        assert!(wait > Duration::from_secs(50), "{wait:?}");
    }

    #[tokio::test]
    async fn envelope_contains_at_most_one_second_of_inquiries() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(loopback_account(folder.path()).await.profile.max_envelope_size(), 30);
    }
}

#[cfg(test)]
mod inquiry_queue_tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicI64;

    use jiff::Timestamp;

    use super::*;
    use campaign_ledger::memory::{LedgerContents, MemoryLedger};

    /// The time of the ledger in microseconds, which a test advances with the clock of the runtime.
    static NOW: AtomicI64 = AtomicI64::new(1_800_000_000_000_000);

    fn now() -> Timestamp {
        Timestamp::from_microsecond(NOW.load(Ordering::Relaxed)).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn excess_inquiries_are_refused_and_do_not_use_up_the_rate() {
        let began = Instant::now();
        let ledger: Arc<dyn Ledger> = Arc::new(MemoryLedger::new(LedgerContents::default(), now));
        let clock = tokio::spawn(async move {
            loop {
                NOW.store(1_800_000_000_000_000 + began.elapsed().as_micros() as i64, Ordering::Relaxed);
                sleep(Duration::from_millis(1)).await;
            }
        });
        let (queue, account) = (Arc::new(InquiryQueue::default()), Allowance::new("account", Some(10.0)));
        // A message was sent a moment ago, so inquiries get a tenth of the rate, one per second.
        ledger.reserve_rate(&account, 1).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        queue.wait_for_slot(ledger.as_ref(), &account).await.unwrap();
        let inquiries = (0..60).map(|_| {
            let (queue, ledger, account) = (Arc::clone(&queue), Arc::clone(&ledger), account.clone());
            async move { queue.wait_for_slot(ledger.as_ref(), &account).await }
        });
        let answers = futures_util::future::join_all(inquiries).await;
        let granted = answers.iter().filter(|answer| answer.is_ok()).count();
        assert!((4..=5).contains(&granted), "{granted} within the longest wait");
        assert!(began.elapsed() < Duration::from_secs(7), "{:?}", began.elapsed());
        assert_eq!(queue.waiting.load(Ordering::Relaxed), 0);
        let (_, rate) = ledger.list_rate_limits().await.unwrap().pop().unwrap();
        assert_eq!(rate.taken, granted as i64 + 2);
        clock.abort();
    }
}
