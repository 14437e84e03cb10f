//! `campaign worker`: sends shards of shared runs until it is stopped.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::oneshot;

use super::args::WorkerArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::progress::wait;
use super::serve::{Shutdown, bind};
use crate::delivery::DeliveryEvent;
use crate::door::{self, Limits, reachable};
use crate::finding::one_line;
use crate::metrics::Metrics;
use crate::report::plural;
use crate::runs::{Error, Event, WorkEvent, Worker};
use crate::web::{self, Counted, Views};

pub(super) async fn worker(context: &Context, args: WorkerArgs) -> Result<u8, Failure> {
    let interrupt = context.interrupt()?;
    let metrics = Arc::new(Metrics::default());
    let ledger = context.server_ledger(&metrics).await?;
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let door = args.metrics.map(|address| bind(address, "--metrics")).transpose()?;
    tell_place(context, &adapters.process, door.as_ref().map(|(_, address)| *address))?;
    let output = context.output.clone();
    let observer = Arc::new(move |event| tell(&output, event));
    let work = Worker { adapters, observer, interrupt }.work();
    let Some((listener, _)) = door else {
        work.await?;
        return Ok(exit::FINE);
    };
    let views = Arc::new(Views::new(ledger));
    let counted = web::metrics(Counted { metrics, views, clock: Timestamp::now });
    // The endpoint ends with the work, because the ledger might be gone.
    let (works, over) = oneshot::channel::<()>();
    let work = async move {
        let worked = work.await;
        drop(works);
        worked
    };
    let shutdown: Shutdown = Box::pin(async move {
        let _ = over.await;
    });
    let (worked, ()) = tokio::join!(work, door::serve(listener, counted, Limits::default(), shutdown));
    worked?;
    Ok(exit::FINE)
}

/// The first line: the name of the worker and its ledger.
fn tell_place(context: &Context, process: &str, metrics: Option<std::net::SocketAddr>) -> Result<(), Failure> {
    let place = context.place()?;
    let metrics = metrics.map(|address| format!("http://{}/metrics", reachable(address)));
    if context.output.json {
        context.output.object(&json!({ "worker": process, "ledger": place, "metrics": metrics }));
        return Ok(());
    }
    let mut text = format!("worker {process} sends shards of runs in `{place}`\n");
    text.extend(metrics.map(|url| format!("  metrics on {url}\n")));
    context.output.result(&text);
    Ok(())
}

fn tell(output: &Output, event: WorkEvent) {
    match event {
        WorkEvent::Joined { run } => say(output, &run, "joined", "joined the run"),
        WorkEvent::Left { run, sent, stopped } => {
            let sent = format!("sent {}", plural(sent, "message"));
            let why = stopped.map(|stop| one_line(&stop.reason));
            let why = why.map_or_else(|| "no shards are left".to_owned(), |why| format!("stopped: {why}"));
            say(output, &run, "left", &format!("{sent}; {why}"));
        }
        WorkEvent::Unable { run, error: Error::Findings(findings) } => {
            let findings: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
            say(output, &run, "unable", &findings.join("; "));
        }
        WorkEvent::Unable { run, error } => say(output, &run, "unable", &error.to_string()),
        WorkEvent::Told { run, event: Event::Sending(event) } => match event {
            DeliveryEvent::Warning(what) => say(output, &run, "warning", &what),
            DeliveryEvent::Waiting { reason, time, next } => {
                say(output, &run, "waiting", &wait(&reason, time, next));
            }
            DeliveryEvent::Settled { .. }
            | DeliveryEvent::Slow { .. }
            | DeliveryEvent::Asking { .. }
            | DeliveryEvent::Stopping { .. } => {}
        },
        WorkEvent::Told { run, event: Event::DoubtFromBefore { requests } } => {
            let requests = plural(requests as u64, "request");
            say(output, &run, "doubt", &format!("took over shards of a lost worker: {requests} in doubt"));
        }
        WorkEvent::Told { .. } => {}
    }
}

/// A line about a run.
fn say(output: &Output, run: &str, what: &str, words: &str) {
    if output.json {
        output.object(&json!({ "run": run, "event": what, "message": words }));
    } else {
        output.result(format!("{run}: {words}\n"));
    }
}
