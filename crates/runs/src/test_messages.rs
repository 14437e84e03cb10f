//! Test messages of a campaign: a row's message, and the checks before it is sent to test recipients.
//!
//! The checks cover opt-outs, consents, the number of test recipients per edition, the sending hours, and the
//! confirmation.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::find::require_campaign_file;
use super::plan::find_test_approval;
use super::policy::{PolicyRefusal, build_hours, find_suppressed, refuse_closed_window, test_hours};
use super::ports::{ConsentInAdvance, confirm};
use super::recipient_consent::refuse_tests_without_consent;
use super::{
    Adapters, ConfirmedOperation, Consent, ConsentRefusal, EndedOperation, Error, Inputs, ListSurvey, PlanRefusal,
    Proposal, RunObserver, SingleOperation, run_blocking, survey_list,
};
use campaign_core::domain::{MessageContent, ParseRowsError, Phone, Row, RowSet};
use campaign_engine::delivery::{Interrupt, SingleKind};
use campaign_engine::report::{RowPreview, preview_rows};
use campaign_gateway::BoxFuture;
use campaign_ledger::{
    Approval, CampaignLock, ExcludedRows, Ledger, NumberFilter, NumberSet, RowState, Run, RunFilter,
};
use campaign_manifest::{CampaignBrief, CampaignDay, Profile};

/// The message of a row.
#[derive(Debug)]
pub struct TestMessage {
    /// The row that the [`TestRow`] selected.
    pub row: Row,
    /// The content, rendered with the values of the row.
    pub content: MessageContent<Cow<'static, str>>,
    /// The campaign's edition; empty if it has none.
    pub(super) edition: String,
    /// The survey of the list.
    pub(super) list: ListSurvey,
}

/// The edition of a campaign's shared test runs: the campaign's name, with the campaign's edition if there is one.
pub(super) fn test_edition(brief: &CampaignBrief, edition: &str) -> String {
    match edition {
        "" => brief.name.clone(),
        // Campaign names contain no colon, so the combined name is unambiguous.
        edition => format!("{}:{edition}", brief.name),
    }
}

/// The row whose message a test sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestRow {
    /// The row with this number, even if its recipient already has the message.
    Number(u32),
    /// The first row that would be sent.
    FirstToSend,
    /// The first row that would be sent or, if there is none, the first skipped row.
    First,
}

/// Loads the message of a row.
///
/// # Errors
/// If the inputs are wrong, the row has no message, or no message would be sent.
pub async fn load_test_message(
    inputs: &Arc<Inputs>,
    row: TestRow,
    ledger: Option<&dyn Ledger>,
    observer: &RunObserver,
) -> Result<TestMessage, Error> {
    let rows = match row {
        TestRow::Number(row) => Some(row.to_string().parse::<RowSet>()),
        TestRow::FirstToSend | TestRow::First => None,
    };
    let rows = rows.transpose().map_err(|error: ParseRowsError| Error::Input(error.to_string()))?;
    let list = survey_list(inputs, ledger, observer).await?;
    let (survey, opened) = (&list.survey, Arc::clone(inputs));
    let edition = run_blocking(move || Ok::<_, Error>(opened.compile_campaign()?.edition)).await??;
    let rows = match (rows, survey.examples.first()) {
        (Some(rows), _) => rows,
        (None, Some(first)) => {
            let (row, content) = (first.row, first.content.clone());
            return Ok(TestMessage { row, content, edition, list });
        }
        (None, None) => {
            let mut left_out = survey.left_out.iter_by_row();
            let skipped = left_out.find(|(_, state, _)| *state == RowState::Skipped && row == TestRow::First);
            let (row, ..) = skipped.ok_or_else(|| {
                Error::Input("no row gets a message now; add `--row N` to choose the row to test".to_owned())
            })?;
            RowSet::from(row)
        }
    };
    let row = rows.last_row();
    if row > survey.last_row {
        return Err(Error::NoSuchRow { row, last: survey.last_row });
    }
    if let Some((RowState::Invalid, reason)) = survey.left_out.find_reason(row) {
        return Err(Error::Input(format!("row {row} has no message: {reason}")));
    }
    let shared = Arc::clone(inputs);
    let content = run_blocking(move || render_row(&shared, &rows)).await??;
    let content = content.ok_or_else(|| match survey.left_out.find_reason(row) {
        Some((_, reason)) => Error::Input(format!("row {row} has no message: {reason}")),
        None => Error::Input(format!("row {row} is blank, so it has no message")),
    })?;
    Ok(TestMessage { row, content, edition, list })
}

/// Renders the message of the only row in `rows`. `None` if the row is blank or does not meet the condition `where`.
fn render_row(inputs: &Inputs, rows: &RowSet) -> Result<Option<MessageContent<Cow<'static, str>>>, Error> {
    let mut message = None;
    let keep = |_, preview: RowPreview<'_>| {
        if let RowPreview::Message { content, .. } = preview {
            message = Some(content.to_owned_texts());
        }
    };
    // A test can use the row of a skipped recipient, so no rows are excluded.
    preview_rows(&mut inputs.compile_campaign()?, &ExcludedRows::default(), Some(rows), 1, keep)
        .map_err(|finding| Error::Findings(vec![*finding]))?;
    Ok(message)
}

/// The maximum number of test recipients of an edition without an approval.
const MAX_TEST_RECIPIENTS: u64 = 10;

/// The lock for counting the recipients of an edition's tests. No campaign has this name.
const COUNT_LOCK: &str = "campaign.test-recipients";

/// The maximum time to wait for the tests of other processes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval between attempts to take the lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Test messages of one row to several numbers.
pub struct TestOrder<'o> {
    /// The campaign.
    pub inputs: &'o Arc<Inputs>,
    /// The message of the row.
    pub message: &'o TestMessage,
    /// The recipients, each once.
    pub phones: &'o [Phone],
}

/// Admitted test messages, one for each recipient.
pub struct AdmittedTests {
    /// The messages, in the order of the recipients.
    pub tests: Vec<ConfirmedOperation>,
    /// The lock that is held until all messages are sent, so that tests of other processes count their recipients.
    _lock: Option<CampaignLock>,
}

impl TestOrder<'_> {
    /// Admits either all test messages or none. `consent` confirms sending, and `outside_window` confirms sending
    /// outside of the window.
    ///
    /// # Errors
    /// If a recipient opted out, the edition would have too many test recipients, the window is closed and
    /// `outside_window` does not confirm, or `consent` does not confirm.
    pub async fn admit_all(
        &self,
        adapters: Adapters,
        consent: &dyn Consent,
        outside_window: &dyn Consent,
    ) -> Result<AdmittedTests, Error> {
        let Self { inputs, message, phones } = *self;
        let operations = phones.iter().map(|phone| SingleOperation::for_test(message, *phone, inputs));
        let mut operations = operations.collect::<Result<Vec<_>, _>>()?;
        let suppressed = find_suppressed(adapters.ledger.as_ref(), inputs, phones).await?;
        if !suppressed.is_empty() {
            return Err(PolicyRefusal::Suppressed(suppressed, inputs.campaign.brief.purpose).into());
        }
        refuse_tests_without_consent(inputs, phones, (adapters.clock)()).await?;
        self.find_approval(&adapters).await?;
        if self.confirm_outside_window(&adapters, outside_window).await? {
            operations = operations.into_iter().map(SingleOperation::without_hours).collect();
        }
        let tests = SingleOperation::confirm_all(operations, adapters.clone(), consent).await?;
        Ok(AdmittedTests { tests, _lock: self.lock_and_count_recipients(&adapters).await? })
    }

    /// Takes the lock for counting test recipients, counts the recipients again, and uses an approval if the count
    /// requires one. Returns the lock, or `None` for a rehearsal.
    async fn lock_and_count_recipients(&self, adapters: &Adapters) -> Result<Option<CampaignLock>, Error> {
        let (brief, destination) = (&self.inputs.campaign.brief, &self.inputs.destination);
        if !destination.is_live() {
            return Ok(None);
        }
        let ledger = adapters.ledger.as_ref();
        let lock = lock_recipient_count(ledger, &brief.name, destination.gateway_name()).await?;
        if let Some(approval) = self.find_approval(adapters).await?
            && !ledger.use_approval(&approval.token, None).await?
        {
            return Err(Error::Plan(PlanRefusal::Used { digest: approval.digest }));
        }
        Ok(Some(lock))
    }

    /// Finds the approval for more test recipients than the edition can have without an approval. Returns `None` if no
    /// approval is needed.
    ///
    /// # Errors
    /// If an approval is needed and there is none.
    async fn find_approval(&self, adapters: &Adapters) -> Result<Option<Approval>, Error> {
        let Some(profile) = self.inputs.destination.profile() else { return Ok(None) };
        let before = self.find_earlier_recipients(adapters).await?;
        let new = self.phones.iter().filter(|phone| !before.contains(**phone)).count() as u64;
        let (number, limit) = (before.len() + new, recipient_limit(profile));
        if new == 0 || number <= limit {
            return Ok(None);
        }
        if profile.approval.is_none() {
            return Err(PolicyRefusal::TooManyTests { number, limit }.into());
        }
        let TestMessage { list, row, .. } = self.message;
        match find_test_approval(adapters, self.inputs, list, *row, self.phones).await? {
            Ok(approval) => Ok(Some(approval)),
            Err(digest) => {
                let gateway = profile.name.clone();
                Err(PolicyRefusal::UnapprovedTests { digest, gateway, number, limit }.into())
            }
        }
    }

    /// Finds the recipients of earlier tests of the edition. Tests through gateways on this machine are counted
    /// separately.
    async fn find_earlier_recipients(&self, adapters: &Adapters) -> Result<NumberSet, Error> {
        let Self { inputs, message, .. } = self;
        let edition = test_edition(&inputs.campaign.brief, &message.edition);
        let mut runs = adapters.ledger.list_runs(RunFilter::for_campaign(SingleKind::Test.campaign_name())).await?;
        let loopback = inputs.destination.is_loopback();
        runs.retain(|run| run.live && run.edition == edition && run.suppression.loopback == loopback);
        Ok(adapters
            .ledger
            .load_numbers(NumberFilter::Sent(&runs.iter().map(|run| run.key).collect::<Vec<_>>()))
            .await?)
    }

    /// Asks for confirmation if the window is closed, and returns whether sending outside of the window was confirmed.
    /// An open window needs no confirmation.
    async fn confirm_outside_window(&self, adapters: &Adapters, consent: &dyn Consent) -> Result<bool, Error> {
        let Some(rules) = test_hours(self.inputs) else { return Ok(false) };
        let (hours, now) = (build_hours(rules, adapters.clock), (adapters.clock)());
        let closed = self.phones.iter().find_map(|phone| refuse_closed_window(&hours, *phone, now).err());
        let Some(PolicyRefusal::OutsideWindow { opens }) = closed else { return Ok(false) };
        confirm(consent, Proposal::OutsideWindow { opens: opens.as_ref() }).await?;
        Ok(true)
    }
}

/// A test message that a person orders on the dashboard.
#[derive(Clone, Debug)]
pub struct RequestedTest {
    /// The row. `None` for the first row that would be sent or, if there is none, the first skipped row.
    pub row: Option<u32>,
    /// The recipients, each once.
    pub recipients: Vec<Phone>,
}

/// Loads the campaign of a run from its current file, and the test message of this row, or else of the first row.
///
/// # Errors
/// If the inputs are wrong, or the row has no message.
pub async fn preview_requested_test(
    adapters: &Adapters,
    run: &Run,
    row: Option<u32>,
) -> Result<(Arc<Inputs>, TestMessage), Error> {
    if SingleKind::from_run(run).is_some() {
        return Err(Error::SingleRun { run: run.name() });
    }
    let file = require_campaign_file(adapters.ledger.as_ref(), run).await?;
    let (gateway, profiles, now) = (run.gateway.clone(), adapters.profiles.clone(), (adapters.clock)());
    let load = move || Inputs::load(&file, Some(&gateway), &profiles, CampaignDay::Of(now));
    let inputs = Arc::new(run_blocking(load).await??);
    let row = row.map_or(TestRow::First, TestRow::Number);
    let message = load_test_message(&inputs, row, Some(adapters.ledger.as_ref()), &adapters.observer).await?;
    Ok((inputs, message))
}

/// Sends a test as `campaign test` does. The caller must have checked that the recipients are permitted. A message
/// outside of the window is refused. After a failure that stops a test, the remaining tests are not sent.
///
/// # Errors
/// If nothing was sent, or the ledger cannot be written.
pub async fn send_requested_test(
    adapters: Adapters,
    run: &Run,
    RequestedTest { row, recipients }: RequestedTest,
    interrupt: watch::Receiver<Interrupt>,
) -> Result<Vec<EndedOperation>, Error> {
    let (inputs, message) = preview_requested_test(&adapters, run, row).await?;
    let order = TestOrder { inputs: &inputs, message: &message, phones: &recipients };
    let mut admitted = order.admit_all(adapters, &TestsInAdvance, &ConsentInAdvance).await?;
    let mut ended = Vec::new();
    for test in std::mem::take(&mut admitted.tests) {
        let sent = test.send(interrupt.clone()).await?;
        let must_stop = sent.stop.is_some();
        ended.push(sent);
        if must_stop {
            break;
        }
    }
    Ok(ended)
}

/// The consent of a person who ordered a test on a page that showed the message.
struct TestsInAdvance;

impl Consent for TestsInAdvance {
    fn can_confirm(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, proposal: Proposal<'a>) -> BoxFuture<'a, Result<(), ConsentRefusal>> {
        let is_covered = matches!(proposal, Proposal::Single { operation: SingleKind::Test, .. });
        Box::pin(async move { if is_covered { Ok(()) } else { Err(ConsentRefusal::NoTerminal) } })
    }
}

/// Takes the lock for counting test recipients, after waiting for processes that are sending tests.
async fn lock_recipient_count(ledger: &dyn Ledger, campaign: &str, gateway: &str) -> Result<CampaignLock, Error> {
    let began = Instant::now();
    loop {
        if let Some(lock) = ledger.acquire_campaign_lock(COUNT_LOCK, campaign).await? {
            return Ok(lock);
        }
        if began.elapsed() > LOCK_TIMEOUT {
            let (campaign, gateway) = (SingleKind::Test.campaign_name().to_owned(), gateway.to_owned());
            return Err(Error::BusyRun { campaign, gateway, since: None });
        }
        tokio::time::sleep(LOCK_POLL_INTERVAL).await;
    }
}

/// The maximum number of test recipients that an edition can have without an approval.
fn recipient_limit(profile: &Profile) -> u64 {
    let above = profile.approval.as_ref().map_or(MAX_TEST_RECIPIENTS, |rule| rule.above.into());
    MAX_TEST_RECIPIENTS.min(above)
}
