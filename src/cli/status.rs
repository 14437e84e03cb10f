//! `campaign status`: runs, their counts, and what to do next.

use serde_json::{Value, json};

use super::context::Context;
use super::exit::{self, Failure};
use super::listing::listing;
use super::runs;
use super::suggested::file;
use crate::delivery::{OneOff, RunFolder, Standing};
use crate::finding::one_line;
use crate::ledger::{Ledger, Progress, Run, State};
use crate::report::{counts_json, counts_line, plural, thousands};

/// How many lookups and code calls are listed among the campaigns' runs, besides those in doubt.
const ONE_OFFS: usize = 5;

pub(super) async fn status(context: &Context, name: Option<&str>) -> Result<u8, Failure> {
    let ledger = context.existing_ledger().await?;
    match name {
        Some(name) => {
            let run = runs::find(context, ledger.as_deref(), name).await?;
            one(context, ledger.as_deref(), &run).await
        }
        None => all(context, ledger.as_deref()).await,
    }
}

async fn one(context: &Context, ledger: Option<&dyn Ledger>, run: &Run) -> Result<u8, Failure> {
    let Some(ledger) = ledger else { return Ok(exit::FINE) };
    runs::judge(context, ledger, run).await?;
    let owned = runs::is_owned(context, run)?;
    let standing = runs::standing(ledger, run, owned).await?;
    let code = runs::code(run, &standing, owned);
    if context.output.json {
        let mut object = record(run, &standing, owned);
        object["exit"] = code.into();
        context.output.object(&object);
        return Ok(code);
    }
    let mut text =
        format!("{} · {} · {} · {}\n", run.name(), run.gateway, run.endpoint, one_line(&runs::progress(run, owned)));
    text += &format!("  {}: {}\n", plural(run.recipients, "row"), counts_line(&standing.counts));
    text += &format!("  began {:.0}", run.began_at);
    if let Some(ended) = run.ended_at {
        text += &format!(" · last ended {ended:.0}");
    }
    text.push('\n');
    if let Some(results) = &run.results {
        text += &format!("  results: {results}\n");
    }
    if owned {
        text += &format!(
            "  it is being sent; to stop it after what is in flight: {}\n",
            context.output.command(format!("stop {}", run.name()))
        );
    }
    text += &format!("next: {}\n", next(context, run, &standing, owned)?);
    context.output.result(&text);
    Ok(code)
}

async fn all(context: &Context, ledger: Option<&dyn Ledger>) -> Result<u8, Failure> {
    let runs = match ledger {
        Some(ledger) => ledger.runs().await?,
        None => Vec::new(),
    };
    let (mut listed, mut objects) = (Vec::new(), Vec::new());
    let (mut one_offs, mut left_out) = (0, 0);
    for run in runs.iter().rev() {
        let owned = runs::is_owned(context, run)?;
        let standing = match (&run.counts, ledger) {
            (Some((counts, _)), _) if !owned => counts.clone(),
            (_, Some(ledger)) => runs::standing(ledger, run, owned).await?.counts,
            (_, None) => continue,
        };
        objects.push(json!({
            "run": run.name(), "campaign": run.campaign, "gateway": run.gateway, "rows": run.recipients,
            "counts": counts_json(&standing), "state": runs::progress(run, owned), "exit": run.exit,
        }));
        if OneOff::of(run).is_some() {
            one_offs += 1;
            if one_offs > ONE_OFFS && standing.get(State::InDoubt) == 0 {
                left_out += 1;
                continue;
            }
        }
        listed.push([
            run.name(),
            run.gateway.clone(),
            format!("{:.0}", run.began_at),
            thousands(run.recipients),
            one_line(&runs::progress(run, owned)),
            counts_line(&standing),
        ]);
    }
    if context.output.json {
        context.output.object(&json!({ "runs": objects, "exit": exit::FINE }));
    } else if objects.is_empty() {
        let state = context.state()?;
        let next = context.output.command("init NAME");
        context.output.result(&format!("no runs yet in `{}`\nnext: {next}\n", state.display()));
    } else {
        let left_out = match left_out {
            0 => String::new(),
            _ => format!("and {} more of `campaign gateway`; --json lists them all\n", plural(left_out, "operation")),
        };
        context.output.result(&format!("{}{left_out}", listing(&listed, context.output.columns())));
    }
    Ok(exit::FINE)
}

fn record(run: &Run, standing: &Standing, owned: bool) -> Value {
    json!({
        "run": run.name(),
        "campaign": run.campaign,
        "edition": run.edition,
        "gateway": run.gateway,
        "endpoint": run.endpoint.name(),
        "rows": run.recipients,
        "counts": counts_json(&standing.counts),
        "parts": standing.parts,
        "state": runs::progress(run, owned),
        "stopped": run.stopped,
        "began_at": run.began_at.to_string(),
        "ended_at": run.ended_at.map(|at| at.to_string()),
        "results": run.results,
    })
}

/// The command that a person needs next.
fn next(context: &Context, run: &Run, standing: &Standing, owned: bool) -> Result<String, Failure> {
    let name = run.name();
    if owned {
        return Ok(context.output.command(format!("status {name}")));
    }
    if run.progress == Progress::Open && OneOff::of(run).is_none() {
        let frozen = RunFolder::of(&context.state()?, &name).frozen();
        let file = frozen.map_or_else(|_| "FILE".to_owned(), |frozen| file(&frozen.campaign_file));
        // The gateway may have been named on the command line.
        return Ok(context.output.command(format!("run {file} --gateway {}", run.gateway)));
    }
    if standing.counts.get(State::InDoubt) > 0 && run.live && OneOff::of(run).is_none() {
        return Ok(context.output.command(format!("reconcile {name}")));
    }
    let look_at = exit::look_at(&name, &standing.counts).unwrap_or_else(|| format!("results {name}"));
    Ok(context.output.command(look_at))
}
