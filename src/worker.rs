//! `campaign worker`: sends shards of shared runs until the process is stopped.

use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use tokio::sync::oneshot;

use super::args::WorkerArgs;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::Output;
use super::progress::describe_wait;
use super::serve::{Shutdown, bind_listener};
use campaign_core::finding::escape_to_one_line;
use campaign_engine::delivery::DeliveryEvent;
use campaign_engine::report::format_count;
use campaign_net::metrics::Metrics;
use campaign_net::{ConnectionLimits, connectable_address};
use campaign_runs::{Error, RunEvent, Worker, WorkerEvent};
use campaign_server::web;
use campaign_server::web::{MetricsSource, RunListCache};

pub(super) async fn run_worker(context: &Context, args: WorkerArgs) -> Result<u8, CommandFailure> {
    let interrupt = context.watch_signals()?;
    let metrics = Arc::new(Metrics::default());
    let ledger = context.open_server_ledger(&metrics).await?;
    let adapters = context.adapters(Arc::clone(&ledger))?;
    let endpoint = args.metrics.map(|address| bind_listener(address, "--metrics")).transpose()?;
    report_start(context, &adapters.process, endpoint.as_ref().map(|(_, address)| *address))?;
    let output = context.output.clone();
    let observer = Arc::new(move |event| report_event(&output, event));
    let work = Worker { adapters, observer, interrupt }.run();
    let Some((listener, _)) = endpoint else {
        work.await?;
        return Ok(exit::SUCCESS);
    };
    let views = Arc::new(RunListCache::new(ledger));
    let router = web::metrics(MetricsSource { metrics, run_list: views, clock: Timestamp::now });
    // The metrics endpoint stops when the worker ends for any reason, for example because the ledger is unavailable.
    let (end_sender, end_receiver) = oneshot::channel::<()>();
    let work = async move {
        let result = work.await;
        drop(end_sender);
        result
    };
    let shutdown: Shutdown = Box::pin(async move {
        let _ = end_receiver.await;
    });
    let (result, ()) =
        tokio::join!(work, campaign_net::serve_connections(listener, router, ConnectionLimits::default(), shutdown));
    result?;
    Ok(exit::SUCCESS)
}

/// Prints the name of the worker, its ledger and the address of its metrics.
fn report_start(context: &Context, process: &str, metrics: Option<SocketAddr>) -> Result<(), CommandFailure> {
    let place = context.ledger_location()?;
    let metrics = metrics.map(|address| format!("http://{}/metrics", connectable_address(address)));
    if context.output.json {
        context.output.print_object(&json!({ "worker": process, "ledger": place, "metrics": metrics }));
        return Ok(());
    }
    let mut text = format!("worker {process} is ready to send shards of runs in `{place}`\n");
    text.extend(metrics.map(|url| format!("  metrics on {url}\n")));
    context.output.print_result(&text);
    Ok(())
}

fn report_event(output: &Output, event: WorkerEvent) {
    match event {
        WorkerEvent::Joined { run } => print_event(output, &run, "joined", "joined the run"),
        WorkerEvent::Left { run, sent, stopped } => {
            let sent = format!("sent {}", format_count(sent, "message"));
            let cause = stopped.map_or_else(
                || "no shards are left".to_owned(),
                |stop| format!("stopped: {}", escape_to_one_line(&stop.reason)),
            );
            print_event(output, &run, "left", &format!("{sent}; {cause}"));
        }
        WorkerEvent::Unable { run, error: Error::Findings(findings) } => {
            let findings: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
            print_event(output, &run, "unable", &findings.join("; "));
        }
        WorkerEvent::Unable { run, error } => print_event(output, &run, "unable", &error.to_string()),
        WorkerEvent::RunEvent { run, event: RunEvent::Sending(event) } => match event {
            DeliveryEvent::Warning(text) => print_event(output, &run, "warning", &text),
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

/// Prints an event of a run.
fn print_event(output: &Output, run: &str, event: &str, message: &str) {
    if output.json {
        output.print_object(&json!({ "run": run, "event": event, "message": message }));
    } else {
        output.print_result(format!("{run}: {message}\n"));
    }
}
