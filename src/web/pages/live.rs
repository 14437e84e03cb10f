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

use super::look::Look;
use super::run::{NamedPart, parts};
use super::watched::Reading;
use crate::ledger::{LedgerError, RunId};

/// How often something is said at least: sooner than a door takes silence for an end.
const PING: Duration = Duration::from_secs(10);
/// How often it is looked whether who looks may still look.
const LOOK: Duration = Duration::from_secs(1);
/// How long a browser waits before it comes again.
const AGAIN: Duration = Duration::from_secs(2);

/// An open page.
struct Open {
    look: Look,
    readings: watch::Receiver<Option<Result<Arc<Reading>, Arc<LedgerError>>>>,
    closing: watch::Receiver<bool>,
    ticks: Interval,
    /// The parts that the browser has, and the name of all of them together.
    has: Vec<NamedPart>,
    id: String,
    over: bool,
    _place: OwnedSemaphorePermit,
}

/// What an open page waits for.
enum Happened {
    /// The server ends.
    End,
    /// It is time to look whether they may still look.
    Tick,
    /// The run was read.
    Reading,
}

pub(super) async fn stream(mut look: Look, Path(name): Path<String>, headers: HeaderMap) -> Response {
    let run = match look.run(&name).await {
        Ok(run) => run,
        Err(refusal) => return look.done(Err(refusal)),
    };
    let Ok(place) = Arc::clone(&look.pages.live).try_acquire_owned() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    let ping = KeepAlive::new().interval(PING).text("ping");
    Sse::new(events(look, run.key, last, place)).keep_alive(ping).into_response()
}

fn events(
    look: Look,
    run: RunId,
    last: String,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let mut readings = look.pages.watched.follow(run);
    // What was read before this page came is news to it.
    readings.mark_changed();
    let closing = look.pages.closing.subscribe();
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let open = Open { look, readings, closing, ticks, has: Vec::new(), id: last, over: false, _place: place };
    unfold(open, |mut open| async move { open.next().await.map(|event| (Ok(event), open)) })
}

impl Open {
    /// What is sent next; nothing at the end.
    async fn next(&mut self) -> Option<Event> {
        while !self.over {
            match self.happens().await {
                Happened::End => return None,
                Happened::Tick if self.may_look().await => {}
                Happened::Tick => {
                    self.over = true;
                    return Some(Event::default().event("gone").data("gone"));
                }
                Happened::Reading => {
                    if let Some(event) = self.news() {
                        return Some(event);
                    }
                }
            }
        }
        None
    }

    async fn happens(&mut self) -> Happened {
        let Self { readings, closing, ticks, .. } = self;
        tokio::select! {
            _ = closing.wait_for(|closing| *closing) => Happened::End,
            _ = ticks.tick() => Happened::Tick,
            changed = readings.changed() => if changed.is_ok() { Happened::Reading } else { Happened::End },
        }
    }

    /// Whether they were not shown out since.
    async fn may_look(&self) -> bool {
        let visitor = self.look.pages.visitor(&self.look.session).await;
        visitor.is_ok_and(|visitor| visitor.as_ref() == Some(&self.look.visitor))
    }

    /// The parts that are other than those that the browser has; nothing where there is none.
    fn news(&mut self) -> Option<Event> {
        let reading = match self.readings.borrow_and_update().as_ref()? {
            Ok(reading) => Arc::clone(reading),
            Err(error) => {
                tracing::warn!("a run cannot be read for its page: {error}");
                return None;
            }
        };
        let made = parts(&self.look, &reading)
            .map_err(|refusal| tracing::warn!("cannot render a part of a page: {refusal}"))
            .ok()?;
        let id = id(&made);
        if id == self.id {
            self.has = made;
            return None;
        }
        let changed = made.iter().enumerate().filter(|(index, part)| self.has.get(*index) != Some(*part));
        let changed: Map<String, Value> =
            changed.map(|(_, (name, html))| (name.clone(), html.as_str().into())).collect();
        (self.has, self.id) = (made, id.clone());
        // JSON has its line breaks escaped, so it is one line, as an event wants it.
        Some(Event::default().event("parts").id(id).retry(AGAIN).data(Value::Object(changed).to_string()))
    }
}

/// What tells these parts from others.
fn id(parts: &[NamedPart]) -> String {
    let hash = parts.iter().fold(Sha256::new(), |hash, (_, part)| hash.chain_update(part).chain_update([0]));
    hash.finalize().iter().take(8).fold(String::new(), |mut id, byte| {
        // What is written to a string cannot fail.
        let _ = write!(id, "{byte:02x}");
        id
    })
}
