//! `campaign schedule`: what runs by itself.

mod add;
mod list;
mod next;
pub(super) mod told;
pub(super) mod words;

use std::path::Path;

use jiff::Timestamp;

use super::args::ScheduleCommand;
use super::context::Context;
use super::failure::CommandFailure;
use super::hint::FUTURE_DATE_HINT;
use super::output::Output;
use super::suggested::shell_path;
use crate::calendar::Schedule;
use crate::runs::{ScheduleOrder, ScheduleRefusal};

pub(super) async fn run_schedule_command(context: &Context, command: ScheduleCommand) -> Result<u8, CommandFailure> {
    match command {
        ScheduleCommand::Add(args) => add::activate_schedule(context, &args).await,
        ScheduleCommand::List => list::list_schedules(context).await,
        ScheduleCommand::Next(args) => next::show_next(context, &args),
        ScheduleCommand::Pause(named) => list::change_schedule(context, &named.name, ScheduleOrder::Pause).await,
        ScheduleCommand::Resume(named) => list::change_schedule(context, &named.name, list::resume_order()).await,
        ScheduleCommand::Remove(named) => list::change_schedule(context, &named.name, ScheduleOrder::Remove).await,
    }
}

/// Why a campaign with a schedule is not sent by `run` alone.
pub(super) fn not_due_failure(campaign: &Path, schedule: &Schedule, output: &Output) -> CommandFailure {
    let at_once = output.command(format!("run {} --now", shell_path(campaign)));
    match schedule.occurrences_after(Timestamp::now()).next() {
        Some(next) => {
            let when = words::format_occurrence(&next);
            CommandFailure::invalid(format!(
                "`{}` has a schedule and is due {when}; nothing was sent",
                campaign.display()
            ))
            .with_help(format!("to send it now: `{at_once}`"))
        }
        None => {
            let (over, status) = (ScheduleRefusal::Over { file: campaign.to_owned() }, output.command("status"));
            CommandFailure::invalid(over.to_string()).with_help(format!(
                "{FUTURE_DATE_HINT}; to send it now, check with `{status}` that it has not been sent yet, then run `{at_once}`"
            ))
        }
    }
}
