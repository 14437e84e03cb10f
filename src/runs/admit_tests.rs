//! Admission of test messages: opt-outs, the number of recipients of an edition, the hours, and the yes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::consent::confirm;
use super::plan::approval_of_tests;
use super::policy::{PolicyRefusal, find_suppressed, hours_of_tests, on_clock, refuse_closed};
use super::test_message::edition_of_tests;
use super::{Adapters, ConfirmedSingle, Consent, Error, Inputs, PlanRefusal, Proposal, Single, TestMessage};
use crate::delivery::SingleKind;
use crate::domain::Phone;
use crate::ledger::{Approval, Hold, Ledger, NumberSet, RunFilter};
use crate::manifest::Profile;

/// The most recipients that the tests of an edition have without an approval.
const MOST: u64 = 10;

/// What nobody else holds while the recipients of an edition's tests are counted; no campaign's runs are held by this name.
const COUNTING: &str = "campaign.test-recipients";

/// How long the tests of other processes are waited for, and how long between two looks.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

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
    _counted: Option<Hold>,
}

impl TestOrder<'_> {
    /// Admits all of the messages, or none. `consent` agrees to send them, `outside` to send them outside of the window.
    ///
    /// # Errors
    /// When a recipient opted out, the edition would have too many recipients of tests, the window is closed and `outside` does
    /// not agree, or `consent` does not agree.
    pub async fn admit(
        &self,
        adapters: Adapters,
        consent: &dyn Consent,
        outside: &dyn Consent,
    ) -> Result<AdmittedTests, Error> {
        let Self { inputs, message, phones } = *self;
        let singles = phones.iter().map(|phone| Single::test(message, *phone, inputs));
        let mut singles = singles.collect::<Result<Vec<_>, _>>()?;
        let held = find_suppressed(adapters.ledger.as_ref(), inputs, phones).await?;
        if !held.is_empty() {
            return Err(PolicyRefusal::Suppressed(held).into());
        }
        self.find_approval(&adapters).await?;
        if self.confirm_hours(&adapters, outside).await? {
            singles = singles.into_iter().map(Single::at_any_time).collect();
        }
        let tests = Single::confirm_each(singles, adapters.clone(), consent).await?;
        Ok(AdmittedTests { tests, _counted: self.count_recipients(&adapters).await? })
    }

    /// Counts the recipients once more, while no other process does, and uses an approval that they need.
    async fn count_recipients(&self, adapters: &Adapters) -> Result<Option<Hold>, Error> {
        let (brief, destination) = (&self.inputs.campaign.brief, &self.inputs.destination);
        if !destination.is_live() {
            return Ok(None);
        }
        let ledger = adapters.ledger.as_ref();
        let hold = take_turn(ledger, &brief.name, destination.gateway()).await?;
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
        match approval_of_tests(adapters, self.inputs, (&self.message.list, tests)).await? {
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
        let edition = edition_of_tests(&inputs.campaign.brief, &message.edition);
        let mut runs = adapters.ledger.runs(RunFilter::of_campaign(SingleKind::Test.campaign())).await?;
        let loopback = inputs.destination.is_loopback();
        runs.retain(|run| run.live && run.edition == edition && run.heed.loopback == loopback);
        Ok(adapters.ledger.numbers_sent_to(&runs.iter().map(|run| run.key).collect::<Vec<_>>()).await?)
    }

    /// Whether somebody agreed to send outside of the window; no one is asked while it is open.
    async fn confirm_hours(&self, adapters: &Adapters, outside: &dyn Consent) -> Result<bool, Error> {
        let Some(keeping) = hours_of_tests(self.inputs) else { return Ok(false) };
        let (hours, now) = (on_clock(keeping, adapters.clock), (adapters.clock)());
        let closed = self.phones.iter().find_map(|phone| refuse_closed(&hours, *phone, now).err());
        let Some(PolicyRefusal::OutsideWindow { opens }) = closed else { return Ok(false) };
        confirm(outside, Proposal::OutsideWindow { opens: opens.as_ref() }).await?;
        Ok(true)
    }
}

/// Takes the turn to count the recipients of a campaign's tests, after processes that send some now.
async fn take_turn(ledger: &dyn Ledger, campaign: &str, gateway: &str) -> Result<Hold, Error> {
    let began = Instant::now();
    loop {
        if let Some(hold) = ledger.hold(COUNTING, campaign).await? {
            return Ok(hold);
        }
        if began.elapsed() > PATIENCE {
            let (campaign, gateway) = (SingleKind::Test.campaign().to_owned(), gateway.to_owned());
            return Err(Error::BusyRun { campaign, gateway, since: None });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// How many recipients the tests of an edition may have without an approval.
fn recipient_limit(profile: &Profile) -> u64 {
    let above = profile.approval.as_ref().map_or(MOST, |rule| rule.above.into());
    MOST.min(above)
}
