//! `campaign reconcile`: asks the gateway about the rows in doubt of a run, by our own identifiers.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::take;
use crate::cli::context::Context;
use crate::cli::events::{learnt_line, unwritten};
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::delivery::{Doubts, Reconciler, Reconciliation, RunFolder, patience};
use crate::ledger::{Allowance, Run, State};
use crate::manifest::Profile;
use crate::report::{counts_json, counts_line, duration};
use crate::runs::{HeldRun, Platform, ReleasedRun, check_host, key_of};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long all questions may take; a large doubt at a slow pace needs its time.
const LONGEST: Duration = Duration::from_secs(3_600);

pub(in crate::cli) async fn reconcile(context: &Context, name: &str) -> Result<u8, Failure> {
    let held = take(context, name).await?;
    let snapshot = held.snapshot().await?;
    let wanted = [State::InDoubt, State::Unresolved];
    let mut doubts = Doubts::read(held.adapters.ledger.as_ref(), &held.run, &snapshot.states, &wanted).await?;
    let learnt =
        if doubts.rows.is_empty() { Ok(Reconciliation::default()) } else { ask(context, &held, &mut doubts).await };
    // The run is given back whatever came of it.
    let released = held.release().await?;
    let exit = exit::of_released(&released);
    report(context, &learnt?, &released);
    if let Some(why) = released.unwritten {
        context.output.note(&unwritten(&context.output, why));
    }
    Ok(exit)
}

async fn ask(context: &Context, held: &HeldRun, doubts: &mut Doubts) -> Result<Reconciliation, Failure> {
    let (run, adapters) = (&held.run, &held.adapters);
    let profile = profile_of(context, run)?;
    let key = key_of(&profile)?;
    check_host(adapters.ledger.as_ref(), &profile).await?;
    let gateway = Platform::Gateway(&profile, key).client(adapters.connect, run.endpoint, TIMEOUT)?;
    let reconciler = Reconciler {
        ledger: adapters.ledger.as_ref(),
        gateway: gateway.as_ref(),
        run,
        owner: held.owner,
        account: Allowance::new(run.account.as_str(), profile.rate.per_second()),
        most: profile.largest_envelope(),
        clock: adapters.clock,
    };
    Ok(reconciler.ask(doubts, Instant::now() + LONGEST).await?)
}

/// The profile of the gateway that a run went through.
fn profile_of(context: &Context, run: &Run) -> Result<Profile, Failure> {
    if !run.live {
        return Err(Failure::wrong(format!(
            "{} was a rehearsal on the built-in sandbox, which forgets everything at its end; there is nobody to ask",
            run.name()
        )));
    }
    let frozen = RunFolder::of(&context.state()?, &run.name()).frozen();
    let campaign = frozen.ok().map(|frozen| frozen.campaign_file);
    Ok(context.profiles().of_account(run, campaign.as_deref(), &context.observer)?)
}

fn report(context: &Context, learnt: &Reconciliation, released: &ReleasedRun) {
    let (run, counts, exit) = (&released.run, &released.snapshot.counts, exit::of_released(released));
    let name = run.name();
    let left = counts.get(State::InDoubt) + counts.get(State::Unresolved);
    let resolve = context.output.command(format!("resolve {name} --all --as DECISION"));
    let next = if counts.get(State::InDoubt) > 0 {
        format!("{}, or decide: {resolve}", context.output.command(format!("reconcile {name}")))
    } else if left > 0 {
        resolve
    } else {
        context.output.command(format!("results {name}"))
    };
    if context.output.json {
        let Reconciliation { asked, found, failed, not_found, unresolved, blind, unclear, .. } = *learnt;
        return context.output.object(&json!({
            "run": name, "asked": asked, "found": found, "failed": failed, "not_found": not_found,
            "unresolved": unresolved, "unclear": unclear, "blind": blind > 0, "counts": counts_json(counts), "exit": exit, "next": next,
        }));
    }
    let mut text = if learnt.asked == 0 && left == 0 {
        format!("{name}: no row is in doubt\n")
    } else {
        format!("{name}: {}\n", learnt_line(learnt))
    };
    text += &format!("  {}\n", counts_line(counts));
    if counts.get(State::InDoubt) > 0 {
        let wait = duration(patience(run.endpoint, run.lag));
        text += &format!(
            "  nothing was sent again. A denial counts when it comes {wait} after the sending and after the one before; \
             three make a row `not found`\n"
        );
    }
    context.output.result(&format!("{text}next: {next}\n"));
}
