//! `campaign status`: runs, their counts, and what to do next.

use serde_json::{Value, json};

use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::listing::listing;
use super::suggested::file;
use crate::finding::one_line;
use crate::ledger::{State, StopKind};
use crate::report::{NextStep, RunStatus, RunView, counts_json, counts_line, is_owned, plural, thousands};
use crate::runs;

/// How many lookups and code calls are listed among the campaigns' runs, besides those in doubt.
const SINGLES: usize = 5;

pub(super) async fn status(context: &Context, name: Option<&str>) -> Result<u8, Failure> {
    let Some(name) = name else { return all(context).await };
    let (ledger, run) = context.named_run(name).await?;
    let state = context.state()?;
    runs::judge_results(ledger.as_ref(), &state, &run, &context.observer).await?;
    let owned = is_owned(ledger.as_ref(), &run).await?;
    let view = RunView::read(ledger.as_ref(), run, owned).await?;
    let code = exit::of_run(&view.run, &view.counts, owned);
    if context.output.json {
        context.output.object(&object(&view, code));
    } else {
        context.output.result(&text(context, &view)?);
    }
    Ok(code)
}

fn text(context: &Context, view: &RunView) -> Result<String, Failure> {
    let RunView { run, status, counts, .. } = view;
    let name = run.name();
    let mut text = format!("{name} · {} · {} · {}\n", run.gateway, run.endpoint, one_line(&status.to_string()));
    text += &format!("  {}: {}\n", plural(run.recipients, "row"), counts_line(counts));
    text += &format!("  began {:.0}", run.began_at);
    if let Some(ended) = run.ended_at {
        text += &format!(" · last ended {ended:.0}");
    }
    text.push('\n');
    if let Some(results) = &run.results {
        text += &format!("  results: {results}\n");
    }
    if *status == RunStatus::Sending {
        let stop = context.output.command(format!("stop {name}"));
        text += &format!("  it is being sent; to stop it after what is in flight: {stop}\n");
    }
    Ok(text + &format!("next: {}\n", next(context, view)?))
}

async fn all(context: &Context) -> Result<u8, Failure> {
    let state = context.state()?;
    let views = match context.existing_ledger().await? {
        Some(ledger) => RunView::list(ledger.as_ref()).await?,
        None => Vec::new(),
    };
    if context.output.json {
        let runs: Vec<Value> = views.iter().map(entry).collect();
        context.output.object(&json!({ "runs": runs, "exit": exit::FINE }));
    } else if views.is_empty() {
        let next = context.output.command("init NAME");
        context.output.result(&format!("no runs yet in `{}`\nnext: {next}\n", state.display()));
    } else {
        context.output.result(&table(&views, context.output.columns()));
    }
    Ok(exit::FINE)
}

fn table(views: &[RunView], columns: Option<usize>) -> String {
    let (mut singles, mut left_out, mut rows) = (0, 0, Vec::new());
    for view in views {
        let RunView { run, status, counts, .. } = view;
        if view.is_single() {
            singles += 1;
            if singles > SINGLES && counts.get(State::InDoubt) == 0 {
                left_out += 1;
                continue;
            }
        }
        rows.push([
            run.name(),
            run.gateway.clone(),
            format!("{:.0}", run.began_at),
            thousands(run.recipients),
            one_line(&status.to_string()),
            counts_line(counts),
        ]);
    }
    let left_out = match left_out {
        0 => String::new(),
        _ => format!("and {} more of `campaign gateway`; --json lists them all\n", plural(left_out, "operation")),
    };
    format!("{}{left_out}", listing(&rows, columns))
}

fn entry(view: &RunView) -> Value {
    let RunView { run, status, counts, .. } = view;
    json!({
        "run": run.name(), "campaign": run.campaign, "gateway": run.gateway, "rows": run.recipients,
        "counts": counts_json(counts), "state": status.word(), "stopped": stopped(view), "why": status.why(),
        "exit": exit::of_run(run, counts, *status == RunStatus::Sending),
    })
}

fn object(view: &RunView, exit: u8) -> Value {
    let RunView { run, status, counts, parts } = view;
    json!({
        "run": run.name(),
        "campaign": run.campaign,
        "edition": run.edition,
        "gateway": run.gateway,
        "endpoint": run.endpoint.name(),
        "rows": run.recipients,
        "counts": counts_json(counts),
        "parts": parts,
        "state": status.word(),
        "stopped": stopped(view),
        "why": status.why(),
        "began_at": run.began_at.to_string(),
        "ended_at": run.ended_at.map(|at| at.to_string()),
        "results": run.results,
        "exit": exit,
    })
}

/// The word for why it stopped; nothing while it is sent, or came to its end.
fn stopped(view: &RunView) -> Option<&'static str> {
    view.run.stop.filter(|_| view.status != RunStatus::Sending).map(StopKind::word)
}

/// The command that a person needs next.
fn next(context: &Context, view: &RunView) -> Result<String, Failure> {
    let (run, output) = (&view.run, &context.output);
    let name = run.name();
    Ok(match view.next_step() {
        NextStep::GoOn => {
            let known = runs::campaign_file(&context.state()?, run);
            let file = known.map_or_else(|| "FILE".to_owned(), |known| file(&known));
            // The gateway may have been named on the command line.
            output.command(format!("run {file} --gateway {}", run.gateway))
        }
        step => output.about_run(&name, &step),
    })
}
