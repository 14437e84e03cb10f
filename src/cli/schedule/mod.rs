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
use super::hint::FUTURE_DATE;
use super::output::Output;
use super::suggested::file;
use crate::calendar::Schedule;
use crate::runs::{ScheduleOrder, ScheduleRefusal};

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
    match schedule.after(Timestamp::now()).next() {
        Some(next) => {
            let when = words::date(&next);
            Failure::wrong(format!("`{}` has a schedule and is due {when}; nothing was sent", campaign.display()))
                .with_help(format!("to send it now: `{at_once}`"))
        }
        None => {
            let (over, status) = (ScheduleRefusal::Over { file: campaign.to_owned() }, output.command("status"));
            Failure::wrong(over.to_string()).with_help(format!(
                "{FUTURE_DATE}; to send it now, check with `{status}` that it has not been sent yet, then run `{at_once}`"
            ))
        }
    }
}
