//! The account behind a profile: asked at the account's pace.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::question_queue::QuestionQueue;
use super::{Adapters, Error, RunEvent, RunObserver, check_host, read_api_key};
use crate::domain::Endpoint;
use crate::gateway::{AnswerRules, FailureCause, GatewayAddress, Inquiry, InquiryFailure, JsonApi};
use crate::ledger::{Allowance, Ledger, SlotWait};
use crate::manifest::Profile;

/// How long after a refused connection a question is asked once more.
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// The longest wait that the gateway can impose on every campaign of the account.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// A wait that is told.
const REPORTED_WAIT: Duration = Duration::from_secs(1);

/// What two questions in one envelope came to.
type BothAnswers<A, B> = Result<(Result<A, InquiryFailure>, Result<B, InquiryFailure>), InquiryFailure>;

/// The way to the account of a profile, for callers who bring the key themselves.
///
/// Their questions take a small part of the account's rate while messages are sent through it.
pub struct KeylessAccount(GatewayAccount);

impl KeylessAccount {
    /// The way to the account of a profile whose host is the one that the ledger knows. Nothing is asked yet.
    ///
    /// # Errors
    /// When the host has changed, or the ledger cannot be read.
    pub async fn open(adapters: &Adapters, profile: &Profile, timeout: Duration) -> Result<Self, Error> {
        check_host(adapters.ledger.as_ref(), profile).await?;
        let account = GatewayAccount::from_key(SecretString::default(), adapters, profile, timeout)?;
        Ok(Self(GatewayAccount { queue: Some(Arc::default()), ..account }))
    }

    /// The account as this key opens it; connections are shared with all others.
    #[must_use]
    pub fn with_key(&self, key: SecretString) -> GatewayAccount {
        let GatewayAccount { profile, api, ledger, observer, queue } = &self.0;
        let (ledger, observer) = (Arc::clone(ledger), Arc::clone(observer));
        GatewayAccount { profile: profile.clone(), api: api.with_key(key), ledger, observer, queue: queue.clone() }
    }

    /// The profile.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.0.profile
    }

    /// The host of the gateway.
    #[must_use]
    pub fn host(&self) -> String {
        self.0.profile.base_url.host_and_port()
    }
}

/// An account that can be asked.
pub struct GatewayAccount {
    /// Its profile.
    pub profile: Profile,
    api: JsonApi,
    ledger: Arc<dyn Ledger>,
    observer: RunObserver,
    /// Where questions wait that must not slow messages; nothing for those of an operator.
    queue: Option<Arc<QuestionQueue>>,
}

impl GatewayAccount {
    /// The account of a profile whose host is the one that the ledger knows. Nothing is asked yet.
    ///
    /// # Errors
    /// When there is no key, the host has changed, or the ledger cannot be read.
    pub async fn open(adapters: &Adapters, profile: &Profile, timeout: Duration) -> Result<Self, Error> {
        let key = read_api_key(profile)?;
        check_host(adapters.ledger.as_ref(), profile).await?;
        Self::from_key(key, adapters, profile, timeout)
    }

    /// The account of a profile that is new, so that no host is known of it.
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

    /// Asks for one thing, or orders one.
    ///
    /// # Errors
    /// When there is no good answer, or the ledger cannot be read.
    pub async fn ask<I: Inquiry>(&self, inquiry: &I) -> Result<I::Answer, Error> {
        let answer = self.ask_at_rate((1, I::READS_ONLY), || self.api.ask(inquiry)).await?;
        answer.map_err(|unanswered| self.unanswered_error(unanswered))
    }

    /// Asks for several things of one kind, in as many envelopes as it takes; the answers are in their order.
    ///
    /// An envelope that fails ends the asking. The answers before it are kept, and all others are its failure.
    ///
    /// # Errors
    /// When the first envelope fails, or the ledger cannot be read.
    pub async fn ask_all<I: Inquiry>(&self, inquiries: &[I]) -> Result<Vec<Result<I::Answer, InquiryFailure>>, Error> {
        let mut answers = Vec::with_capacity(inquiries.len());
        for chunk in inquiries.chunks(self.profile.max_envelope_size()) {
            let count = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            match self.ask_at_rate((count, I::READS_ONLY), || self.api.ask_all(chunk)).await? {
                Ok(answered) => answers.extend(answered),
                Err(unanswered) if answers.is_empty() => return Err(self.unanswered_error(unanswered)),
                Err(unanswered) => {
                    // Refused was the envelope: of the single things nothing is known.
                    let open = InquiryFailure { cause: FailureCause::Unclear, ..unanswered };
                    answers.resize_with(inquiries.len(), || Err(open.clone()));
                    break;
                }
            }
        }
        Ok(answers)
    }

    /// Asks for two things in one envelope.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn ask_both<A: Inquiry, B: Inquiry>(
        &self,
        both: (&A, &B),
    ) -> Result<BothAnswers<A::Answer, B::Answer>, Error> {
        self.ask_at_rate((2, A::READS_ONLY && B::READS_ONLY), || self.api.ask_both(both)).await
    }

    /// Asks once there is room at the account's pace. What only reads is asked once more if no connection was made.
    async fn ask_at_rate<T, F: Future<Output = Result<T, InquiryFailure>>>(
        &self,
        (count, reads_only): (u32, bool),
        ask: impl Fn() -> F,
    ) -> Result<Result<T, InquiryFailure>, Error> {
        let allowance = Self::account_allowance(&self.profile);
        let wait = self.reserve_questions(&allowance, count).await?;
        if wait.time > REPORTED_WAIT {
            (self.observer)(RunEvent::WaitingToAsk(wait));
        }
        tokio::time::sleep(wait.time).await;
        let mut answer = ask().await;
        if reads_only && answer.as_ref().is_err_and(|failed| failed.cause == FailureCause::NotConnected) {
            tokio::time::sleep(RETRY_PAUSE).await;
            answer = ask().await;
        }
        if let Err(InquiryFailure { cause: FailureCause::SlowDown(wait), .. }) = &answer {
            self.ledger.slow_account(&allowance.name, wait.filter(|wait| *wait <= LONGEST_WAIT)).await?;
        }
        Ok(answer)
    }

    /// Takes room for questions from the account's rate.
    async fn reserve_questions(&self, allowance: &Allowance, count: u32) -> Result<SlotWait, Error> {
        let Some(queue) = &self.queue else { return Ok(self.ledger.reserve_rate(allowance, count).await?) };
        let mut wait = SlotWait::NONE;
        for _ in 0..count {
            wait = queue.wait_for_room(self.ledger.as_ref(), allowance).await?;
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::ledger::SqliteLedger;
    use crate::runs::Profiles;

    /// An account on loopback with a ledger of its own.
    async fn loopback_account(folder: &std::path::Path) -> GatewayAccount {
        let (file, key) = (folder.join("gateways.yaml"), folder.join("gateway.key"));
        std::fs::write(&key, "s3cret").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let profile = "local:\n  base_url: http://127.0.0.1:1\n  api_key: { file: gateway.key }\n  rate: 30/s\n";
        std::fs::write(&file, profile).unwrap();
        let profiles = Profiles { explicit: Some(file), configuration: None };
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
        InquiryFailure { cause, reason: "why".into(), gateway_text: None, undone: true }
    }

    #[tokio::test]
    async fn only_reads_repeat_and_only_once_without_a_connection() {
        let folder = tempfile::tempdir().unwrap();
        let account = loopback_account(folder.path()).await;
        let table = [
            (true, FailureCause::NotConnected, 2),
            (false, FailureCause::NotConnected, 1),
            (true, FailureCause::Unclear, 1),
            (true, FailureCause::Refused, 1),
            (true, FailureCause::KeyRefused, 1),
        ];
        for (reads_only, cause, expected) in table {
            let asked = Cell::new(0);
            let answer = account.ask_at_rate((1, reads_only), || {
                asked.set(asked.get() + 1);
                std::future::ready(Err::<(), _>(inquiry_failure(cause)))
            });
            assert!(answer.await.unwrap().is_err_and(|answer| answer == inquiry_failure(cause)));
            assert_eq!(asked.get(), expected, "{reads_only} {cause:?}");
        }
    }

    #[tokio::test]
    async fn imposed_wait_applies_to_every_process_on_the_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let account = loopback_account(folder.path()).await;
        let slow = || inquiry_failure(FailureCause::SlowDown(Some(Duration::from_secs(60))));
        let answer = account.ask_at_rate((1, true), || std::future::ready(Err::<(), _>(slow()))).await;
        assert!(answer.unwrap().is_err());
        let allowance = GatewayAccount::account_allowance(&account.profile);
        let wait = account.ledger.reserve_rate(&allowance, 1).await.unwrap().time;
        assert!(wait > Duration::from_secs(50), "{wait:?}");
    }

    #[tokio::test]
    async fn envelope_holds_at_most_the_questions_of_one_second() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(loopback_account(folder.path()).await.profile.max_envelope_size(), 30);
    }
}
