//! `campaign schedule next`: the next occurrences of a campaign.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use serde_json::json;

use super::words;
use crate::calendar::{Occurrence, Schedule};
use crate::cli::args::NextArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::hint::FUTURE_DATE_HINT;
use crate::cli::suggested::shell_path;
use crate::manifest::{CampaignDay, load_campaign};
use crate::runs::{Error, ScheduleRefusal};

pub(super) fn show_next(context: &Context, args: &NextArgs) -> Result<u8, CommandFailure> {
    // Files with a date in their name need not exist yet.
    let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::system()).date();
    let loaded = load_campaign(&args.file, CampaignDay::Coming(today));
    let Some(campaign) = loaded.value else { return Err(Error::Findings(loaded.findings).into()) };
    let none = || Error::Schedule(ScheduleRefusal::None { file: args.file.clone() });
    let schedule = campaign.schedule.as_ref().ok_or_else(none)?;
    let from = args.from.as_deref().map_or_else(|| Ok(Timestamp::now()), |from| parse_moment(from, schedule))?;
    let next: Vec<Occurrence> = schedule.occurrences_after(from).take(args.count as usize).collect();
    if context.output.json {
        context.output.print_object(&next.iter().map(occurrence_json).collect::<Vec<_>>());
        return Ok(exit::SUCCESS);
    }
    let options = &context.output.options;
    if next.is_empty() {
        let check = options.command(format!("check {}", shell_path(&args.file)));
        let over = ScheduleRefusal::Over { file: args.file.clone() };
        context.output.print_result(format!("{over}\n{FUTURE_DATE_HINT}\nnext: {check}\n"));
        return Ok(exit::SUCCESS);
    }
    let text: String = next.iter().map(|next| format!("{}\n", words::format_occurrence(next))).collect();
    let arm = words::activation_command(&args.file, options);
    context.output.print_result(format!("{text}next: {arm}\n"));
    Ok(exit::SUCCESS)
}

/// A moment that was typed; without an offset it is on the schedule's clocks.
fn parse_moment(text: &str, schedule: &Schedule) -> Result<Timestamp, CommandFailure> {
    let local = DateTime::strptime("%Y-%m-%d %H:%M", text)
        .or_else(|_| text.parse())
        .or_else(|_| Date::strptime("%Y-%m-%d", text).map(|date| date.at(0, 0, 0, 0)));
    let there = |local| Some(Occurrence::at_local_time(local, &schedule.zone)?.at);
    text.parse().ok().or_else(|| local.ok().and_then(there)).ok_or_else(|| {
        let help = "write it as `2026-12-01`, `2026-12-01 10:00` or `2026-12-01T10:00:00+02:00`";
        CommandFailure::invalid(format!("`{text}` is not a valid time")).with_help(help)
    })
}

fn occurrence_json(occurrence: &Occurrence) -> serde_json::Value {
    json!({ "at": occurrence.format_moment(), "local": occurrence.format_nominal(), "zone": occurrence.zone_name() })
}
