//! The account behind a profile: asked at the account's pace, and its failures in words for people.

use std::sync::Arc;
use std::time::Duration;

use super::profile::chosen;
use crate::cli::args::Through;
use crate::cli::context::Context;
use crate::cli::exit::{self, Failure};
use crate::cli::output::Output;
use crate::cli::{runs, survey};
use crate::domain::Endpoint;
use crate::gateway::{Address, Inquiry, JsonApi, Rules, Unanswered, UnansweredCause};
use crate::ledger::{Allowance, Ledger};
use crate::manifest::Profile;
use crate::report::duration;

/// How long a command waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long after a refused connection a question is asked once more.
const PAUSE: Duration = Duration::from_millis(300);
/// The longest wait that the gateway can impose on every campaign of the account.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// An account that can be asked.
pub(in crate::cli) struct Account {
    pub(super) profile: Profile,
    api: JsonApi,
    ledger: Arc<dyn Ledger>,
    pub(super) output: Output,
}

impl Account {
    /// The account that a command names. Nothing is asked yet.
    pub(super) async fn open(context: &Context, through: &Through) -> Result<Self, Failure> {
        let profile = chosen(context, through)?;
        let ledger = context.ledger().await?;
        Self::of(&context.output, &profile, ledger, PATIENCE).await
    }

    /// The account of a profile whose host is the one that the ledger knows. Nothing is asked yet.
    pub(in crate::cli) async fn of(
        output: &Output,
        profile: &Profile,
        ledger: Arc<dyn Ledger>,
        timeout: Duration,
    ) -> Result<Self, Failure> {
        let key = survey::key_of(profile)?;
        runs::check_host(output, ledger.as_ref(), profile).await?;
        let address = Address {
            base_url: profile.base_url.as_str().to_owned(),
            async_url: String::new(),
            proxy: profile.proxy.clone(),
            timeout,
        };
        let rules = Rules { trust_status: profile.trust_status.clone(), fatal_errors: Vec::new() };
        let api =
            JsonApi::new(&address, Endpoint::Sync, key, rules).map_err(|error| Failure::wrong(error.to_string()))?;
        Ok(Self { profile: profile.clone(), api, ledger, output: output.clone() })
    }

    /// Asks for one thing.
    pub(super) async fn ask<I: Inquiry>(&self, inquiry: &I) -> Result<I::Answer, Failure> {
        let answer = self.paced((1, I::READS_ONLY), || self.api.ask(inquiry)).await?;
        answer.map_err(|unanswered| self.failure(&unanswered))
    }

    /// Asks for several things of one kind, in as many envelopes as it takes; the answers are in their order.
    ///
    /// An envelope that fails ends the asking. The answers before it are kept, and all others are its failure;
    /// only a first envelope that fails is an error.
    pub(super) async fn ask_all<I: Inquiry>(
        &self,
        inquiries: &[I],
    ) -> Result<Vec<Result<I::Answer, Unanswered>>, Failure> {
        let mut answers = Vec::with_capacity(inquiries.len());
        for chunk in inquiries.chunks(self.most_at_once()) {
            let count = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            match self.paced((count, I::READS_ONLY), || self.api.ask_all(chunk)).await? {
                Ok(answered) => answers.extend(answered),
                Err(unanswered) if answers.is_empty() => return Err(self.failure(&unanswered)),
                Err(unanswered) => {
                    // Refused was the envelope: of the single things nothing is known.
                    let open = Unanswered { cause: UnansweredCause::Unclear, ..unanswered };
                    answers.resize_with(inquiries.len(), || Err(open.clone()));
                    break;
                }
            }
        }
        Ok(answers)
    }

    /// Asks for two things in one envelope.
    pub(in crate::cli) async fn ask_both<A: Inquiry, B: Inquiry>(
        &self,
        both: (&A, &B),
    ) -> Result<Result<(Result<A::Answer, Unanswered>, Result<B::Answer, Unanswered>), Unanswered>, Failure> {
        self.paced((2, A::READS_ONLY && B::READS_ONLY), || self.api.ask_both(both)).await
    }

    /// Orders a change; `list` is the command that shows whether it was made.
    pub(super) async fn order<I: Inquiry>(&self, order: &I, list: &str) -> Result<I::Answer, Failure> {
        let answer = self.paced((1, I::READS_ONLY), || self.api.ask(order)).await?;
        answer.map_err(|unanswered| {
            let mut failure = self.failure(&unanswered);
            if !unanswered.undone {
                let name = &self.profile.name;
                let look = self.output.command(format!("gateway {list} --gateway {name}"));
                failure.message = format!(
                    "{}; it may have been done all the same: look with `{look}` before you try again",
                    unanswered.reason
                );
            }
            failure
        })
    }

    /// Asks once there is room at the account's pace. What only reads is asked once more if no connection was made.
    async fn paced<T, F: Future<Output = Result<T, Unanswered>>>(
        &self,
        (count, reads_only): (u32, bool),
        ask: impl Fn() -> F,
    ) -> Result<Result<T, Unanswered>, Failure> {
        let allowance = Allowance::new(self.profile.account.as_str(), self.profile.rate.per_second());
        let wait = self.ledger.reserve(&allowance, count).await?;
        if wait.time > Duration::from_secs(1) {
            self.output.note(&format!("waiting {}: {}", duration(wait.time), wait.reason.words()));
        }
        tokio::time::sleep(wait.time).await;
        let mut answer = ask().await;
        if reads_only && answer.as_ref().is_err_and(|failed| failed.cause == UnansweredCause::NotConnected) {
            tokio::time::sleep(PAUSE).await;
            answer = ask().await;
        }
        if let Err(Unanswered { cause: UnansweredCause::SlowDown(wait), .. }) = &answer {
            self.ledger.slow_down(&allowance.name, wait.filter(|wait| *wait <= LONGEST_WAIT)).await?;
        }
        Ok(answer)
    }

    /// The most operations in one envelope.
    fn most_at_once(&self) -> usize {
        let limit = self.profile.batch_limit.get() as usize;
        self.profile.rate.per_second().map_or(limit, |rate| limit.min(rate as usize).max(1))
    }

    /// A failure in words, with what to do and its exit code.
    pub(super) fn failure(&self, unanswered: &Unanswered) -> Failure {
        let (name, reason) = (&self.profile.name, &unanswered.reason);
        match unanswered.cause {
            UnansweredCause::KeyRefused => {
                Failure::new(exit::KEY, format!("{reason}; check where `{name}` has its `api_key` in gateways.yaml"))
            }
            UnansweredCause::Refused => Failure::new(exit::REJECTIONS, reason),
            UnansweredCause::NotConnected => Failure::new(
                exit::STOPPED,
                format!(
                    "{reason}; nothing was asked. Check the address of `{name}` and your connection, then try again"
                ),
            ),
            UnansweredCause::SlowDown(Some(wait)) => {
                Failure::new(exit::STOPPED, format!("{reason} and to wait {} s; try again after that", wait.as_secs()))
            }
            UnansweredCause::SlowDown(None) => Failure::new(exit::STOPPED, format!("{reason}; try again later")),
            UnansweredCause::Unclear => {
                Failure::new(exit::STOPPED, format!("`{name}` gave no usable answer: {reason}; try again later"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::cli::args::Arguments;
    use crate::cli::suggested::Options;
    use crate::ledger::SqliteLedger;
    use crate::manifest::{GatewaySearch, load_gateways};

    /// An account on loopback with a ledger of its own.
    async fn account(folder: &std::path::Path) -> Account {
        let (file, key) = (folder.join("gateways.yaml"), folder.join("gateway.key"));
        std::fs::write(&key, "s3cret").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let profile = "local:\n  base_url: http://127.0.0.1:1\n  api_key: { file: gateway.key }\n  rate: 30/s\n";
        std::fs::write(&file, profile).unwrap();
        let gateways = load_gateways(&GatewaySearch { explicit: Some(file), ..GatewaySearch::default() });
        let profile = gateways.value.unwrap().profile("local").unwrap().clone();
        let ledger = SqliteLedger::open(&folder.join("ledger.sqlite"), jiff::Timestamp::now).await.unwrap();
        let arguments = <Arguments as clap::Parser>::parse_from(["campaign", "status"]);
        Account::of(&Output::new(&arguments.global, Options::default()), &profile, Arc::new(ledger), PATIENCE)
            .await
            .unwrap()
    }

    fn failed(cause: UnansweredCause) -> Unanswered {
        Unanswered { cause, reason: "why".into(), undone: true }
    }

    #[tokio::test]
    async fn only_a_question_is_asked_again_and_only_once_after_no_connection() {
        let folder = tempfile::tempdir().unwrap();
        let account = account(folder.path()).await;
        let table = [
            (true, UnansweredCause::NotConnected, 2),
            (false, UnansweredCause::NotConnected, 1),
            (true, UnansweredCause::Unclear, 1),
            (true, UnansweredCause::Refused, 1),
            (true, UnansweredCause::KeyRefused, 1),
        ];
        for (reads_only, cause, expected) in table {
            let asked = Cell::new(0);
            let answer = account.paced((1, reads_only), || {
                asked.set(asked.get() + 1);
                std::future::ready(Err::<(), _>(failed(cause)))
            });
            assert_eq!(answer.await.unwrap(), Err(failed(cause)));
            assert_eq!(asked.get(), expected, "{reads_only} {cause:?}");
        }
    }

    #[tokio::test]
    async fn a_wait_that_the_gateway_asks_for_holds_for_every_process_on_the_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let account = account(folder.path()).await;
        let slow = || failed(UnansweredCause::SlowDown(Some(Duration::from_secs(60))));
        let answer = account.paced((1, true), || std::future::ready(Err::<(), _>(slow()))).await;
        assert!(answer.unwrap().is_err());
        let allowance = Allowance::new(account.profile.account.as_str(), None);
        let wait = account.ledger.reserve(&allowance, 1).await.unwrap().time;
        assert!(wait > Duration::from_secs(50), "{wait:?}");
    }

    #[tokio::test]
    async fn an_envelope_holds_no_more_questions_than_the_profile_allows_in_a_second() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(account(folder.path()).await.most_at_once(), 30);
    }
}
