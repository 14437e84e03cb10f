//! Decisions: each by the rules of its command, under the name of the session, and kept before it is done.

use std::future::Future;

use axum::extract::Path;
use axum::response::Response;

use super::fields::encoded;
use super::look::Look;
use super::orders::{Order as Kept, OrderOutcome, Orders};
use super::refusal::{Refusal, Wrong};
use super::told::{Order, Told};
use crate::audience::parse;
use crate::domain::RowSet;
use crate::ledger::{Additions, LedgerError, OptOut, Run};
use crate::report::{DOUBTFUL, RunView, is_owned};
use crate::runs::{
    self, Decision, OptOutTerms, Resolution, RowChoice, ScheduleOrder, blocking, change_armed, find_schedule,
};

/// The longest reason that somebody may give.
const WHY: usize = 500;

/// Asks the process that sends a run to stop after what is in flight.
pub(super) async fn stop(Path(name): Path<String>, Order(Told { mut look, .. }): Order) -> Response {
    let done = async {
        let run = look.run(&name).await?;
        let (order, ledger) = (begun(&look, "stop", run.name()), look.pages.adapters.ledger.clone());
        let nothing_to_do = |stopping: &bool| (!stopping).then_some("the run is not being sent");
        let stop = async move { runs::stop(ledger.as_ref(), &run).await };
        let stopping = carry_out(&look, order, stop, nothing_to_do).await?;
        Ok(format!("/runs/{}?done={}", encoded(&name), if stopping { "stop" } else { "not-sending" }))
    };
    let done = done.await;
    look.done(done)
}

/// Records what somebody decided about rows in doubt.
pub(super) async fn resolve(Path(name): Path<String>, Order(Told { mut look, fields }): Order) -> Response {
    let done = async {
        let decision = match fields.get("decision") {
            Some("sent") => Decision::Sent,
            Some("not-sent") => Decision::NotSent,
            Some("send-again") => Decision::SendAgain,
            _ => return Err(Refusal::Wrong(Wrong::Decision)),
        };
        let run = look.run(&name).await?;
        let rows = match fields.get("row") {
            Some(row) => RowChoice::Rows(row.parse::<RowSet>().map_err(|_| Refusal::Unknown)?),
            None => RowChoice::Waiting,
        };
        let typed = fields.get("count").and_then(|count| count.replace([' ', '\u{a0}', '\u{202f}'], "").parse().ok());
        refuse_other_count(&look, &run, &rows, typed).await?;
        let why = fields.get("why").map(|why| why.chars().take(WHY).collect());
        let by = look.visitor.name.clone();
        let order = begun(&look, fields.get("decision").unwrap_or_default(), run.name());
        let resolution = Resolution { rows, decision, by, why, duplicates: typed };
        let (adapters, key) = (look.pages.adapters.clone(), run.key);
        let resolve = async move { runs::resolve(&adapters, run, &resolution).await };
        carry_out(&look, order, resolve, |_| None).await?;
        look.pages.watched.changed(key);
        let row = fields.get("row").map(|row| format!("/rows/{}", encoded(row))).unwrap_or_default();
        Ok(format!("/runs/{}{row}?done=resolve", encoded(&name)))
    };
    let done = done.await;
    look.done(done)
}

/// Refuses a number that is another one than that of the rows, before anything is taken: also where the command would not ask
/// for one. The number is compared once more where the decision is made.
async fn refuse_other_count(look: &Look, run: &Run, rows: &RowChoice, typed: Option<u64>) -> Result<(), Refusal> {
    let about = match rows {
        RowChoice::Waiting => {
            let owned = is_owned(look.ledger(), run).await?;
            let view = RunView::read(look.ledger(), run.clone(), owned).await?;
            DOUBTFUL.into_iter().map(|state| view.counts.get(state)).sum()
        }
        RowChoice::Rows(_) | RowChoice::File(_) => 1,
    };
    // Where nothing waits, what decides says so.
    if typed == Some(about) || about == 0 { Ok(()) } else { Err(Refusal::Wrong(Wrong::Count { rows: about })) }
}

/// Has nothing of a schedule fire.
pub(super) async fn pause(Path(name): Path<String>, Order(Told { look, .. }): Order) -> Response {
    let done = order_schedule(&look, &name, "pause", ScheduleOrder::Pause).await;
    look.done(done)
}

/// Has a schedule fire again from now on.
pub(super) async fn resume(Path(name): Path<String>, Order(Told { look, .. }): Order) -> Response {
    let since = look.pages.now();
    let done = order_schedule(&look, &name, "resume", ScheduleOrder::Resume { since }).await;
    look.done(done)
}

async fn order_schedule(look: &Look, name: &str, word: &str, order: ScheduleOrder) -> Result<String, Refusal> {
    find_schedule(look.ledger(), name).await?.ok_or(Refusal::Unknown)?;
    let (ledger, schedule) = (look.pages.adapters.ledger.clone(), name.to_owned());
    let change = async move { change_armed(ledger.as_ref(), &schedule, order).await };
    carry_out(look, begun(look, word, name.to_owned()), change, |()| None).await?;
    Ok(format!("/?done={word}"))
}

/// Puts a number on the suppression list.
pub(super) async fn suppress(Order(Told { look, fields }): Order) -> Response {
    let done = async {
        let typed = fields.get("phone").unwrap_or_default();
        let international = || parse(&format!("+{}", typed.trim_start_matches('+')), None);
        let phone = parse(typed, None).or_else(|_| international()).map_err(|_| Refusal::Wrong(Wrong::Phone))?;
        let reason = fields.get("why").map(|why| why.chars().take(WHY).collect());
        let order = begun(&look, "suppress", phone.masked());
        let terms = OptOutTerms { reason, by: Some(look.visitor.name.clone()), ..OptOutTerms::default() };
        let (ledger, now) = (look.pages.adapters.ledger.clone(), look.pages.now());
        let suppress = async move { runs::suppress(ledger.as_ref(), phone, &terms, now).await };
        let nothing_to_do = |(_, additions): &(OptOut, Additions)| {
            (additions.added == 0).then_some("the number is already on the list")
        };
        let (_, additions) = carry_out(&look, order, suppress, nothing_to_do).await?;
        look.pages.opt_outs.changed().await;
        Ok(format!("/?done={}", if additions.added > 0 { "suppress" } else { "suppressed" }))
    };
    let done = done.await;
    look.done(done)
}

/// An order of this session.
fn begun(look: &Look, order: &str, of: String) -> Kept {
    Kept::begun(look.pages.now(), look.visitor.name.clone(), order, of)
}

/// Records an order, carries it out and records its outcome, even if the browser hangs up. The server waits for it before it ends.
///
/// `nothing_to_do` says why there was nothing to do.
async fn carry_out<T: Send + 'static>(
    look: &Look,
    order: Kept,
    work: impl Future<Output = Result<T, runs::Error>> + Send + 'static,
    nothing_to_do: impl Fn(&T) -> Option<&'static str> + Send + 'static,
) -> Result<T, Refusal> {
    let orders = look.pages.orders.clone();
    let carried_out = look.pages.work.spawn(async move {
        tracing::info!("{} requested on the dashboard: {} {}", order.by, order.order, order.of);
        keep(&orders, order.clone()).await?;
        let (done, ended) = match work.await {
            Ok(done) => {
                let unchanged = nothing_to_do(&done);
                let outcome = unchanged.map_or(OrderOutcome::Done, |_| OrderOutcome::Unchanged);
                (Ok(done), order.ended(outcome, unchanged))
            }
            Err(error) => {
                let outcome = if is_failure(&error) { OrderOutcome::Failed } else { OrderOutcome::Refused };
                let (refusal, reason) = Refusal::with_reason(error);
                (Err(refusal), order.ended(outcome, Some(&reason)))
            }
        };
        if let Err(Refusal::Failed(why)) = keep(&orders, ended).await {
            tracing::warn!("cannot record the outcome of an action: {why}");
        }
        done
    });
    let carried_out = carried_out.await;
    carried_out.map_err(|error| Refusal::Failed(format!("an action ended early; this is a bug: {error}")))?
}

/// Whether the ledger failed, so that the order might be done.
fn is_failure(error: &runs::Error) -> bool {
    matches!(error, runs::Error::Storage(_) | runs::Error::Internal(_))
        || matches!(error, runs::Error::Ledger(error) if !matches!(error, LedgerError::Purged { .. }))
}

/// Adds a line to the log of orders.
async fn keep(orders: &Orders, order: Kept) -> Result<(), Refusal> {
    let orders = orders.clone();
    Ok(blocking(move || orders.keep(&order)).await??)
}
