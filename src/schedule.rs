//! `campaign schedule`: activates, lists, pauses and removes schedules. Also logs and counts the scheduler's events.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use serde_json::{Value, json};

use super::args::{NextArgs, ScheduleAddArgs, ScheduleCommand};
use super::context::{Context, LEDGER_FILE};
use super::exit::CommandFailure;
use super::hint::FUTURE_DATE_HINT;
use super::output::Output;
use super::state_folder::LedgerPurpose;
use super::suggested::{RepeatedOptions, shell_path};
use super::text::{Span, StyledLine, StyledText, TerminalTable, bad, caution, dim, good, plain, strong};
use super::{consent, exit};
use campaign_core::calendar::{InvertedZone, Occurrence, Schedule};
use campaign_core::finding::{BriefFinding, Severity, escape_to_one_line, findings_json};
use campaign_engine::report::{format_counts_with_partial, is_owned};
use campaign_ledger::memory::{LedgerContents, MemoryLedger};
use campaign_ledger::{Ledger, RunFilter, SqliteLedger};
use campaign_manifest::{CampaignDay, load_campaign};
use campaign_net::metrics::{Metrics, OccurrenceResult};
use campaign_runs::{
    Error, PendingOccurrence, PendingState, ScheduleActivation, ScheduleOrder, ScheduleRefusal, ScheduleStatus,
    ScheduleView, SkippedOccurrence, apply_schedule_order, load_schedule_views, short_digest,
};
use campaign_server::scheduler::{ScheduleEvent, ScheduleObserver, SkipReason};

pub(super) async fn run_schedule_command(context: &Context, command: ScheduleCommand) -> Result<u8, CommandFailure> {
    match command {
        ScheduleCommand::Add(args) => activate_schedule(context, &args).await,
        ScheduleCommand::List => list_schedules(context).await,
        ScheduleCommand::Next(args) => show_next(context, &args),
        ScheduleCommand::Pause(args) => change_schedule(context, &args.name, ScheduleOrder::Pause).await,
        ScheduleCommand::Resume(args) => change_schedule(context, &args.name, resume_order()).await,
        ScheduleCommand::Remove(args) => change_schedule(context, &args.name, ScheduleOrder::Remove).await,
    }
}

/// The failure of `run` for a campaign with a schedule that is not due.
pub(super) fn not_due_failure(campaign: &Path, schedule: &Schedule, output: &Output) -> CommandFailure {
    let run_now = output.command(format!("run {} --now", shell_path(campaign)));
    match schedule.occurrences_after(Timestamp::now()).next() {
        Some(next) => {
            let when = format_occurrence(&next);
            CommandFailure::invalid(format!(
                "`{}` has a schedule and is due {when}; nothing was sent",
                campaign.display()
            ))
            .with_help(format!("to send it now: `{run_now}`"))
        }
        None => {
            let (expired, status) = (ScheduleRefusal::Over { file: campaign.to_owned() }, output.command("status"));
            CommandFailure::invalid(expired.to_string()).with_help(format!(
                "{FUTURE_DATE_HINT}; to send it now, use `{status}` to check that it has not been sent yet, then run \
                 `{run_now}`"
            ))
        }
    }
}

/// The warning about a schedule whose runs all send the same message.
const SAME_MESSAGE_NOTE: &str = "each run sends the same message; to change it each time, use `{{ today }}` in a \
                                 template, or in the file name of the list or a template";

/// Explains a missing gateway without suggesting `--gateway`, which `schedule add` does not have.
fn explain_missing_gateway(error: Error) -> CommandFailure {
    match error {
        Error::NoGatewayNamed => CommandFailure::invalid("the campaign does not specify a gateway")
            .with_help("set `gateway: NAME` in the campaign file"),
        error => error.into(),
    }
}

/// The width of the labels below an activated schedule.
const LABEL_WIDTH: usize = 11;

async fn activate_schedule(context: &Context, args: &ScheduleAddArgs) -> Result<u8, CommandFailure> {
    context.refuse_second_ledger(LedgerPurpose::Sending).await?;
    // A refused campaign leaves no ledger behind, so a missing ledger is created only after the confirmation.
    let (review_ledger, strays): (Arc<dyn Ledger>, _) = match context.has_ledger().await? {
        true => (context.open_ledger(LedgerPurpose::Sending).await?, None),
        false => {
            let strays = SqliteLedger::list_copies_without_ledger(&context.state_folder()?.join(LEDGER_FILE));
            (Arc::new(MemoryLedger::new(LedgerContents::default(), Timestamp::now)), Some(strays))
        }
    };
    let has_ledger = strays.is_none();
    let adapters = context.adapters(Arc::clone(&review_ledger))?;
    let activation =
        ScheduleActivation::review(&adapters, &args.file, strays).await.map_err(explain_missing_gateway)?;
    let (findings, repeats_itself) = (activation.findings.clone(), activation.repeats_itself);
    if !context.output.json {
        context.output.print_findings(&findings);
    }
    let (next, was_active, lacks_list) = (activation.next.clone(), activation.was_active, activation.survey.is_none());
    let list = &activation.inputs.campaign.recipients;
    let list = match list.list_file() {
        Some(file) => format!("{}, which does not exist yet", shell_path(file.path())),
        None => format!("{list}, which is fetched when the run is due"),
    };
    let confirmed = activation.confirm(consent::choose_consent(&context.output, args.yes).as_ref()).await?;
    let ledger = match has_ledger {
        true => review_ledger,
        false => context.open_ledger(LedgerPurpose::Sending).await?,
    };
    let schedule = confirmed.activate(&context.adapters(Arc::clone(&ledger))?).await?;
    if context.output.json {
        let next: Vec<_> = next.iter().map(Occurrence::format_moment).collect();
        let (name, file) = (&schedule.name, &schedule.file);
        let warnings = findings.iter().filter(|finding| finding.severity == Severity::Warning);
        let mut warnings: Vec<&str> = warnings.map(|finding| finding.message.as_str()).collect();
        warnings.extend(repeats_itself.then_some(SAME_MESSAGE_NOTE));
        let object = json!({
            "name": name, "file": file, "state": "armed", "next": next, "warnings": warnings,
            "findings": findings_json(&findings), "exit": exit::SUCCESS,
        });
        context.output.print_object(&object);
        return Ok(exit::SUCCESS);
    }
    let is_active = if was_active { " is active again" } else { " is active" };
    let name = schedule.name;
    let mut text = StyledText::from(StyledLine::new([good("✓ "), strong(name.as_str()), is_active.into()]));
    for (index, next) in next.iter().enumerate() {
        let label = if index == 0 { "next runs" } else { "" };
        text.add_line(2, [dim(format!("{label:<LABEL_WIDTH$}")), format_occurrence(next).into()]);
    }
    if lacks_list {
        text.add_line(2, [dim(format!("{:<LABEL_WIDTH$}", "list")), list.into()]);
    }
    if repeats_itself {
        text.add_line(2, [caution("warning:"), format!(" {SAME_MESSAGE_NOTE}").into()]);
    }
    text.extend(describe_unfinished_runs(&context.output, ledger.as_ref(), &name).await?);
    text.add_line(2, ["The schedule sends messages while `campaign serve` is running.".into()]);
    text.push(StyledLine::next_step(context.output.command("serve")));
    context.output.print_done(text, exit::SUCCESS);
    Ok(exit::SUCCESS)
}

async fn list_schedules(context: &Context) -> Result<u8, CommandFailure> {
    let views = match context.open_existing_ledger().await? {
        Some(ledger) => load_schedule_views(&context.adapters(ledger)?).await?,
        None => Vec::new(),
    };
    if context.output.json {
        context.output.print_object(&views.iter().map(ScheduleView::to_json).collect::<Vec<Value>>());
        return Ok(exit::SUCCESS);
    }
    if views.is_empty() {
        let add = context.output.command("schedule add FILE");
        context.output.print_result(format!("no active schedules\nnext: {add}\n"));
        return Ok(exit::SUCCESS);
    }
    let changed = views.iter().find(|view| matches!(view.state, ScheduleStatus::Changed(_)));
    let has_damaged = views.iter().any(|view| matches!(view.state, ScheduleStatus::Damaged(_)));
    let next = match changed {
        _ if has_damaged => context.output.command("ledger check"),
        Some(changed) => activation_command(changed.file.as_ref(), &context.output.options),
        None => match first_if_all_paused(&views) {
            Some(name) => context.output.command(format!("schedule resume {name}")),
            None => context.output.command("serve"),
        },
    };
    let mut text =
        StyledText::from(TerminalTable::new(["schedule", "state", "next"], views.iter().map(schedule_spans)));
    views.iter().for_each(|view| text.extend(schedule_details(view, &context.output.options)));
    text.push(StyledLine::next_step(next));
    context.output.print_result(text);
    Ok(exit::SUCCESS)
}

/// The name of the first schedule if all schedules are paused.
fn first_if_all_paused(views: &[ScheduleView]) -> Option<&str> {
    let is_paused = |view: &ScheduleView| matches!(view.state, ScheduleStatus::Paused);
    views.first().filter(|_| views.iter().all(is_paused)).map(|view| view.name.as_str())
}

/// Describes why the last occurrence of a schedule was skipped, what a due occurrence waits for, and the findings about
/// the file.
fn schedule_details(view: &ScheduleView, options: &RepeatedOptions) -> StyledText {
    let mut text = StyledText::new();
    if let Some(SkippedOccurrence { occurrence, record }) = &view.skipped {
        let date = format_occurrence(occurrence);
        let skip_note = format!(" · {date} was skipped: {}", record.why);
        text.push(StyledLine::attention([strong(view.name.as_str()), plain(skip_note)]));
        record.findings.iter().for_each(|finding| add_finding(&mut text, finding));
    }
    if let Some(PendingOccurrence { occurrence, state }) = &view.pending {
        let words = match state {
            PendingState::Due => "is due, but has not begun".to_owned(),
            PendingState::AwaitsList(list) => format!("is due: waiting for its list: {}", shell_path(list)),
            PendingState::AwaitsApproval(digest) => {
                format!("is due: waiting for approval: {}", approval_command(digest, options))
            }
            PendingState::Missed => "was missed and will not be sent".to_owned(),
        };
        let note = format!(" · {} {words}", format_occurrence(occurrence));
        text.push(StyledLine::attention([strong(view.name.as_str()), plain(note)]));
    }
    if !view.findings.is_empty() {
        text.push(StyledLine::failure([strong(view.name.as_str()), plain(" · the campaign file now has errors:")]));
        view.findings.iter().for_each(|finding| add_finding(&mut text, finding));
    }
    text
}

fn add_finding(text: &mut StyledText, finding: &BriefFinding) {
    text.add_line(2, [plain(finding.to_string())]);
    if let Some(help) = &finding.help {
        text.extend(format!("    help: {}", escape_to_one_line(help)));
    }
}

/// Applies an order to a schedule, and reports the new state of the schedule.
async fn change_schedule(context: &Context, name: &str, order: ScheduleOrder) -> Result<u8, CommandFailure> {
    let Some(_) = context.open_existing_ledger().await? else {
        let unknown = ScheduleRefusal::Unknown { name: name.to_owned(), near: None, any: false };
        return Err(Error::Schedule(unknown).into());
    };
    let ledger = context.open_ledger(LedgerPurpose::SharedRecords).await?;
    let adapters = context.adapters(Arc::clone(&ledger))?;
    apply_schedule_order(&adapters, name, order).await?;
    let unfinished = describe_unfinished_runs(&context.output, ledger.as_ref(), name).await?;
    let mut next_run = None;
    let (state, words) = match order {
        ScheduleOrder::Pause => ("paused", "is paused; no run starts until it is resumed"),
        ScheduleOrder::Resume { .. } => {
            let view = load_schedule_views(&adapters).await?.into_iter().find(|view| view.name == name);
            if let Some(view) = view.as_ref().filter(|view| view.state != ScheduleStatus::Active) {
                report_resumed_without_effect(&context.output, view, unfinished);
                return Ok(exit::SUCCESS);
            }
            next_run = view.and_then(|view| view.next);
            match next_run {
                Some(_) => ("armed", "is active again; missed runs are not sent"),
                None => ("armed", "is active again, but has no further runs; missed runs are not sent"),
            }
        }
        ScheduleOrder::Remove => ("removed", "is no longer active"),
    };
    if context.output.json {
        context.output.print_object(&json!({ "name": name, "state": state, "exit": exit::SUCCESS }));
    } else {
        let list = context.output.command("schedule list");
        let mut text = StyledText::from(StyledLine::success([strong(name), plain(format!(" {words}"))]));
        if let Some(next) = &next_run {
            text.add_line(2, [dim(format!("{:<LABEL_WIDTH$}", "next run")), format_occurrence(next).into()]);
        }
        text.extend(unfinished);
        text.push(StyledLine::next_step(list));
        context.output.print_done(text, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Reports a resumed schedule that sends nothing, with the reason and the next step.
fn report_resumed_without_effect(output: &Output, view: &ScheduleView, unfinished: StyledText) {
    let (reason, next) = match &view.state {
        ScheduleStatus::Changed(change) => {
            (change.to_string(), activation_command(view.file.as_ref(), &output.options))
        }
        ScheduleStatus::Damaged(problem) => (escape_to_one_line(problem), output.command("ledger check")),
        ScheduleStatus::Active | ScheduleStatus::Paused => {
            ("another command paused it".to_owned(), output.command("schedule list"))
        }
    };
    if output.json {
        let (state, help) = (view.state.as_str(), format!("the schedule sends nothing: {reason}; next: {next}"));
        output.print_object(&json!({ "name": view.name, "state": state, "help": help, "exit": exit::SUCCESS }));
        return;
    }
    let words = format!(" is no longer paused, but sends nothing: {reason}");
    let mut text = StyledText::from(StyledLine::attention([strong(view.name.as_str()), plain(words)]));
    text.extend(unfinished);
    text.push(StyledLine::next_step(next));
    output.print_done(text, exit::SUCCESS);
}

/// Describes the unfinished runs of a campaign, which a change to its schedule does not stop.
async fn describe_unfinished_runs(
    output: &Output,
    ledger: &dyn Ledger,
    campaign: &str,
) -> Result<StyledText, CommandFailure> {
    let filter = RunFilter { open: true, live: true, ..RunFilter::for_campaign(campaign) };
    let mut text = StyledText::new();
    for run in ledger.list_runs(filter).await? {
        let words = match is_owned(ledger, &run).await? {
            true => {
                format!("{} is being sent; to stop it: {}", run.name(), output.command(format!("stop {}", run.name())))
            }
            false => {
                let cancel = output.command(format!("stop {} --for-good", run.name()));
                format!("{} is unfinished and can still send; to cancel it: {cancel}", run.name())
            }
        };
        text.add_line(2, [caution(words)]);
    }
    Ok(text)
}

fn resume_order() -> ScheduleOrder {
    ScheduleOrder::Resume { since: Timestamp::now() }
}

fn schedule_spans(view: &ScheduleView) -> [Span; 3] {
    let next = match (&view.state, &view.next) {
        (ScheduleStatus::Active, Some(next)) => format_occurrence(next),
        (ScheduleStatus::Active, None) => "no further runs".to_owned(),
        (ScheduleStatus::Paused, _) => String::new(),
        (ScheduleStatus::Changed(change), _) => format!("{change}; activate the schedule again"),
        (ScheduleStatus::Damaged(problem), _) => format!("nothing is sent: {}", escape_to_one_line(problem)),
    };
    let state = match &view.state {
        ScheduleStatus::Active => good("active"),
        ScheduleStatus::Paused => caution("paused"),
        ScheduleStatus::Changed(_) => bad("changed"),
        ScheduleStatus::Damaged(_) => bad("damaged"),
    };
    [strong(view.name.as_str()), state, plain(next)]
}

fn show_next(context: &Context, args: &NextArgs) -> Result<u8, CommandFailure> {
    // Files with a date in their name might not exist yet.
    let today = Timestamp::now().to_zoned(jiff::tz::TimeZone::system()).date();
    let loaded = load_campaign(&args.file, CampaignDay::Coming(today));
    let Some(campaign) = loaded.value else { return Err(Error::Findings(loaded.findings).into()) };
    let no_schedule = || Error::Schedule(ScheduleRefusal::None { file: args.file.clone() });
    let schedule = campaign.schedule.as_ref().ok_or_else(no_schedule)?;
    let from = args.from.as_deref().map_or_else(|| Ok(Timestamp::now()), |from| parse_moment(from, schedule))?;
    let next: Vec<Occurrence> = schedule.occurrences_after(from).take(args.count as usize).collect();
    if context.output.json {
        context.output.print_object(&next.iter().map(occurrence_json).collect::<Vec<_>>());
        return Ok(exit::SUCCESS);
    }
    let options = &context.output.options;
    if next.is_empty() {
        let check = options.command(format!("check {}", shell_path(&args.file)));
        let expired = ScheduleRefusal::Over { file: args.file.clone() };
        context.output.print_result(format!("{expired}\n{FUTURE_DATE_HINT}\nnext: {check}\n"));
        return Ok(exit::SUCCESS);
    }
    let text: String = next.iter().map(|next| format!("{}\n", format_occurrence(next))).collect();
    let activate = activation_command(&args.file, options);
    context.output.print_result(format!("{text}next: {activate}\n"));
    Ok(exit::SUCCESS)
}

/// Parses a time. A time without an offset is in the time zone of the schedule.
fn parse_moment(text: &str, schedule: &Schedule) -> Result<Timestamp, CommandFailure> {
    let local = DateTime::strptime("%Y-%m-%d %H:%M", text)
        .or_else(|_| text.parse())
        .or_else(|_| Date::strptime("%Y-%m-%d", text).map(|date| date.at(0, 0, 0, 0)));
    let in_zone = |local| Some(Occurrence::at_local_time(local, &schedule.zone)?.at);
    text.parse().ok().or_else(|| local.ok().and_then(in_zone)).ok_or_else(|| {
        let help = "write it as `2026-12-01`, `2026-12-01 10:00` or `2026-12-01T10:00:00+02:00`";
        CommandFailure::invalid(format!("`{text}` is not a valid time")).with_help(help)
    })
}

fn occurrence_json(occurrence: &Occurrence) -> Value {
    json!({ "at": occurrence.format_moment(), "local": occurrence.format_nominal_time(), "zone": occurrence.zone_name() })
}

/// Formats an occurrence. A zone such as `Etc/GMT+2` is shown with its offset and its current time, because the sign in
/// its name is inverted.
pub(super) fn format_occurrence(occurrence: &Occurrence) -> String {
    let local_time = occurrence.local_time();
    let words = local_time.strftime("%a %-d %b %Y, %H:%M");
    let instead = match local_time.datetime() == occurrence.nominal {
        true => String::new(),
        false => format!(", instead of {}, which the clock change skips", occurrence.format_nominal_time()),
    };
    let zone = occurrence.zone_name();
    let inverted = InvertedZone::from_name(zone)
        .map(|zone| format!(", which is {}, now {}", zone.format_offset(), zone.format_local_time(Timestamp::now())));
    format!("{words} ({zone}{}){instead}", inverted.unwrap_or_default())
}

/// The command that activates a campaign's schedule.
pub(super) fn activation_command(campaign: &Path, options: &RepeatedOptions) -> String {
    options.command(format!("schedule add {}", shell_path(campaign)))
}

/// The command that approves a plan.
fn approval_command(digest: &str, options: &RepeatedOptions) -> String {
    options.command(format!("approve {} --key FILE", short_digest(digest)))
}

/// Creates an observer that logs and counts events.
pub(super) fn schedule_observer(output: &Output, metrics: Arc<Metrics>) -> ScheduleObserver {
    let output = output.clone();
    Arc::new(move |event| {
        let line = describe_event(&event, &output.options);
        match &event {
            // Problems go to the server's log, whatever the output format.
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
        ScheduleEvent::Skipped { reason, skipped_before, .. } => {
            (0..*skipped_before).for_each(|_| metrics.count_occurrence(OccurrenceResult::Missed));
            metrics.count_occurrence(match reason {
                SkipReason::Missed => OccurrenceResult::Missed,
                SkipReason::Busy | SkipReason::Overtaken => OccurrenceResult::StillRunning,
                SkipReason::Changed(..) => OccurrenceResult::Changed,
                SkipReason::NoList(_)
                | SkipReason::Unapproved
                | SkipReason::Withdrawn
                | SkipReason::NoRecipientsLeft
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

/// Describes an event on one line.
fn describe_event(event: &ScheduleEvent, options: &RepeatedOptions) -> String {
    let title = |schedule: &str, occurrence: &Occurrence| format!("{schedule} · {}", format_occurrence(occurrence));
    match event {
        ScheduleEvent::Waiting { schedule, occurrence } => {
            format!("{} · waiting for its list", title(schedule, occurrence))
        }
        ScheduleEvent::Unapproved { schedule, occurrence, digest } => {
            format!("{} · waiting for approval: {}", title(schedule, occurrence), approval_command(digest, options))
        }
        ScheduleEvent::Ended { schedule, occurrence, ended, same_text } => {
            let (name, counts) = (ended.run.name(), format_counts_with_partial(&ended.counts, ended.in_part));
            let outcome = match &ended.stop {
                Some(stop) => format!("stopped: {}", stop.reason),
                None => "finished".to_owned(),
            };
            let same = if *same_text { "; the message was the same as the previous one" } else { "" };
            format!("{} · {name} {outcome} · {counts}{same}", title(schedule, occurrence))
        }
        ScheduleEvent::Broke { schedule, occurrence, why } => {
            format!("{} · failed: {why}", title(schedule, occurrence))
        }
        ScheduleEvent::Skipped { schedule, occurrence, skipped_before, reason } => {
            let others = match skipped_before {
                0 => String::new(),
                skipped_before => format!(" (and {skipped_before} earlier)"),
            };
            format!("{} · skipped{others}: {}", title(schedule, occurrence), reason.to_record())
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
