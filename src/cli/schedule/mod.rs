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
use super::failure::Failure;
use super::output::Output;
use super::suggested::file;
use crate::calendar::Schedule;
use crate::runs::ScheduleOrder;

pub(super) async fn schedule(context: &Context, command: ScheduleCommand) -> Result<u8, Failure> {
    match command {
        ScheduleCommand::Add(args) => add::add(context, &args).await,
        ScheduleCommand::List => list::list(context).await,
        ScheduleCommand::Next(args) => next::next(context, &args),
        ScheduleCommand::Pause(named) => list::order(context, &named.name, ScheduleOrder::Pause).await,
        ScheduleCommand::Resume(named) => list::order(context, &named.name, list::resume()).await,
        ScheduleCommand::Remove(named) => list::order(context, &named.name, ScheduleOrder::Remove).await,
    }
}

/// Why a campaign with a schedule is not sent by `run` alone.
pub(super) fn not_due(campaign: &Path, schedule: &Schedule, output: &Output) -> Failure {
    let at_once = output.command(format!("run {} --now", file(campaign)));
    Failure::wrong(match schedule.after(Timestamp::now()).next() {
        Some(next) => {
            let when = words::date(&next);
            format!("`{}` has a schedule and is due {when}; `{at_once}` sends it at once", campaign.display())
        }
        None => {
            let (over, status) = (words::over(campaign, &output.options), output.command("status"));
            format!("{over}; `{at_once}` sends it at once: first check in `{status}` that it was not sent")
        }
    })
}
