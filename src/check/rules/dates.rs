//! Dates of schedules in findings, and helpers of the rules about times.

use crate::calendar::{Occurrence, OccurrenceOutlook, Outlook, ScheduledRun};
use crate::check::timing::TimedCampaign;
use crate::finding::SourceLocation;

/// How many dates a finding names.
const MAX_NAMED: usize = 3;

/// A date of a schedule with its day of the week: `Mon 2026-12-07 10:00`.
pub(super) fn format_date(occurrence: &Occurrence) -> String {
    occurrence.nominal.strftime("%a %Y-%m-%d %H:%M").to_string()
}

/// Dates of a schedule: the first few, then the number of the others.
pub(super) fn format_dates(dates: &[&Occurrence]) -> String {
    let mut named: Vec<String> = dates.iter().take(MAX_NAMED).map(|date| format_date(date)).collect();
    match dates.len() - named.len() {
        0 => {}
        1 => named.push("one more date".to_owned()),
        more => named.push(format!("{more} more dates")),
    }
    let last = named.pop().unwrap_or_default();
    if named.is_empty() { last } else { format!("{} and {last}", named.join(", ")) }
}

/// The runs that send, with their dates.
pub(super) fn sending_runs(runs: &[ScheduledRun]) -> impl Iterator<Item = (&Occurrence, Outlook)> {
    runs.iter().filter_map(|run| match run.outlook {
        OccurrenceOutlook::Sends(outlook) => Some((&run.occurrence, outlook)),
        OccurrenceOutlook::SendsNothing(_) | OccurrenceOutlook::Busy(_) => None,
    })
}

/// The reason why no message of a run can leave.
pub(super) fn describe_obstacle(timed: &TimedCampaign<'_>, outlook: &Outlook) -> String {
    match (outlook.opens, outlook.ends) {
        (None, _) => "the window does not open within a year".to_owned(),
        (Some(_), Some(ends)) if ends <= outlook.begins => {
            format!("`until` is {}, before the run starts", timed.format_date(ends))
        }
        (Some(opens), Some(ends)) => {
            let (ends, opens) = (timed.format_date(ends), timed.format_date(opens));
            let hours = timed.windows.join(" and ");
            format!("`until` ends the run at {ends}, before the window opens at {opens} (the window is {hours})")
        }
        (Some(_), None) => String::new(),
    }
}

/// The times of the schedule as the campaign file writes them: `every: Mon 10:00`.
pub(super) fn format_written_times(timed: &TimedCampaign<'_>) -> Option<String> {
    ["at", "every", "cron"].into_iter().find_map(|key| {
        let place = timed.campaign.places.locate_key(&format!("schedule.{key}"))?;
        let times = place.source.text().get(place.span)?.trim_matches(['"', '\'']);
        (!times.contains('\n')).then(|| format!("`{key}: {times}`"))
    })
}

/// The first of these keys that the campaign has.
pub(super) fn find_key_place(timed: &TimedCampaign<'_>, keys: &[&str]) -> Option<SourceLocation> {
    keys.iter().find_map(|key| timed.campaign.places.locate_key(key))
}

/// The place of the schedule's times.
pub(super) fn find_times_place(timed: &TimedCampaign<'_>) -> Option<SourceLocation> {
    find_key_place(timed, &["schedule.at", "schedule.every", "schedule.cron", "schedule"])
}
