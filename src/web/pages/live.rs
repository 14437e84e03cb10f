//! The parts of a run's page as it goes on: one stream for each open page, of what one reader of the run finds.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::{Stream, unfold};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::look::PageRequest;
use super::run::{NamedPart, render_parts};
use super::watched::RunReading;
use crate::ledger::{LedgerError, RunId};

/// How often something is said at least: sooner than a door takes silence for an end.
const PING_INTERVAL: Duration = Duration::from_secs(10);
/// How often it is looked whether who looks may still look.
const SESSION_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a browser waits before it comes again.
const RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// An open page.
struct LivePage {
    look: PageRequest,
    readings: watch::Receiver<Option<Result<Arc<RunReading>, Arc<LedgerError>>>>,
    closing: watch::Receiver<bool>,
    ticks: Interval,
    /// The parts that the browser has, and the name of all of them together.
    has: Vec<NamedPart>,
    id: String,
    over: bool,
    _place: OwnedSemaphorePermit,
}

/// What an open page waits for.
enum LivePageEvent {
    /// The server ends.
    End,
    /// It is time to look whether they may still look.
    Tick,
    /// The run was read.
    Reading,
}

pub(super) async fn stream_run(mut look: PageRequest, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let run = match look.find_run(&name).await {
        Ok(run) => run,
        Err(refusal) => return look.respond_to_order(Err(refusal)),
    };
    let Ok(place) = Arc::clone(&look.pages.live).try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let ping = KeepAlive::new().interval(PING_INTERVAL).text("ping");
    Sse::new(event_stream(look, run.key, last, place)).keep_alive(ping).into_response()
}

fn event_stream(
    look: PageRequest,
    run: RunId,
    last: String,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let mut readings = look.pages.watched.follow_run(run);
    // What was read before this page came is news to it.
    readings.mark_changed();
    let closing = look.pages.closing.subscribe();
    let mut ticks = interval(SESSION_CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let open = LivePage { look, readings, closing, ticks, has: Vec::new(), id: last, over: false, _place: place };
    unfold(open, |mut open| async move { open.next_event().await.map(|event| (Ok(event), open)) })
}

impl LivePage {
    /// What is sent next; nothing at the end.
    async fn next_event(&mut self) -> Option<Event> {
        while !self.over {
            match self.wait_for_event().await {
                LivePageEvent::End => return None,
                LivePageEvent::Tick if self.is_session_valid().await => {}
                LivePageEvent::Tick => {
                    self.over = true;
                    return Some(Event::default().event("gone").data("gone"));
                }
                LivePageEvent::Reading => {
                    if let Some(event) = self.changed_parts() {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    async fn wait_for_event(&mut self) -> LivePageEvent {
        let Self { readings, closing, ticks, .. } = self;
        tokio::select! {
            _ = closing.wait_for(|closing| *closing) => LivePageEvent::End,
            _ = ticks.tick() => LivePageEvent::Tick,
            changed = readings.changed() => if changed.is_ok() { LivePageEvent::Reading } else { LivePageEvent::End },
        }
    }

    /// Whether they were not shown out since.
    async fn is_session_valid(&self) -> bool {
        let visitor = self.look.pages.find_visitor(&self.look.session).await;
        visitor.is_ok_and(|visitor| visitor.as_ref() == Some(&self.look.visitor))
    }

    /// The parts that are other than those that the browser has; nothing where there is none.
    fn changed_parts(&mut self) -> Option<Event> {
        let reading = match self.readings.borrow_and_update().as_ref()? {
            Ok(reading) => Arc::clone(reading),
            Err(error) => {
                tracing::warn!("a run cannot be read for its page: {error}");
                return None;
            }
        };
        let made = render_parts(&self.look, &reading)
            .map_err(|refusal| tracing::warn!("cannot render a part of a page: {refusal}"))
            .ok()?;
        let id = parts_id(&made);
        if id == self.id {
            self.has = made;
            return None;
        }
        let changed = made.iter().enumerate().filter(|(index, part)| self.has.get(*index) != Some(*part));
        let changed: Map<String, Value> =
            changed.map(|(_, (name, html))| (name.clone(), html.as_str().into())).collect();
        (self.has, self.id) = (made, id.clone());
        // JSON has its line breaks escaped, so it is one line, as an event wants it.
        Some(Event::default().event("parts").id(id).retry(RECONNECT_DELAY).data(Value::Object(changed).to_string()))
    }
}

/// What tells these parts from others.
fn parts_id(parts: &[NamedPart]) -> String {
    let hash = parts.iter().fold(Sha256::new(), |hash, (_, part)| hash.chain_update(part).chain_update([0]));
    hash.finalize().iter().take(8).fold(String::new(), |mut id, byte| {
        // What is written to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
        id
    })
}
