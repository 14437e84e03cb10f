//! `campaign schedule`: what runs by itself.

mod next;

use std::path::Path;

use jiff::Timestamp;

use super::args::ScheduleCommand;
use super::context::Context;
use super::failure::Failure;
use super::output::Output;
use super::suggested::file;
use crate::calendar::Schedule;

pub(super) async fn schedule(context: &Context, command: ScheduleCommand) -> Result<u8, Failure> {
    match command {
        ScheduleCommand::Next(args) => next::next(context, &args),
    }
}

/// Why a campaign with a schedule is not sent by `run` alone.
pub(super) fn not_due(campaign: &Path, schedule: &Schedule, output: &Output) -> Failure {
    let when = match schedule.after(Timestamp::now()).next() {
        Some(next) => format!("is due {}", next::words(&next, schedule)),
        None => "is not due any more".to_owned(),
    };
    let at_once = output.command(format!("run {} --now", file(campaign)));
    Failure::wrong(format!("`{}` has a schedule and {when}; `{at_once}` sends it at once", campaign.display()))
}
