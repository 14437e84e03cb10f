//! Admission of test messages: opt-outs, the number of recipients of an edition, the hours, and the yes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::consent::confirm;
use super::plan::find_test_approval;
use super::policy::{PolicyRefusal, build_hours, find_suppressed, refuse_closed_window, test_hours};
use super::test_message::test_edition;
use super::{Adapters, ConfirmedSingle, Consent, Error, Inputs, PlanRefusal, Proposal, SingleOperation, TestMessage};
use crate::delivery::SingleKind;
use crate::domain::Phone;
use crate::ledger::{Approval, CampaignLock, Ledger, NumberSet, RunFilter};
use crate::manifest::Profile;

/// The most recipients that the tests of an edition have without an approval.
const MAX_TEST_RECIPIENTS: u64 = 10;

/// What nobody else holds while the recipients of an edition's tests are counted; no campaign's runs are held by this name.
const COUNT_HOLD: &str = "campaign.test-recipients";

/// How long the tests of other processes are waited for, and how long between two looks.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);
const TURN_PAUSE: Duration = Duration::from_millis(100);

/// Test messages of one row to several numbers.
pub struct TestOrder<'o> {
    /// The campaign.
    pub inputs: &'o Arc<Inputs>,
    /// What they say.
    pub message: &'o TestMessage,
    /// Their recipients, each once.
    pub phones: &'o [Phone],
}

/// Test messages that may be sent, one for each recipient.
pub struct AdmittedTests {
    /// The messages, in the order of the recipients.
    pub tests: Vec<ConfirmedSingle>,
    /// Kept until all of them are sent, so that tests of other processes count their recipients.
    _counted: Option<CampaignLock>,
}

impl TestOrder<'_> {
    /// Admits all of the messages, or none. `consent` agrees to send them, `outside` to send them outside of the window.
    ///
    /// # Errors
    /// When a recipient opted out, the edition would have too many recipients of tests, the window is closed and `outside` does
    /// not agree, or `consent` does not agree.
    pub async fn admit_all(
        &self,
        adapters: Adapters,
        consent: &dyn Consent,
        outside: &dyn Consent,
    ) -> Result<AdmittedTests, Error> {
        let Self { inputs, message, phones } = *self;
        let singles = phones.iter().map(|phone| SingleOperation::for_test(message, *phone, inputs));
        let mut singles = singles.collect::<Result<Vec<_>, _>>()?;
        let held = find_suppressed(adapters.ledger.as_ref(), inputs, phones).await?;
        if !held.is_empty() {
            return Err(PolicyRefusal::Suppressed(held).into());
        }
        self.find_approval(&adapters).await?;
        if self.confirm_hours(&adapters, outside).await? {
            singles = singles.into_iter().map(SingleOperation::at_any_time).collect();
        }
        let tests = SingleOperation::confirm_each(singles, adapters.clone(), consent).await?;
        Ok(AdmittedTests { tests, _counted: self.count_recipients(&adapters).await? })
    }

    /// Counts the recipients once more, while no other process does, and uses an approval that they need.
    async fn count_recipients(&self, adapters: &Adapters) -> Result<Option<CampaignLock>, Error> {
        let (brief, destination) = (&self.inputs.campaign.brief, &self.inputs.destination);
        if !destination.is_live() {
            return Ok(None);
        }
        let ledger = adapters.ledger.as_ref();
        let hold = take_turn(ledger, &brief.name, destination.gateway_name()).await?;
        if let Some(approval) = self.find_approval(adapters).await?
            && !ledger.use_approval(&approval.token, None).await?
        {
            return Err(Error::Plan(PlanRefusal::Used { digest: approval.digest }));
        }
        Ok(Some(hold))
    }

    /// The approval that the recipients need, if the edition has too many of them; nothing if they need none.
    ///
    /// # Errors
    /// When they need one that nobody gave.
    async fn find_approval(&self, adapters: &Adapters) -> Result<Option<Approval>, Error> {
        let Some(profile) = self.inputs.destination.profile() else { return Ok(None) };
        let before = self.find_recipients_before(adapters).await?;
        let new = self.phones.iter().filter(|phone| !before.contains(**phone)).count() as u64;
        let (number, most) = (before.len() + new, recipient_limit(profile));
        if new == 0 || number <= most {
            return Ok(None);
        }
        if profile.approval.is_none() {
            return Err(PolicyRefusal::TooManyTests { number, most }.into());
        }
        let tests = (self.message.row, self.phones);
        match find_test_approval(adapters, self.inputs, (&self.message.list, tests)).await? {
            Ok(approval) => Ok(Some(approval)),
            Err(digest) => {
                let gateway = profile.name.clone();
                Err(PolicyRefusal::UnapprovedTests { digest, gateway, number, most }.into())
            }
        }
    }

    /// Who got a test of the edition, or may have. Gateways on this machine count for themselves.
    async fn find_recipients_before(&self, adapters: &Adapters) -> Result<NumberSet, Error> {
        let Self { inputs, message, .. } = self;
        let edition = test_edition(&inputs.campaign.brief, &message.edition);
        let mut runs = adapters.ledger.list_runs(RunFilter::for_campaign(SingleKind::Test.campaign_name())).await?;
        let loopback = inputs.destination.is_loopback();
        runs.retain(|run| run.live && run.edition == edition && run.suppression.loopback == loopback);
        Ok(adapters.ledger.load_sent_numbers(&runs.iter().map(|run| run.key).collect::<Vec<_>>()).await?)
    }

    /// Whether somebody agreed to send outside of the window; no one is asked while it is open.
    async fn confirm_hours(&self, adapters: &Adapters, outside: &dyn Consent) -> Result<bool, Error> {
        let Some(keeping) = test_hours(self.inputs) else { return Ok(false) };
        let (hours, now) = (build_hours(keeping, adapters.clock), (adapters.clock)());
        let closed = self.phones.iter().find_map(|phone| refuse_closed_window(&hours, *phone, now).err());
        let Some(PolicyRefusal::OutsideWindow { opens }) = closed else { return Ok(false) };
        confirm(outside, Proposal::OutsideWindow { opens: opens.as_ref() }).await?;
        Ok(true)
    }
}

/// Takes the turn to count the recipients of a campaign's tests, after processes that send some now.
async fn take_turn(ledger: &dyn Ledger, campaign: &str, gateway: &str) -> Result<CampaignLock, Error> {
    let began = Instant::now();
    loop {
        if let Some(hold) = ledger.acquire_campaign_lock(COUNT_HOLD, campaign).await? {
            return Ok(hold);
        }
        if began.elapsed() > TURN_TIMEOUT {
            let (campaign, gateway) = (SingleKind::Test.campaign_name().to_owned(), gateway.to_owned());
            return Err(Error::BusyRun { campaign, gateway, since: None });
        }
        tokio::time::sleep(TURN_PAUSE).await;
    }
}

/// How many recipients the tests of an edition may have without an approval.
fn recipient_limit(profile: &Profile) -> u64 {
    let above = profile.approval.as_ref().map_or(MAX_TEST_RECIPIENTS, |rule| rule.above.into());
    MAX_TEST_RECIPIENTS.min(above)
}
