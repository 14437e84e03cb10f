//! Messages that the dashboard sends: retries of rejected and unsent messages, and test messages to the numbers of
//! `serve --test-to`. For each, a page shows what will be sent, and a form starts the action.
//!
//! The server sends a retry in the background, as it sends occurrences of schedules. A shutdown lets requests in flight
//! finish; the remaining messages are sent when the run is resumed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use super::decisions::{execute_action, new_action_record, parse_typed_count};
use super::page_error::{InvalidInput, PageError};
use super::request::{DecisionForm, PageRequest, VerifiedForm, encode_path_segment};
use super::rows::{NumbersLink, translate_reason};
use super::runs::run_path;
use crate::web::files::FirstMessages;
use crate::web::words::PageWords;
use campaign_core::domain::{PermanentError, Phone, RowSet, Stage};
use campaign_engine::delivery::SingleKind;
use campaign_engine::report::{RunStatus, RunView};
use campaign_ledger::{LedgerError, Run};
use campaign_manifest::Campaign;
use campaign_runs::{
    Adapters, ConfirmedRetry, DEFAULT_RETRY_STATES, EndedOperation, RequestedTest, RetriedError, RetryPreview,
    RunEvent, open_copies, run_blocking,
};

/// The time for which a page waits for the preview of a retry or test, which might need a whole list.
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(20);
/// The time for which a page waits until the first message is about to be sent.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of reasons in the table.
const MAX_REASONS: usize = 12;

/// The messages of a retry, and the form that starts the retry.
#[derive(Serialize)]
struct RetryPageView {
    run: String,
    path: String,
    messages: u64,
    gateway: String,
    channels: String,
    /// The maximum cost, if the profile has prices.
    cost: Option<String>,
    reasons: Vec<RetryReasonView>,
    /// The number of messages with other reasons.
    others: u64,
    /// The number of messages that will probably be rejected again.
    lasting: u64,
    /// The number of rows that a run would skip now.
    guarded: u64,
    /// The reasons of the guarded rows, with the number of rows.
    guarded_reasons: String,
    samples: Option<FirstMessages>,
}

/// The messages with the same reason.
#[derive(Serialize)]
struct RetryReasonView {
    state: &'static str,
    text: String,
    rows: u64,
}

/// Counts the messages of a run that a retry on the dashboard might send again. Returns `None` if the run cannot be
/// retried.
pub(super) fn count_retriable(view: &RunView) -> Option<u64> {
    let RunView { run, status, counts, .. } = view;
    let rows: u64 = DEFAULT_RETRY_STATES.iter().map(|state| counts.get(*state)).sum();
    let is_retriable = *status == RunStatus::Finished && run.live && run.purged_at.is_none();
    (is_retriable && rows > 0 && SingleKind::from_run(run).is_none()).then_some(rows)
}

pub(super) async fn confirm_retry(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = async {
        request.require_decider()?;
        let run = find_run_to_retry(&mut request, &name).await?;
        let preview = async {
            let _lock = request.pages.checking.lock().await;
            campaign_runs::preview_retry(&request.pages.adapters, &run).await
        };
        let preview = tokio::time::timeout(PREVIEW_TIMEOUT, preview).await.map_err(|_| PageError::Later)??;
        let samples = load_samples(&request, &run, &preview).await;
        Ok(build_retry_view(request.words(), &run, preview, samples))
    };
    let view = view.await;
    request.respond("pages/retry.html", view)
}

fn build_retry_view(
    words: &PageWords,
    run: &Run,
    preview: RetryPreview,
    samples: Option<FirstMessages>,
) -> RetryPageView {
    let RetryPreview { inputs, messages, mut errors, skipped, cost, samples: _ } = preview;
    errors.sort_by_key(|error| std::cmp::Reverse(error.rows));
    let is_lasting = |error: &&RetriedError| PermanentError::classify(&error.text).is_some();
    let lasting = errors.iter().filter(is_lasting).map(|error| error.rows).sum();
    let others = errors.iter().skip(MAX_REASONS).map(|error| error.rows).sum();
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.as_deref());
    let guarded_reasons =
        skipped.excluded.iter().map(|(why, rows)| format!("{} ({rows})", translate_reason(words, why)));
    let guarded_reasons: Vec<String> = guarded_reasons.collect();
    let reason = |RetriedError { state, text, rows }: RetriedError| RetryReasonView { state: state.name(), text, rows };
    RetryPageView {
        run: run.name(),
        path: run_path(&run.name()),
        messages,
        gateway: run.gateway.clone(),
        channels: describe_channels(words, &inputs.campaign),
        cost: cost.map(|cost| words.format_cost(&cost, currency)),
        reasons: errors.into_iter().take(MAX_REASONS).map(reason).collect(),
        others,
        lasting,
        guarded: skipped.count_excluded(),
        guarded_reasons: guarded_reasons.join(", "),
        samples,
    }
}

/// Describes in which order a campaign tries channels; variants with the same order are described once.
fn describe_channels(words: &PageWords, campaign: &Campaign) -> String {
    let mut orders: Vec<String> = Vec::new();
    for arm in campaign.brief.list_arms() {
        let names = arm.content.stages.iter().map(|stage| Stage::channel(stage).name());
        let names: Vec<&str> = names.map(|name| words.item_name("channel", name).unwrap_or(name)).collect();
        let order = names.join(" → ");
        if !orders.contains(&order) {
            orders.push(order);
        }
    }
    orders.join("; ")
}

/// Loads the sample messages of a retry from the run's copies. Returns `None` if they cannot be read: the page is then
/// shown without them.
async fn load_samples(request: &PageRequest, run: &Run, preview: &RetryPreview) -> Option<FirstMessages> {
    let rows: Vec<String> = preview.samples.iter().map(ToString::to_string).collect();
    let rows: RowSet = rows.join(",").parse().ok()?;
    let (frozen, prepared) = open_copies(request.ledger(), run).await.ok()?;
    run_blocking(move || FirstMessages::read_rows(&frozen.brief, prepared, &rows, false)).await.ok()?.ok()
}

/// Starts a retry, and waits for a limited time until it begins or is refused.
pub(super) async fn retry_run(
    Path(name): Path<String>,
    DecisionForm(VerifiedForm { mut request, fields }): DecisionForm,
) -> Response {
    let result = async {
        let run = find_run_to_retry(&mut request, &name).await?;
        let messages = parse_typed_count(&fields).ok_or(PageError::InvalidInput(InvalidInput::Messages))?;
        let confirmed = ConfirmedRetry { messages, by: request.visitor.name.clone() };
        let action = new_action_record(&request, "retry", run.name());
        let (sending_began, key) = (Arc::new(Notify::new()), run.key);
        let signal = Arc::clone(&sending_began);
        let observer = move |event| {
            if let RunEvent::Retrying { .. } = event {
                signal.notify_one();
            }
        };
        let adapters = Adapters { observer: Arc::new(observer), ..request.pages.adapters.clone() };
        let interrupt = request.pages.sending.subscribe();
        let retry = async move { campaign_runs::send_confirmed_retry(adapters, &run, confirmed, interrupt).await };
        // The action continues after the response; its outcome is in the action log.
        let result = tokio::select! {
            ended = execute_action(&request, action, retry, |_| None) => ended.map(|_| "retry")?,
            () = sending_began.notified() => "retry",
            () = tokio::time::sleep(BEGIN_TIMEOUT) => "retry-preparing",
        };
        request.pages.run_watcher.invalidate(key);
        Ok(format!("/runs/{}?done={result}", encode_path_segment(&name)))
    };
    let result = result.await;
    request.respond_to_action(result)
}

/// Finds the run to retry. Rehearsals can be retried only on the command line.
async fn find_run_to_retry(request: &mut PageRequest, name: &str) -> Result<Run, PageError> {
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    if run.live { Ok(run) } else { Err(PageError::Unknown) }
}

/// The time for which a page waits for the answers of the gateway.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The numbers that may get test messages from the dashboard.
#[derive(Clone, Debug, Default)]
pub struct TestNumbers(BTreeSet<Phone>);

impl TestNumbers {
    /// Allows tests to these phone numbers. Without phone numbers, no page offers a test.
    pub fn new(numbers: BTreeSet<Phone>) -> Self {
        Self(numbers)
    }

    /// Returns the name of the form field for a phone number; the name does not reveal the number.
    fn field_name(csrf_token: &str, phone: Phone) -> String {
        let hash = Sha256::new().chain_update("a test to ").chain_update(csrf_token).chain_update(phone.to_string());
        format!("to-{}", URL_SAFE_NO_PAD.encode(&hash.finalize()[..12]))
    }
}

/// Whether a page offers its visitor a test of a run's campaign.
pub(super) fn offers_test(request: &PageRequest, run: &Run) -> bool {
    let is_campaign = SingleKind::from_run(run).is_none() && run.purged_at.is_none() && !run.shared;
    request.visitor.decides && is_campaign && !request.pages.test_numbers.0.is_empty()
}

/// The message of a test and its possible recipients.
#[derive(Serialize)]
struct TestPageView {
    run: String,
    path: String,
    campaign: String,
    gateway: String,
    row: u32,
    message: Option<FirstMessages>,
    recipients: Vec<RecipientView>,
    numbers: Option<NumbersLink>,
}

/// A possible recipient of the test.
#[derive(Serialize)]
struct RecipientView {
    field: String,
    to: String,
}

pub(super) async fn confirm_test(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_test_view(&mut request, &name).await;
    request.respond("pages/test.html", view)
}

async fn build_test_view(request: &mut PageRequest, name: &str) -> Result<TestPageView, PageError> {
    request.require_decider()?;
    let run = find_run_to_test(request, name).await?;
    let row = parse_row(request.query.get("row"))?;
    let preview = async {
        let _lock = request.pages.checking.lock().await;
        campaign_runs::preview_requested_test(&request.pages.adapters, &run, row).await
    };
    let preview = tokio::time::timeout(PREVIEW_TIMEOUT, preview).await.map_err(|_| PageError::Later)?;
    let (inputs, test) = preview?;
    let (row, unmasked) = (test.row, request.shows_numbers());
    let (campaign, gateway) = (inputs.campaign.brief.name.clone(), inputs.destination.gateway_name().to_owned());
    let read_message =
        move || FirstMessages::read_row(&inputs.campaign.brief, inputs.compile_campaign()?, row, unmasked);
    let recipient = |phone: &Phone| RecipientView {
        field: TestNumbers::field_name(&request.csrf_token, *phone),
        to: request.format_number(*phone),
    };
    let path = run_path(&run.name());
    Ok(TestPageView {
        run: run.name(),
        campaign,
        gateway,
        row: row.get(),
        message: run_blocking(read_message).await?.ok(),
        recipients: request.pages.test_numbers.0.iter().map(recipient).collect(),
        numbers: NumbersLink::for_page(request, &format!("{path}/test?row={row}")),
        path,
    })
}

/// Sends the test to the chosen phone numbers.
pub(super) async fn send_test(
    Path(name): Path<String>,
    DecisionForm(VerifiedForm { mut request, fields }): DecisionForm,
) -> Response {
    let result = async {
        let run = find_run_to_test(&mut request, &name).await?;
        let row = parse_row(fields.get("row"))?;
        let is_chosen = |phone: &&Phone| fields.get(&TestNumbers::field_name(&request.csrf_token, **phone)).is_some();
        let recipients: Vec<Phone> = request.pages.test_numbers.0.iter().filter(is_chosen).copied().collect();
        if recipients.is_empty() {
            return Err(PageError::InvalidInput(InvalidInput::Recipients));
        }
        let (adapters, interrupt) = (request.pages.adapters.clone(), request.pages.sending.subscribe());
        let (action, test) = (new_action_record(&request, "test", run.name()), RequestedTest { row, recipients });
        let send = async move { campaign_runs::send_requested_test(adapters, &run, test, interrupt).await };
        let executed = execute_action(&request, action, send, |_: &Vec<EndedOperation>| None);
        // The action continues after the response; its outcome is in the action log.
        let Ok(sent) = tokio::time::timeout(SEND_TIMEOUT, executed).await else {
            return Ok(format!("{}?done=testing", run_path(&name)));
        };
        let sent = sent?;
        // The page of the run with the test messages shows their states.
        let page = sent.last().map_or_else(|| encode_path_segment(&name), |last| encode_path_segment(&last.run.name()));
        Ok(format!("/runs/{page}?done=test"))
    };
    let result = result.await;
    request.respond_to_action(result)
}

/// Finds the run whose campaign is tested. Fails if the server has no test numbers.
async fn find_run_to_test(request: &mut PageRequest, name: &str) -> Result<Run, PageError> {
    if request.pages.test_numbers.0.is_empty() {
        return Err(PageError::Unknown);
    }
    let run = request.find_run(name).await?;
    LedgerError::refuse_purged(&run)?;
    Ok(run)
}

fn parse_row(typed: Option<&str>) -> Result<Option<u32>, PageError> {
    typed.map(str::parse).transpose().map_err(|_| PageError::InvalidInput(InvalidInput::Row))
}
