//! Test messages to the numbers of `serve --test-to`: the page that shows the message, and the order to send it.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::extract::Path;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::decisions::{execute_order, new_order_record};
use super::page_error::{InvalidInput, PageError};
use super::request::{DecisionForm, PageRequest, VerifiedForm, encode_path_segment};
use super::rows::NumbersLink;
use super::runs::run_path;
use crate::web::files::FirstMessages;
use campaign_core::domain::Phone;
use campaign_engine::delivery::SingleKind;
use campaign_ledger::{LedgerError, Run};
use campaign_runs::{EndedSingle, OrderedTest, run_blocking};

/// How long a page waits for the message of a test, which may need a whole list.
const PREVIEW_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a page waits for the answers of the gateway.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// The numbers that may get test messages from the dashboard.
#[derive(Clone, Debug, Default)]
pub struct TestNumbers(BTreeSet<Phone>);

impl TestNumbers {
    /// Allows tests to these numbers. Without numbers, no page offers a test.
    #[must_use]
    pub fn new(numbers: BTreeSet<Phone>) -> Self {
        Self(numbers)
    }

    /// The form field for a number in a session, whose name does not reveal the number.
    fn field_name(csrf_token: &str, phone: Phone) -> String {
        let hash = Sha256::new().chain_update("a test to ").chain_update(csrf_token).chain_update(phone.to_string());
        format!("to-{}", URL_SAFE_NO_PAD.encode(&hash.finalize()[..12]))
    }
}

/// Whether a page offers tests of a run's campaign to its visitor.
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

/// A number of the file.
#[derive(Serialize)]
struct RecipientView {
    field: String,
    to: String,
}

pub(super) async fn confirm_test(mut request: PageRequest, Path(name): Path<String>) -> Response {
    let view = build_view(&mut request, &name).await;
    request.respond("pages/test.html", view)
}

async fn build_view(request: &mut PageRequest, name: &str) -> Result<TestPageView, PageError> {
    request.require_decider()?;
    let run = find_run_to_test(request, name).await?;
    let row = parse_row(request.query.get("row"))?;
    let preview = async {
        let _lock = request.pages.checking.lock().await;
        campaign_runs::preview_ordered_test(&request.pages.adapters, &run, row).await
    };
    let preview = tokio::time::timeout(PREVIEW_TIMEOUT, preview).await.map_err(|_| PageError::Later)?;
    let (inputs, tested) = preview?;
    let (row, unmasked) = (tested.row, request.shows_numbers());
    let (campaign, gateway) = (inputs.campaign.brief.name.clone(), inputs.destination.gateway_name().to_owned());
    let read = move || FirstMessages::read_row(&inputs.campaign.brief, inputs.compile_campaign()?, row, unmasked);
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
        message: run_blocking(read).await?.ok(),
        recipients: request.pages.test_numbers.0.iter().map(recipient).collect(),
        numbers: NumbersLink::for_page(request, &format!("{path}/test?row={row}")),
        path,
    })
}

/// Sends the test to the chosen numbers.
pub(super) async fn send_test(
    Path(name): Path<String>,
    DecisionForm(VerifiedForm { mut request, fields }): DecisionForm,
) -> Response {
    let done = async {
        let run = find_run_to_test(&mut request, &name).await?;
        let row = parse_row(fields.get("row"))?;
        let is_chosen = |phone: &&Phone| fields.get(&TestNumbers::field_name(&request.csrf_token, **phone)).is_some();
        let recipients: Vec<Phone> = request.pages.test_numbers.0.iter().filter(is_chosen).copied().collect();
        if recipients.is_empty() {
            return Err(PageError::InvalidInput(InvalidInput::Recipients));
        }
        let (adapters, interrupt) = (request.pages.adapters.clone(), request.pages.sending.subscribe());
        let (order, ordered) = (new_order_record(&request, "test", run.name()), OrderedTest { row, recipients });
        let send = async move { campaign_runs::send_ordered_test(adapters, &run, ordered, interrupt).await };
        let sent = execute_order(&request, order, send, |_: &Vec<EndedSingle>| None);
        // The order continues after the response; its outcome is in the action log.
        let Ok(sent) = tokio::time::timeout(SEND_TIMEOUT, sent).await else {
            return Ok(format!("{}?done=testing", run_path(&name)));
        };
        let sent = sent?;
        // The page of the run with the test messages shows their states.
        let page = sent.last().map_or_else(|| encode_path_segment(&name), |last| encode_path_segment(&last.run.name()));
        Ok(format!("/runs/{page}?done=test"))
    };
    let done = done.await;
    request.respond_to_order(done)
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
