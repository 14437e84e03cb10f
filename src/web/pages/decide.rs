//! Decisions: each by the rules of its command, under the name of the session, and kept before it is done.

use std::future::Future;

use axum::extract::Path;
use axum::response::Response;

use super::fields::encode_path_segment;
use super::look::PageRequest;
use super::orders::{OrderLog, OrderOutcome, OrderRecord as Kept};
use super::refusal::{InvalidInput, PageError};
use super::told::{DecisionForm, VerifiedForm};
use crate::audience::parse_phone_number;
use crate::domain::RowSet;
use crate::ledger::{Additions, LedgerError, OptOut, Run};
use crate::report::{IN_DOUBT_STATES, RunView, is_owned};
use crate::runs::{
    self, DoubtDecision, OptOutTerms, Resolution, RowChoice, ScheduleOrder, apply_schedule_order, find_schedule,
    run_blocking,
};

/// The longest reason that somebody may give.
const MAX_REASON_LENGTH: usize = 500;

/// Asks the process that sends a run to stop after what is in flight.
pub(super) async fn stop_run(
    Path(name): Path<String>,
    DecisionForm(VerifiedForm { mut look, .. }): DecisionForm,
) -> Response {
    let done = async {
        let run = look.find_run(&name).await?;
        let (order, ledger) = (begin_order(&look, "stop", run.name()), look.pages.adapters.ledger.clone());
        let nothing_to_do = |stopping: &bool| (!stopping).then_some("the run is not being sent");
        let stop = async move { runs::stop_run(ledger.as_ref(), &run).await };
        let stopping = carry_out(&look, order, stop, nothing_to_do).await?;
        Ok(format!("/runs/{}?done={}", encode_path_segment(&name), if stopping { "stop" } else { "not-sending" }))
    };
    let done = done.await;
    look.respond_to_order(done)
}

/// Records what somebody decided about rows in doubt.
pub(super) async fn resolve_rows(
    Path(name): Path<String>,
    DecisionForm(VerifiedForm { mut look, fields }): DecisionForm,
) -> Response {
    let done = async {
        let decision = match fields.get("decision") {
            Some("sent") => DoubtDecision::Sent,
            Some("not-sent") => DoubtDecision::NotSent,
            Some("send-again") => DoubtDecision::SendAgain,
            _ => return Err(PageError::InvalidInput(InvalidInput::Decision)),
        };
        let run = look.find_run(&name).await?;
        let rows = match fields.get("row") {
            Some(row) => RowChoice::Rows(row.parse::<RowSet>().map_err(|_| PageError::Unknown)?),
            None => RowChoice::Waiting,
        };
        let typed = fields.get("count").and_then(|count| count.replace([' ', '\u{a0}', '\u{202f}'], "").parse().ok());
        check_typed_count(&look, &run, &rows, typed).await?;
        let why = fields.get("why").map(|why| why.chars().take(MAX_REASON_LENGTH).collect());
        let by = look.visitor.name.clone();
        let order = begin_order(&look, fields.get("decision").unwrap_or_default(), run.name());
        let resolution = Resolution { rows, decision, by, why, duplicates: typed };
        let (adapters, key) = (look.pages.adapters.clone(), run.key);
        let resolve = async move { runs::resolve_doubts(&adapters, run, &resolution).await };
        carry_out(&look, order, resolve, |_| None).await?;
        look.pages.watched.invalidate(key);
        let row = fields.get("row").map(|row| format!("/rows/{}", encode_path_segment(row))).unwrap_or_default();
        Ok(format!("/runs/{}{row}?done=resolve", encode_path_segment(&name)))
    };
    let done = done.await;
    look.respond_to_order(done)
}

/// Refuses a number that is another one than that of the rows, before anything is taken: also where the command would not ask
/// for one. The number is compared once more where the decision is made.
async fn check_typed_count(
    look: &PageRequest,
    run: &Run,
    rows: &RowChoice,
    typed: Option<u64>,
) -> Result<(), PageError> {
    let about = match rows {
        RowChoice::Waiting => {
            let owned = is_owned(look.ledger(), run).await?;
            let view = RunView::load(look.ledger(), run.clone(), owned).await?;
            IN_DOUBT_STATES.into_iter().map(|state| view.counts.get(state)).sum()
        }
        RowChoice::Rows(_) | RowChoice::File(_) => 1,
    };
    // Where nothing waits, what decides says so.
    if typed == Some(about) || about == 0 {
        Ok(())
    } else {
        Err(PageError::InvalidInput(InvalidInput::Count { rows: about }))
    }
}

/// Has nothing of a schedule fire.
pub(super) async fn pause_schedule(
    Path(name): Path<String>,
    DecisionForm(VerifiedForm { look, .. }): DecisionForm,
) -> Response {
    let done = order_schedule(&look, &name, "pause", ScheduleOrder::Pause).await;
    look.respond_to_order(done)
}

/// Has a schedule fire again from now on.
pub(super) async fn resume_schedule(
    Path(name): Path<String>,
    DecisionForm(VerifiedForm { look, .. }): DecisionForm,
) -> Response {
    let since = look.pages.now();
    let done = order_schedule(&look, &name, "resume", ScheduleOrder::Resume { since }).await;
    look.respond_to_order(done)
}

async fn order_schedule(look: &PageRequest, name: &str, word: &str, order: ScheduleOrder) -> Result<String, PageError> {
    find_schedule(look.ledger(), name).await?.ok_or(PageError::Unknown)?;
    let (ledger, schedule) = (look.pages.adapters.ledger.clone(), name.to_owned());
    let change = async move { apply_schedule_order(ledger.as_ref(), &schedule, order).await };
    carry_out(look, begin_order(look, word, name.to_owned()), change, |()| None).await?;
    Ok(format!("/?done={word}"))
}

/// Puts a number on the suppression list.
pub(super) async fn suppress_number(DecisionForm(VerifiedForm { look, fields }): DecisionForm) -> Response {
    let done = async {
        let typed = fields.get("phone").unwrap_or_default();
        let international = || parse_phone_number(&format!("+{}", typed.trim_start_matches('+')), None);
        let phone = parse_phone_number(typed, None)
            .or_else(|_| international())
            .map_err(|_| PageError::InvalidInput(InvalidInput::Phone))?;
        let reason = fields.get("why").map(|why| why.chars().take(MAX_REASON_LENGTH).collect());
        let order = begin_order(&look, "suppress", phone.format_masked());
        let terms = OptOutTerms { reason, by: Some(look.visitor.name.clone()), ..OptOutTerms::default() };
        let (ledger, now) = (look.pages.adapters.ledger.clone(), look.pages.now());
        let suppress = async move { runs::add_opt_out(ledger.as_ref(), phone, &terms, now).await };
        let nothing_to_do = |(_, additions): &(OptOut, Additions)| {
            (additions.added == 0).then_some("the number is already on the list")
        };
        let (_, additions) = carry_out(&look, order, suppress, nothing_to_do).await?;
        look.pages.opt_outs.invalidate().await;
        Ok(format!("/?done={}", if additions.added > 0 { "suppress" } else { "suppressed" }))
    };
    let done = done.await;
    look.respond_to_order(done)
}

/// An order of this session.
fn begin_order(look: &PageRequest, order: &str, of: String) -> Kept {
    Kept::new(look.pages.now(), look.visitor.name.clone(), order, of)
}

/// Records an order, carries it out and records its outcome, even if the browser hangs up. The server waits for it before it ends.
///
/// `nothing_to_do` says why there was nothing to do.
async fn carry_out<T: Send + 'static>(
    look: &PageRequest,
    order: Kept,
    work: impl Future<Output = Result<T, runs::Error>> + Send + 'static,
    nothing_to_do: impl Fn(&T) -> Option<&'static str> + Send + 'static,
) -> Result<T, PageError> {
    let orders = look.pages.orders.clone();
    let carried_out = look.pages.work.spawn(async move {
        tracing::info!("{} requested on the dashboard: {} {}", order.by, order.order, order.of);
        record_order(&orders, order.clone()).await?;
        let (done, ended) = match work.await {
            Ok(done) => {
                let unchanged = nothing_to_do(&done);
                let outcome = unchanged.map_or(OrderOutcome::Done, |_| OrderOutcome::Unchanged);
                (Ok(done), order.with_outcome(outcome, unchanged))
            }
            Err(error) => {
                let outcome = if is_failure(&error) { OrderOutcome::Failed } else { OrderOutcome::Refused };
                let (refusal, reason) = PageError::with_reason(error);
                (Err(refusal), order.with_outcome(outcome, Some(&reason)))
            }
        };
        if let Err(PageError::Failed(why)) = record_order(&orders, ended).await {
            tracing::warn!("cannot record the outcome of an action: {why}");
        }
        done
    });
    let carried_out = carried_out.await;
    carried_out.map_err(|error| PageError::Failed(format!("an action ended early; this is a bug: {error}")))?
}

/// Whether the ledger failed, so that the order might be done.
fn is_failure(error: &runs::Error) -> bool {
    matches!(error, runs::Error::Storage(_) | runs::Error::Internal(_))
        || matches!(error, runs::Error::Ledger(error) if !matches!(error, LedgerError::Purged { .. }))
}

/// Adds a line to the log of orders.
async fn record_order(orders: &OrderLog, order: Kept) -> Result<(), PageError> {
    let orders = orders.clone();
    Ok(run_blocking(move || orders.append(&order)).await??)
}
