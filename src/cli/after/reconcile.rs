//! `campaign reconcile`: asks the gateway about the rows in doubt of a run, by our own identifiers.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::held::{Given, Held};
use crate::cli::context::Context;
use crate::cli::exit::Failure;
use crate::cli::run::Platform;
use crate::cli::{runs, survey};
use crate::delivery::{Doubts, Reconciler, Reconciliation, patience};
use crate::ledger::{Allowance, Run, State};
use crate::manifest::Profile;
use crate::report::{counts_json, counts_line, duration, plural, thousands};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long all questions may take; a large doubt at a slow pace needs its time.
const LONGEST: Duration = Duration::from_secs(3_600);

pub(in crate::cli) async fn reconcile(context: &Context, name: &str) -> Result<u8, Failure> {
    let held = Held::take(context, name).await?;
    let snapshot = held.snapshot().await?;
    let wanted = [State::InDoubt, State::Unresolved];
    let mut doubts = Doubts::read(held.ledger.as_ref(), &held.run, &snapshot.states, &wanted).await?;
    let learnt =
        if doubts.rows.is_empty() { Ok(Reconciliation::default()) } else { ask(context, &held, &mut doubts).await };
    let run = held.run.clone();
    // The run is given back whatever came of it.
    let given = held.give_back().await?;
    report(context, &run, &learnt?, &given);
    if let Some(unwritten) = &given.unwritten {
        context.output.note(unwritten);
    }
    Ok(given.exit)
}

async fn ask(context: &Context, held: &Held<'_>, doubts: &mut Doubts) -> Result<Reconciliation, Failure> {
    let run = &held.run;
    let profile = profile_of(context, run)?;
    let key = survey::key_of(&profile)?;
    runs::check_host(&context.output, held.ledger.as_ref(), &profile).await?;
    let gateway = Platform::Gateway(&profile, key).client(run.endpoint, TIMEOUT)?;
    let reconciler = Reconciler {
        ledger: held.ledger.as_ref(),
        gateway: gateway.as_ref(),
        run,
        owner: held.owner,
        account: Allowance::new(run.account.as_str(), profile.rate.per_second()),
        most: profile.largest_envelope(),
        clock: Timestamp::now,
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
    let frozen = crate::delivery::RunFolder::of(&context.state()?, &run.name()).frozen();
    survey::profile_of_account(context, run, frozen.ok().map(|frozen| frozen.campaign_file).as_deref())
}

/// What was learnt, in a line.
pub(in crate::cli) fn learnt_line(learnt: &Reconciliation) -> String {
    let Reconciliation { asked, found, failed, not_found, unresolved, blind, unclear, .. } = *learnt;
    if asked == 0 {
        return "the gateway was not asked: the account's rate left no room for it in time".to_owned();
    }
    let parts = [
        (found, "went out"),
        (failed, "the gateway had and refused"),
        (not_found, "not found"),
        (unresolved, "unresolved"),
        (unclear, "without a usable answer (`campaign show` tells why)"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", thousands(count)))
        .collect();
    let parts = if parts.is_empty() { "nothing new".to_owned() } else { parts.join(", ") };
    let blind = if blind > 0 {
        "; its answers prove nothing: it says the same of messages that were sent and that never were"
    } else {
        ""
    };
    format!("asked the gateway about {} in doubt: {parts}{blind}", plural(asked, "row"))
}

fn report(context: &Context, run: &Run, learnt: &Reconciliation, given: &Given) {
    let (name, counts) = (run.name(), &given.snapshot.counts);
    let left = given.count(State::InDoubt) + given.count(State::Unresolved);
    let resolve = context.output.command(format!("resolve {name} --all --as DECISION"));
    let next = if given.count(State::InDoubt) > 0 {
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
            "unresolved": unresolved, "unclear": unclear, "blind": blind > 0, "counts": counts_json(counts), "exit": given.exit, "next": next,
        }));
    }
    let mut text = if learnt.asked == 0 && left == 0 {
        format!("{name}: no row is in doubt\n")
    } else {
        format!("{name}: {}\n", learnt_line(learnt))
    };
    text += &format!("  {}\n", counts_line(counts));
    if given.count(State::InDoubt) > 0 {
        let wait = duration(patience(run.endpoint, run.lag));
        text += &format!(
            "  nothing was sent again. A denial counts when it comes {wait} after the sending and after the one before; \
             three make a row `not found`\n"
        );
    }
    context.output.result(&format!("{text}next: {next}\n"));
}
