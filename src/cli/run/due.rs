//! What `run` sends of a campaign with a schedule: at once with `--now`, when it is due with `--when-due`.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use super::load_inputs;
use crate::calendar::{Occurrence, Schedule};
use crate::cli::args::RunArgs;
use crate::cli::context::Context;
use crate::cli::failure::CommandFailure;
use crate::cli::schedule::{self, words};
use crate::delivery::Interrupt;
use crate::report::format_duration;
use crate::runs::{Error, Inputs, RunPhase, ScheduleRefusal, find_occurrence, find_unfinished_run};
use crate::schedule::{find_due, lateness};

/// How often is looked at the clock, which may be set meanwhile.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// The campaign as it is sent, and the occurrence that it is, if it is one.
pub(super) async fn load_due_campaign(
    context: &Context,
    args: &RunArgs,
) -> Result<(Arc<Inputs>, Option<Occurrence>), CommandFailure> {
    let gateway = args.gateway.as_deref();
    let found = load_inputs(context, (&args.file, gateway), None)?;
    let occurrence = match (&found.campaign.schedule, args.when_due) {
        (None, true) => return Err(Error::Schedule(ScheduleRefusal::None { file: args.file.clone() }).into()),
        (None, false) => None,
        (Some(_), false) if args.dry_run => None,
        // What began as an occurrence goes on as that one, with the list and the texts of its day.
        (Some(schedule), false) => match find_unfinished_occurrence(context, &found).await? {
            Some(occurrence) => occurrence,
            None if args.now => None,
            None => return Err(schedule::not_due_failure(&args.file, schedule, &context.output)),
        },
        (Some(schedule), true) => Some(wait_until_due(context, args, schedule).await?),
    };
    match &occurrence {
        Some(_) => Ok((load_inputs(context, (&args.file, gateway), occurrence.as_ref())?, occurrence)),
        None => Ok((found, None)),
    }
}

/// The occurrence that the unfinished run of a campaign is of, if it is of one; nothing where there is no such run.
async fn find_unfinished_occurrence(
    context: &Context,
    inputs: &Inputs,
) -> Result<Option<Option<Occurrence>>, CommandFailure> {
    let Some(ledger) = context.open_existing_ledger().await? else { return Ok(None) };
    match find_unfinished_run(ledger.as_ref(), inputs).await? {
        Some(run) => Ok(Some(find_occurrence(ledger.as_ref(), run.key).await?)),
        None => Ok(None),
    }
}

/// Waits until a campaign is due, and counts down; whoever interrupts it has sent nothing.
///
/// A date that was slept through is left out if it is later than `grace`, and the next one is waited for.
async fn wait_until_due(context: &Context, args: &RunArgs, schedule: &Schedule) -> Result<Occurrence, CommandFailure> {
    let over = || Error::Schedule(ScheduleRefusal::Over { file: args.file.clone() });
    let mut interrupt = context.watch_signals()?;
    let shown = !context.output.quiet && !context.output.json && std::io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    let countdown = ProgressBar::with_draw_target(None, target).with_style(style);
    let (mut handled, mut awaited) = (Timestamp::now(), None);
    loop {
        let now = Timestamp::now();
        let due = find_due(schedule, handled, now, schedule.grace);
        if let Some(missed) = &due.missed {
            handled = missed.at;
            let others = match due.before {
                0 => String::new(),
                before => {
                    format!("; {before} earlier {} missed too", if before == 1 { "run was" } else { "runs were" })
                }
            };
            let (date, late) = (words::format_occurrence(missed), format_duration(lateness(missed.at, now)));
            countdown.suspend(|| {
                context.output.print_note(&format!("the run for {date} was missed by {late} and is not sent{others}"))
            });
        }
        if let Some(occurrence) = due.begins {
            countdown.finish_and_clear();
            return Ok(occurrence);
        }
        let next = schedule.occurrences_after(handled).next().ok_or_else(over)?;
        if awaited.as_ref() != Some(&next) {
            let told = format!("due {}; press Ctrl-C to stop waiting without sending", words::format_occurrence(&next));
            countdown.suspend(|| context.output.print_note(&told));
        }
        let left = Duration::try_from(next.at.duration_since(now)).unwrap_or_default();
        awaited = Some(next);
        countdown.set_message(format!("in {}", format_duration(left)));
        tokio::select! {
            () = tokio::time::sleep(left.min(CLOCK_INTERVAL)) => {}
            told = interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => {
                countdown.finish_and_clear();
                let signal = match told.map(|told| *told) {
                    Ok(Interrupt::Graceful(signal) | Interrupt::Immediate(signal)) => signal,
                    Ok(Interrupt::None) | Err(_) => 2,
                };
                return Err(Error::Interrupted { signal, phase: RunPhase::Preparing }.into());
            }
        }
    }
}
