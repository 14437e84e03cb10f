//! The log of `campaign serve` about schedules.

use std::sync::Arc;

use super::words;
use crate::calendar::Occurrence;
use crate::cli::output::Output;
use crate::cli::suggested::Options;
use crate::finding::one_line;
use crate::metrics::{Metrics, OccurrenceResult};
use crate::report::counts_line_in_part;
use crate::runs::short;
use crate::schedule::{ScheduleEvent, ScheduleObserver, SkipReason};

/// Logs and counts events.
pub(in crate::cli) fn observer(output: &Output, metrics: Arc<Metrics>) -> ScheduleObserver {
    let output = output.clone();
    Arc::new(move |event| {
        let line = line(&event, &output.options);
        match &event {
            // The log of a server contains problems in every output format.
            ScheduleEvent::Damaged { .. } => tracing::error!("{line}"),
            ScheduleEvent::Skipped { .. } | ScheduleEvent::Broke { .. } | ScheduleEvent::Changed { .. } => {
                tracing::warn!("{}", one_line(&line));
            }
            _ => output.note(&line),
        }
        count(&event, &metrics);
    })
}

fn count(event: &ScheduleEvent, metrics: &Metrics) {
    match event {
        ScheduleEvent::Ended { .. } | ScheduleEvent::Broke { .. } => metrics.occurrence(OccurrenceResult::Fired),
        ScheduleEvent::Skipped { reason, before, .. } => {
            (0..*before).for_each(|_| metrics.occurrence(OccurrenceResult::Missed));
            metrics.occurrence(match reason {
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
fn line(event: &ScheduleEvent, options: &Options) -> String {
    let of = |schedule: &str, occurrence: &Occurrence| format!("{schedule} · {}", words::date(occurrence));
    match event {
        ScheduleEvent::Waiting { schedule, occurrence } => {
            format!("{} · waiting for its list", of(schedule, occurrence))
        }
        ScheduleEvent::Unapproved { schedule, occurrence, digest } => {
            let approve = options.command(format!("approve {} --key FILE", short(digest)));
            format!("{} · waiting for an approval: {approve}", of(schedule, occurrence))
        }
        ScheduleEvent::Ended { schedule, occurrence, ended, same_text } => {
            let (name, counts) = (ended.run.name(), counts_line_in_part(&ended.counts, ended.in_part));
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
            format!("{} · skipped{others}: {}", of(schedule, occurrence), reason.record())
        }
        ScheduleEvent::Changed { schedule, change, findings } => {
            let findings: String = findings.iter().map(|finding| format!("; {finding}")).collect();
            format!("{schedule} · has changed since it was activated, so it sends nothing: {change}{findings}")
        }
        ScheduleEvent::Damaged { schedule, problem } => {
            let (schedule, problem) = (one_line(schedule), one_line(problem));
            let check = options.command("ledger check");
            format!("{schedule} · damaged, so it sends nothing: {problem}; check the ledger with `{check}`")
        }
    }
}
