//! One call to send a campaign: what it begins with, and its way from the look at everything to the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringTreemap;
use secrecy::SecretString;
use tokio::sync::watch;

use super::forget::finish_forgetting;
use super::hooks::{load_hook, refuse_other_secret};
use super::lost::{move_signs_aside, refuse_lost_ledger, refuse_stray_copies};
use super::plan::RequiredPlan;
use super::restore::refuse_backup;
use super::{
    Adapters, Consent, EarlierSending, Error, Inputs, ProtectedFiles, RunOutcome, RunPhase, RunRequest, hold_campaign,
    read_destination_key,
};
use crate::delivery::{Interrupt, Snapshot};
use crate::gateway::WebhookUrls;
use crate::ledger::{CampaignLock, RowState, Run, RunId, StrayCopies};
use crate::report::{ResultsTarget, check_target};

/// How long after a second signal what is still going on is left.
const EXIT_GRACE: Duration = Duration::from_millis(700);

/// A campaign that is to be sent, as far as it can be known without a ledger that it can be.
pub struct Launch {
    pub(super) inputs: Arc<Inputs>,
    pub(super) request: RunRequest,
    pub(super) key: SecretString,
    pub(super) hook: Option<WebhookUrls>,
    pub(super) target: ResultsTarget,
}

/// Rows of a run that go out again as new messages.
#[derive(Clone, Debug)]
pub struct RetryScope {
    /// The run.
    pub run: RunId,
    /// Only rows in these states; what was refused at intake is rejected, also where the gateway tells it later.
    pub states: Vec<RowState>,
    /// Only rows with one of these texts in their error; all if there are none.
    pub errors: Vec<String>,
}

/// A launch on its way.
pub(super) struct Session {
    pub(super) launch: Launch,
    pub(super) adapters: Adapters,
    pub(super) consent: Arc<dyn Consent>,
    pub(super) interrupt: watch::Receiver<Interrupt>,
    pub(super) hold: Arc<CampaignLock>,
    /// The plan that it is held to.
    pub(super) required_plan: Option<RequiredPlan>,
}

/// The run that a call sends.
pub(super) struct RunToSend {
    /// Whom a run that goes on sends nothing to, by the campaign's own lists as they are now.
    pub(super) suppressed: RoaringTreemap,
    pub(super) run: Run,
    /// Where it stood while it was held; nothing if that has to be read again.
    pub(super) snapshot: Option<Snapshot>,
    /// Its campaign on the account that it was begun on.
    pub(super) hold: Arc<CampaignLock>,
    /// So many messages at most by this call.
    pub(super) limit: Option<u64>,
    /// Whether rows of it go out again as new messages by this call.
    pub(super) retry: bool,
    /// Rows that do not go out again, since the gateway did not confirm that their messages failed.
    pub(super) unconfirmed: u64,
    /// Whether it is of an edition before the one of now, which begins once this one is through.
    pub(super) earlier_edition: bool,
    /// Who was sent to before by other runs, if anybody is skipped for that.
    pub(super) before: Option<EarlierSending>,
    /// The runs of the same edition that were stopped for good, if their recipients are skipped for that.
    pub(super) cancelled_in: Vec<String>,
}

/// What the preparation of a call came to.
pub(super) enum Preparation {
    /// This run is to be sent.
    Send(Box<RunToSend>),
    /// There is nothing to send.
    Nothing(RunOutcome),
}

impl Launch {
    /// A campaign with what is wanted of it.
    ///
    /// # Errors
    /// When there is no key, or its results could not be written.
    pub fn prepare(inputs: Arc<Inputs>, request: RunRequest, files: ProtectedFiles<'_>) -> Result<Self, Error> {
        let key = read_destination_key(&inputs.destination)?;
        let hook = match inputs.destination.profile() {
            Some(profile) if inputs.campaign.receipts.takes_webhooks() => load_hook(profile)?,
            _ => None,
        };
        // A run whose results have no place is found out before it is sent, not after.
        let target = files.results_target(&inputs.campaign, inputs.campaign.results_file());
        check_target(&target)?;
        Ok(Self { inputs, request, key, hook, target })
    }

    /// Whether the ledger counts, whatever contradicts it.
    #[must_use]
    pub fn accepts_any_ledger(&self) -> bool {
        self.request.new_ledger
    }

    /// Refuses to begin a ledger while something tells of another one: it may be put back where that would stand.
    ///
    /// # Errors
    /// When something does: results that are in its place, or these copies that stand in the state folder.
    pub async fn check_new_ledger(&self, state: &Path, copies: Vec<StrayCopies>) -> Result<(), Error> {
        refuse_stray_copies(copies, state, &self.inputs).await
    }

    /// Sends the campaign, or goes on where it stopped.
    ///
    /// # Errors
    /// Why nothing was sent; or that a second signal came.
    pub async fn run(
        self,
        adapters: Adapters,
        consent: Arc<dyn Consent>,
        interrupt: watch::Receiver<Interrupt>,
    ) -> Result<RunOutcome, Error> {
        let session = self.start_session(adapters, consent, interrupt).await?;
        session.send_editions().await
    }

    /// Sends rejected rows of a run again, as new messages.
    ///
    /// # Errors
    /// Why nothing was sent; or that a second signal came.
    pub async fn retry(
        self,
        adapters: Adapters,
        consent: Arc<dyn Consent>,
        interrupt: watch::Receiver<Interrupt>,
        scope: RetryScope,
    ) -> Result<RunOutcome, Error> {
        let session = self.start_session(adapters, consent, interrupt).await?;
        session.send_prepared(session.prepare_retry(&scope)).await
    }

    async fn start_session(
        self,
        adapters: Adapters,
        consent: Arc<dyn Consent>,
        interrupt: watch::Receiver<Interrupt>,
    ) -> Result<Session, Error> {
        let (brief, account) = (&self.inputs.campaign.brief, self.inputs.destination.account_name());
        let ledger = adapters.ledger.as_ref();
        if let Some(profile) = self.inputs.destination.profile() {
            refuse_other_secret(ledger, profile, self.hook.as_ref()).await?;
        }
        if self.inputs.destination.is_live() {
            refuse_backup(ledger).await?;
        }
        let hold = Arc::new(hold_campaign(ledger, &brief.name, &brief.gateway, account).await?);
        // While it is held, so that nobody writes those results meanwhile.
        match self.request.new_ledger {
            true => move_signs_aside(ledger, &self.inputs, &adapters.observer).await?,
            false => refuse_lost_ledger(ledger, &self.inputs).await?,
        }
        finish_forgetting(&adapters, &hold).await;
        let pin = RequiredPlan::load_for_request(ledger, &self.request, self.inputs.destination.profile()).await?;
        Ok(Session { launch: self, adapters, consent, interrupt, hold, required_plan: pin })
    }
}

impl Session {
    /// The campaign's inputs.
    pub(super) fn inputs(&self) -> &Arc<Inputs> {
        &self.launch.inputs
    }

    /// What is held with a run, which may have been begun when the profile's account was another one.
    pub(super) async fn hold_for_run(&self, run: &Run) -> Result<Arc<CampaignLock>, Error> {
        if self.hold.covers_run(run) {
            return Ok(Arc::clone(&self.hold));
        }
        let gateway = &self.inputs().campaign.brief.gateway;
        Ok(Arc::new(hold_campaign(self.adapters.ledger.as_ref(), &run.campaign, gateway, &run.account).await?))
    }

    /// Where its results go.
    pub(super) fn results_path(&self) -> PathBuf {
        self.launch.target.path().to_owned()
    }

    /// Sends the campaign; after an unfinished run of an earlier edition the edition of now.
    async fn send_editions(&self) -> Result<RunOutcome, Error> {
        let first = self.send_prepared(self.prepare_run()).await?;
        let RunOutcome::Ended(mut ended) = first else { return Ok(first) };
        let request = &self.launch.request;
        let some = request.limit.is_some() || request.rows.is_some();
        if some || ended.kind.is_some() || !ended.earlier_edition {
            return Ok(RunOutcome::Ended(ended));
        }
        match self.send_prepared(self.prepare_run()).await {
            Ok(second) => Ok(second.with_earlier(ended)),
            Err(error) => {
                // What was sent is told whatever became of the next edition.
                ended.not_begun_error = Some(Box::new(error));
                Ok(RunOutcome::Ended(ended))
            }
        }
    }

    /// Sends what the preparation selects; a signal before that leaves without sending.
    async fn send_prepared(
        &self,
        prepare: impl Future<Output = Result<Preparation, Error>>,
    ) -> Result<RunOutcome, Error> {
        let prepared = tokio::select! {
            prepared = prepare => prepared?,
            signal = self.wait_for_signal() => return Err(Error::Interrupted { signal, phase: RunPhase::Preparing }),
        };
        match prepared {
            Preparation::Send(selection) => tokio::select! {
                ended = self.send_run(*selection) => ended,
                // The engine leaves at once by itself; this is for what comes after it, such as results of millions.
                signal = self.wait_for_second_signal() => Err(Error::Interrupted { signal, phase: RunPhase::Ending }),
            },
            Preparation::Nothing(outcome) => Ok(outcome),
        }
    }

    /// Waits for a signal, which may have come before.
    pub(super) async fn wait_for_signal(&self) -> u8 {
        let mut interrupt = self.interrupt.clone();
        let signal = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None).await.map(|signal| *signal);
        match signal {
            Ok(Interrupt::Graceful(signal) | Interrupt::Immediate(signal)) => signal,
            Ok(Interrupt::None) | Err(_) => std::future::pending().await,
        }
    }

    /// Waits for a moment after the second signal.
    async fn wait_for_second_signal(&self) -> u8 {
        let mut interrupt = self.interrupt.clone();
        let at_once = |interrupt: &Interrupt| matches!(interrupt, Interrupt::Immediate(_));
        match interrupt.wait_for(at_once).await.map(|signal| *signal) {
            Ok(Interrupt::Immediate(signal)) => {
                tokio::time::sleep(EXIT_GRACE).await;
                signal
            }
            _ => std::future::pending().await,
        }
    }
}
