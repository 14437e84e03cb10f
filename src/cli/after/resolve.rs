//! `campaign resolve`: a person decides about rows in doubt.

use roaring::RoaringBitmap;
use serde_json::json;

use super::{rows, take};
use crate::cli::args::{Decision, ResolveArgs};
use crate::cli::context::Context;
use crate::cli::events::unwritten;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::delivery::{Doubt, Doubts, OneOff};
use crate::domain::Row;
use crate::ledger::{Author, Change, NewEvent, Progress, Run, State};
use crate::report::{NextStep, counts_json, counts_line, plural};
use crate::runs::{HeldRun, ReleasedRun, person};

/// The states about which a person can decide.
const DECIDABLE: [State; 4] = [State::InDoubt, State::Unresolved, State::NotSent, State::AssumedSent];

pub(in crate::cli) async fn resolve(context: &Context, args: ResolveArgs) -> Result<u8, Failure> {
    let held = take(context, &args.run).await?;
    let decided = decide(context, &held, &args).await;
    let before = held.run.progress;
    let released = held.release().await?;
    let exit = exit::of_released(&released);
    report(context, (before, args.decision), decided?, &released);
    if let Some(why) = released.unwritten {
        context.output.note(&unwritten(&context.output, why));
    }
    Ok(exit)
}

/// Records the decision and tells about how many rows it was.
async fn decide(context: &Context, held: &HeldRun, args: &ResolveArgs) -> Result<u64, Failure> {
    let snapshot = held.snapshot().await?;
    let doubts = Doubts::read(held.adapters.ledger.as_ref(), &held.run, &snapshot.states, &DECIDABLE).await?;
    let state = |doubt: &Doubt| snapshot.states.recorded(doubt.row).unwrap_or(State::Planned);
    let meant = meant(context, &held.run, args)?;
    let open = |doubt: &&Doubt| matches!(state(doubt), State::InDoubt | State::Unresolved);
    let chosen: Vec<&Doubt> = match &meant {
        // All that wait for a decision; what was decided already is decided again by name only.
        None => doubts.rows.iter().filter(open).collect(),
        Some(rows) => doubts.rows.iter().filter(|doubt| rows.contains(doubt.row.get())).collect(),
    };
    let change = change(args);
    let unfit = chosen.iter().find(|doubt| !change.fits(state(doubt)));
    if let Some(doubt) = unfit {
        let message = format!("row {} is {} and cannot become that by a decision", doubt.row, state(doubt));
        return Err(Failure::wrong(format!("{message}; nothing was decided")));
    }
    if let Some(stranger) = meant.as_ref().and_then(|rows| stranger(rows, &chosen)) {
        let told = snapshot.states.recorded(stranger).unwrap_or(State::Planned);
        return Err(Failure::wrong(format!("row {stranger} is not in doubt but {told}; nothing was decided")));
    }
    if chosen.is_empty() {
        return Err(Failure::new(exit::NOTHING, format!("no row of {} waits for a decision", held.run.name())));
    }
    agreed(args, chosen.len() as u64)?;
    if args.decision == Decision::SendAgain && OneOff::of(&held.run).is_some() {
        let name = held.run.name();
        return Err(Failure::wrong(format!("{name} was a single question; ask again with `campaign gateway`")));
    }
    if args.decision == Decision::SendAgain && held.run.progress == Progress::Replaced {
        return Err(Failure::wrong("a newer run took this one's place; nothing of it can be sent any more"));
    }
    let events = chosen
        .iter()
        .map(|doubt| NewEvent { row: doubt.row, envelope: doubt.envelope, change: change.clone() })
        .collect();
    let number = chosen.len() as u64;
    held.record(events).await?;
    Ok(number)
}

/// The rows that were named; nothing for all of them.
fn meant(context: &Context, run: &Run, args: &ResolveArgs) -> Result<Option<RoaringBitmap>, Failure> {
    match (&args.rows, &args.file) {
        (Some(set), _) => rows::of_set(set, run).map(Some),
        (None, Some(path)) => rows::of_file(path, run, &context.output).map(Some),
        (None, None) => Ok(None),
    }
}

/// The first row that was named and cannot be decided about.
fn stranger(rows: &RoaringBitmap, chosen: &[&Doubt]) -> Option<Row> {
    let known: RoaringBitmap = chosen.iter().map(|doubt| doubt.row.get()).collect();
    (rows - known).min().map(Row::new)
}

/// What can lead to a second message needs the number of rows, typed by who accepts that.
fn agreed(args: &ResolveArgs, number: u64) -> Result<(), Failure> {
    if args.decision == Decision::Sent || args.i_accept_duplicates == Some(number) {
        return Ok(());
    }
    let rows = plural(number, "row");
    Err(Failure::wrong(match args.i_accept_duplicates {
        None => format!(
            "whoever of these {rows} has the message already may get it twice; if you accept that, say \
             `--i-accept-duplicates {number}`"
        ),
        Some(other) => {
            format!("`--i-accept-duplicates {other}` does not match: it is about {rows}; nothing was decided")
        }
    }))
}

fn change(args: &ResolveArgs) -> Change {
    let (by, why) = (Author::Person(person()), args.why.clone());
    match args.decision {
        Decision::Sent => Change::AssumedSent { by, why },
        Decision::NotSent => Change::NotSent { by, why },
        Decision::SendAgain => Change::SendAgain { by, why },
    }
}

fn report(context: &Context, (before, decision): (Progress, Decision), number: u64, released: &ReleasedRun) {
    let (run, counts, exit) = (&released.run, &released.snapshot.counts, exit::of_released(released));
    let name = run.name();
    let command = |arguments: String| context.output.command(arguments);
    let next = match (decision, NextStep::of_doubt(counts)) {
        (Decision::Sent | Decision::NotSent, Some(step)) => context.output.about_run(&name, &step),
        (Decision::NotSent, None) if before == Progress::Finished => command(format!("retry {name}")),
        _ if counts.get(State::Planned) > 0 => command(format!("run {}", campaign_file(context, run))),
        _ => command(format!("status {name}")),
    };
    let what = decision.name().replace('-', " ");
    if context.output.json {
        return context.output.object(&json!({
            "run": name, "rows": number, "as": decision.name(), "counts": counts_json(counts), "exit": exit, "next": next,
        }));
    }
    let rows = plural(number, "row");
    let mut text = format!("{name}: decided about {rows}: {what}\n  {}\n", counts_line(counts));
    if decision == Decision::Sent {
        text += "  they get no message by a later run; only proof from the gateway changes that now\n";
    }
    context.output.result(&format!("{text}next: {next}\n"));
}

/// The command line of a run's campaign file and gateway.
fn campaign_file(context: &Context, run: &Run) -> String {
    let frozen =
        context.state().ok().and_then(|state| crate::delivery::RunFolder::of(&state, &run.name()).frozen().ok());
    let file = frozen.map_or_else(|| "FILE".to_owned(), |frozen| crate::cli::suggested::file(&frozen.campaign_file));
    format!("{file} --gateway {}", run.gateway)
}
