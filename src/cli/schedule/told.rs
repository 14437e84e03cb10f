//! The log of `campaign serve` about schedules.

use std::sync::Arc;

use super::words;
use crate::calendar::Occurrence;
use crate::cli::output::Output;
use crate::cli::suggested::RepeatedOptions;
use crate::finding::escape_to_one_line;
use crate::metrics::{Metrics, OccurrenceResult};
use crate::report::format_counts_in_part;
use crate::runs::short_digest;
use crate::schedule::{ScheduleEvent, ScheduleObserver, SkipReason};

/// Logs and counts events.
pub(in crate::cli) fn schedule_observer(output: &Output, metrics: Arc<Metrics>) -> ScheduleObserver {
    let output = output.clone();
    Arc::new(move |event| {
        let line = describe_event(&event, &output.options);
        match &event {
            // The log of a server contains problems in every output format.
            ScheduleEvent::Damaged { .. } => tracing::error!("{line}"),
            ScheduleEvent::Skipped { .. } | ScheduleEvent::Broke { .. } | ScheduleEvent::Changed { .. } => {
                tracing::warn!("{}", escape_to_one_line(&line));
            }
            _ => output.print_note(&line),
        }
        count_event(&event, &metrics);
    })
}

fn count_event(event: &ScheduleEvent, metrics: &Metrics) {
    match event {
        ScheduleEvent::Ended { .. } | ScheduleEvent::Broke { .. } => metrics.count_occurrence(OccurrenceResult::Fired),
        ScheduleEvent::Skipped { reason, before, .. } => {
            (0..*before).for_each(|_| metrics.count_occurrence(OccurrenceResult::Missed));
            metrics.count_occurrence(match reason {
                SkipReason::Missed => OccurrenceResult::Missed,
                SkipReason::Busy | SkipReason::Overtaken => OccurrenceResult::StillRunning,
                SkipReason::Changed(..) => OccurrenceResult::Changed,
                SkipReason::NoList(_)
                | SkipReason::Unapproved
                | SkipReason::NobodyLeft
                | SkipReason::Damaged(_)
                | SkipReason::Refused(_) => OccurrenceResult::Refused,
            });
        }
        ScheduleEvent::Waiting { .. }
        | ScheduleEvent::Unapproved { .. }
        | ScheduleEvent::Changed { .. }
        | ScheduleEvent::Damaged { .. } => {}
    }
}

/// An event as a line.
fn describe_event(event: &ScheduleEvent, options: &RepeatedOptions) -> String {
    let of = |schedule: &str, occurrence: &Occurrence| format!("{schedule} · {}", words::format_occurrence(occurrence));
    match event {
        ScheduleEvent::Waiting { schedule, occurrence } => {
            format!("{} · waiting for its list", of(schedule, occurrence))
        }
        ScheduleEvent::Unapproved { schedule, occurrence, digest } => {
            let approve = options.command(format!("approve {} --key FILE", short_digest(digest)));
            format!("{} · waiting for an approval: {approve}", of(schedule, occurrence))
        }
        ScheduleEvent::Ended { schedule, occurrence, ended, same_text } => {
            let (name, counts) = (ended.run.name(), format_counts_in_part(&ended.counts, ended.in_part));
            let how = match &ended.stop {
                Some(stop) => format!("stopped: {}", stop.reason),
                None => "finished".to_owned(),
            };
            let same = if *same_text { "; the message was the same as the previous one" } else { "" };
            format!("{} · {name} {how} · {counts}{same}", of(schedule, occurrence))
        }
        ScheduleEvent::Broke { schedule, occurrence, why } => {
            format!("{} · failed: {why}", of(schedule, occurrence))
        }
        ScheduleEvent::Skipped { schedule, occurrence, before, reason } => {
            let others = match before {
                0 => String::new(),
                before => format!(" (and {before} earlier)"),
            };
            format!("{} · skipped{others}: {}", of(schedule, occurrence), reason.to_record())
        }
        ScheduleEvent::Changed { schedule, change, findings } => {
            let findings: String = findings.iter().map(|finding| format!("; {finding}")).collect();
            format!("{schedule} · has changed since it was activated, so it sends nothing: {change}{findings}")
        }
        ScheduleEvent::Damaged { schedule, problem } => {
            let (schedule, problem) = (escape_to_one_line(schedule), escape_to_one_line(problem));
            let check = options.command("ledger check");
            format!("{schedule} · damaged, so it sends nothing: {problem}; check the ledger with `{check}`")
        }
    }
}
