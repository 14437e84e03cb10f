//! Decisions: each by the rules of its command, under the name of the session, and kept before it is done.

use std::future::Future;

use axum::extract::Path;
use axum::response::Response;

use super::fields::encoded;
use super::look::Look;
use super::orders::Order as Kept;
use super::refusal::{Refusal, Wrong};
use super::told::{Order, Told};
use crate::audience::parse;
use crate::domain::RowSet;
use crate::ledger::Run;
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
        keep(&look, "stop", &run.name()).await?;
        let ledger = look.pages.adapters.ledger.clone();
        let stopping = to_the_end(&look, async move { runs::stop(ledger.as_ref(), &run).await }).await?;
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
        keep(&look, fields.get("decision").unwrap_or_default(), &run.name()).await?;
        let resolution = Resolution { rows, decision, by, why, duplicates: typed };
        let (adapters, key) = (look.pages.adapters.clone(), run.key);
        to_the_end(&look, async move { runs::resolve(&adapters, run, &resolution).await }).await?;
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
    keep(look, word, name).await?;
    change_armed(look.ledger(), name, order).await?;
    Ok(format!("/?done={word}"))
}

/// Puts a number on the suppression list.
pub(super) async fn suppress(Order(Told { look, fields }): Order) -> Response {
    let done = async {
        let typed = fields.get("phone").unwrap_or_default();
        let international = || parse(&format!("+{}", typed.trim_start_matches('+')), None);
        let phone = parse(typed, None).or_else(|_| international()).map_err(|_| Refusal::Wrong(Wrong::Phone))?;
        let reason = fields.get("why").map(|why| why.chars().take(WHY).collect());
        keep(&look, "suppress", &phone.masked()).await?;
        let terms = OptOutTerms { reason, by: Some(look.visitor.name.clone()), ..OptOutTerms::default() };
        let (_, additions) = runs::suppress(look.ledger(), phone, &terms, look.pages.now()).await?;
        look.pages.opt_outs.changed().await;
        Ok(format!("/?done={}", if additions.added > 0 { "suppress" } else { "suppressed" }))
    };
    let done = done.await;
    look.done(done)
}

/// Keeps an order and who gave it.
async fn keep(look: &Look, order: &str, of: &str) -> Result<(), Refusal> {
    let kept = Kept { at: look.pages.now(), by: look.visitor.name.clone(), order: order.to_owned(), of: of.to_owned() };
    tracing::info!("{} orders by a page: {order} {of}", kept.by);
    let orders = look.pages.orders.clone();
    Ok(blocking(move || orders.keep(&kept)).await??)
}

/// Does something to its end, whoever hangs up meanwhile; the server waits for it before it ends.
async fn to_the_end<T: Send + 'static>(
    look: &Look,
    work: impl Future<Output = Result<T, runs::Error>> + Send + 'static,
) -> Result<T, Refusal> {
    let work = look.pages.work.spawn(work).await;
    let work = work.map_err(|error| Refusal::Failed(format!("an order ended early; this is a bug: {error}")))?;
    Ok(work?)
}
