//! `campaign schedule next`: the next occurrences of a campaign.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use serde_json::json;

use super::words;
use crate::calendar::{Occurrence, Schedule};
use crate::cli::args::NextArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::hint::FUTURE_DATE;
use crate::cli::suggested::file;
use crate::manifest::{Day, load_campaign};
use crate::runs::{Error, ScheduleRefusal};

pub(super) fn next(context: &Context, args: &NextArgs) -> Result<u8, Failure> {
    // Files with a date in their name need not exist yet.
    let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::system()).date();
    let loaded = load_campaign(&args.file, Day::Coming(today));
    let Some(campaign) = loaded.value else { return Err(Error::Findings(loaded.findings).into()) };
    let none = || Error::Schedule(ScheduleRefusal::None { file: args.file.clone() });
    let schedule = campaign.schedule.as_ref().ok_or_else(none)?;
    let from = args.from.as_deref().map_or_else(|| Ok(Timestamp::now()), |from| moment(from, schedule))?;
    let next: Vec<Occurrence> = schedule.after(from).take(args.count as usize).collect();
    if context.output.json {
        context.output.object(&next.iter().map(object).collect::<Vec<_>>());
        return Ok(exit::FINE);
    }
    let options = &context.output.options;
    if next.is_empty() {
        let check = options.command(format!("check {}", file(&args.file)));
        let over = ScheduleRefusal::Over { file: args.file.clone() };
        context.output.result(format!("{over}\n{FUTURE_DATE}\nnext: {check}\n"));
        return Ok(exit::FINE);
    }
    let text: String = next.iter().map(|next| format!("{}\n", words::date(next))).collect();
    let arm = words::arm(&args.file, options);
    context.output.result(format!("{text}next: {arm}\n"));
    Ok(exit::FINE)
}

/// A moment that was typed; without an offset it is on the schedule's clocks.
fn moment(text: &str, schedule: &Schedule) -> Result<Timestamp, Failure> {
    let local = DateTime::strptime("%Y-%m-%d %H:%M", text)
        .or_else(|_| text.parse())
        .or_else(|_| Date::strptime("%Y-%m-%d", text).map(|date| date.at(0, 0, 0, 0)));
    let there = |local| Some(Occurrence::of(local, &schedule.zone)?.at);
    text.parse().ok().or_else(|| local.ok().and_then(there)).ok_or_else(|| {
        let help = "write it as `2026-12-01`, `2026-12-01 10:00` or `2026-12-01T10:00:00+02:00`";
        Failure::wrong(format!("`{text}` is not a valid time")).with_help(help)
    })
}

fn object(occurrence: &Occurrence) -> serde_json::Value {
    json!({ "at": occurrence.moment(), "local": occurrence.name(), "zone": occurrence.zone_name() })
}
