//! `campaign worker`: sends shards of shared runs until it is stopped.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::oneshot;

use super::args::WorkerArgs;
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::output::Output;
use super::progress::describe_wait;
use super::serve::{Shutdown, bind_listener};
use crate::delivery::DeliveryEvent;
use crate::door::{self, ConnectionLimits, connectable_address};
use crate::finding::escape_to_one_line;
use crate::metrics::Metrics;
use crate::report::format_count;
use crate::runs::{Error, RunEvent, Worker, WorkerEvent};
use crate::web::{self, MetricsSource, RunListCache};

pub(super) async fn run_worker(context: &Context, args: WorkerArgs) -> Result<u8, CommandFailure> {
    let interrupt = context.watch_signals()?;
    let metrics = Arc::new(Metrics::default());
    let ledger = context.open_server_ledger(&metrics).await?;
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let door = args.metrics.map(|address| bind_listener(address, "--metrics")).transpose()?;
    report_start(context, &adapters.process, door.as_ref().map(|(_, address)| *address))?;
    let output = context.output.clone();
    let observer = Arc::new(move |event| report_event(&output, event));
    let work = Worker { adapters, observer, interrupt }.run();
    let Some((listener, _)) = door else {
        work.await?;
        return Ok(exit::SUCCESS);
    };
    let views = Arc::new(RunListCache::new(ledger));
    let counted = web::metrics(MetricsSource { metrics, views, clock: Timestamp::now });
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
    let (worked, ()) =
        tokio::join!(work, door::serve_connections(listener, counted, ConnectionLimits::default(), shutdown));
    worked?;
    Ok(exit::SUCCESS)
}

/// The first line: the name of the worker and its ledger.
fn report_start(context: &Context, process: &str, metrics: Option<std::net::SocketAddr>) -> Result<(), CommandFailure> {
    let place = context.ledger_place()?;
    let metrics = metrics.map(|address| format!("http://{}/metrics", connectable_address(address)));
    if context.output.json {
        context.output.print_object(&json!({ "worker": process, "ledger": place, "metrics": metrics }));
        return Ok(());
    }
    let mut text = format!("worker {process} sends shards of runs in `{place}`\n");
    text.extend(metrics.map(|url| format!("  metrics on {url}\n")));
    context.output.print_result(&text);
    Ok(())
}

fn report_event(output: &Output, event: WorkerEvent) {
    match event {
        WorkerEvent::Joined { run } => print_event(output, &run, "joined", "joined the run"),
        WorkerEvent::Left { run, sent, stopped } => {
            let sent = format!("sent {}", format_count(sent, "message"));
            let why = stopped.map(|stop| escape_to_one_line(&stop.reason));
            let why = why.map_or_else(|| "no shards are left".to_owned(), |why| format!("stopped: {why}"));
            print_event(output, &run, "left", &format!("{sent}; {why}"));
        }
        WorkerEvent::Unable { run, error: Error::Findings(findings) } => {
            let findings: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
            print_event(output, &run, "unable", &findings.join("; "));
        }
        WorkerEvent::Unable { run, error } => print_event(output, &run, "unable", &error.to_string()),
        WorkerEvent::RunEvent { run, event: RunEvent::Sending(event) } => match event {
            DeliveryEvent::Warning(what) => print_event(output, &run, "warning", &what),
            DeliveryEvent::Waiting { reason, time, next } => {
                print_event(output, &run, "waiting", &describe_wait(&reason, time, next));
            }
            DeliveryEvent::Settled { .. }
            | DeliveryEvent::Slow { .. }
            | DeliveryEvent::Asking { .. }
            | DeliveryEvent::Stopping { .. } => {}
        },
        WorkerEvent::RunEvent { run, event: RunEvent::DoubtFromBefore { requests } } => {
            let requests = format_count(requests as u64, "request");
            print_event(output, &run, "doubt", &format!("took over shards of a lost worker: {requests} in doubt"));
        }
        WorkerEvent::RunEvent { .. } => {}
    }
}

/// A line about a run.
fn print_event(output: &Output, run: &str, what: &str, words: &str) {
    if output.json {
        output.print_object(&json!({ "run": run, "event": what, "message": words }));
    } else {
        output.print_result(format!("{run}: {words}\n"));
    }
}
