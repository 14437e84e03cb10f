//! `campaign run`: sends a campaign, resumes an unfinished run, waits for a schedule, or rehearses with `--dry-run`.

mod outcome_printer;
mod summary;

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use roaring::RoaringBitmap;
use tokio::sync::watch;

use super::args::RunArgs;
use super::context::Context;
use super::exit::{CommandFailure, REJECTIONS, SUCCESS};
use super::output::Output;
use super::state_folder::LedgerPurpose;
use super::suggested::shell_path;
use super::{consent, process, sandbox, schedule, suggested};
use campaign_core::calendar::{Occurrence, Schedule, lateness};
use campaign_core::domain::choose_plural;
use campaign_core::finding::Finding;
use campaign_engine::check::{RunStart, Survey};
use campaign_engine::delivery::{Interrupt, SingleKind};
use campaign_engine::report::{describe_cost, format_count, format_duration, format_local_minute, format_thousands};
use campaign_ledger::{ExcludedRows, Ledger, RowState};
use campaign_manifest::{Campaign, CampaignBrief, Profile};
use campaign_runs::notify;
use campaign_runs::notify::AllowedPrograms;
use campaign_runs::{
    Error, Inputs, Launch, ProtectedFiles, RetryScope, Round, RunPhase, RunRequest, ScheduleRefusal, find_occurrence,
    find_occurrence_list_path, find_unfinished_run, load_occurrence,
};
use campaign_server::scheduler::{ListArrival, ListStart};
use outcome_printer::OutcomePrinter;
use summary::{RunSummary, Tone, print_run_summary};

pub(super) async fn run_campaign(context: &Context, args: RunArgs) -> Result<u8, CommandFailure> {
    if let Some(single) = args.file.to_str().and_then(SingleKind::from_name).filter(|_| !args.file.exists()) {
        return Err(Error::NoCampaign(single).into());
    }
    let (inputs, occurrence) = load_due_campaign(context, &args).await?;
    if !context.output.json {
        context.output.print_findings(&inputs.warnings);
    }
    if args.dry_run {
        return dry_run_campaign(context, inputs, &args).await;
    }
    if args.real_time && inputs.destination.is_live() {
        return Err(CommandFailure::invalid(
            "`--real-time` is only for rehearsals; a live run always sends at the configured rate",
        ));
    }
    if args.real_time && inputs.campaign.delivery.rate.is_none() {
        let help = "add `delivery: { rate: 10/s }` to the campaign, with your account's rate";
        return Err(CommandFailure::invalid("`--real-time` needs a rate, but the campaign has none").with_help(help));
    }
    if args.scenario.is_some() && inputs.destination.is_live() {
        let help = "add `--gateway sandbox`, or use the scenario with `campaign sandbox --scenario FILE`";
        return Err(
            CommandFailure::invalid("`--scenario` is only for rehearsals in the built-in sandbox").with_help(help)
        );
    }
    if args.shared && !inputs.destination.is_live() {
        let help = "add `--gateway NAME`; to rehearse, start `campaign sandbox`";
        return Err(
            CommandFailure::invalid("`--shared` needs a gateway that other processes can also reach").with_help(help)
        );
    }
    let scenario = args.scenario.as_deref().map(|file| sandbox::load_scenario_file(context, Some(file))).transpose()?;
    if args.yes && args.gateway.is_none() && !inputs.campaign.has_gateway_key() {
        return Err(Error::NoGatewayNamed.into());
    }
    let RunArgs { yes, limit, rows, gateway, again, accept_changes, up_to, up_to_abroad, .. } = args;
    let request = RunRequest {
        rows,
        limit,
        round: again.map_or(Round::Same, Round::Again),
        accept_changes,
        moved: args.moved,
        up_to,
        up_to_abroad,
        keep_going: args.keep_going,
        offline: args.offline,
        real_time: args.real_time,
        no_wait: args.no_wait,
        shared: args.shared,
        new_ledger: args.new_ledger,
        accept_duplicates: args.i_accept_duplicates,
        occurrence,
        plan: args.plan,
        approved_only: false,
        approval: args.approval,
        schedule_digest: None,
        scenario,
        confirmed_retry: None,
    };
    let launch = prepare_launch(context, Arc::clone(&inputs), request)?;
    let adapters = context.adapters(context.open_ledger_for(&launch).await?)?;
    let ledger = Arc::clone(&adapters.ledger);
    let spinner = context.output.show_spinner("Preparing the run…");
    let outcome = launch.run(adapters, consent::choose_consent(&context.output, yes), context.watch_signals()?).await?;
    drop(spinner);
    let code = build_outcome_printer(context, &inputs, gateway.as_deref()).print_outcome(outcome, args.real_time);
    send_notifications(context, ledger.as_ref()).await?;
    Ok(code)
}

/// Sends rows of a run again as new messages, through the gateway of the run.
pub(super) async fn retry_rows(
    context: &Context,
    file: &Path,
    gateway: &str,
    scope: RetryScope,
    request: RunRequest,
    is_confirmed: bool,
) -> Result<u8, CommandFailure> {
    let occurrence = match context.open_existing_ledger().await? {
        Some(ledger) => find_occurrence(ledger.as_ref(), scope.run).await?,
        None => None,
    };
    let inputs = load_inputs(context, file, Some(gateway), occurrence.as_ref())?;
    let launch = prepare_launch(context, Arc::clone(&inputs), request)?;
    let adapters = context.adapters(context.open_ledger_for(&launch).await?)?;
    let ledger = Arc::clone(&adapters.ledger);
    let spinner = context.output.show_spinner("Preparing the retry…");
    let outcome = launch
        .retry(adapters, consent::choose_consent(&context.output, is_confirmed), context.watch_signals()?, scope)
        .await?;
    drop(spinner);
    let code = build_outcome_printer(context, &inputs, Some(gateway)).print_outcome(outcome, false);
    send_notifications(context, ledger.as_ref()).await?;
    Ok(code)
}

/// Sends notifications about finished runs. A notification that cannot be sent only causes a warning.
///
/// # Errors
/// If the process cannot listen for signals.
async fn send_notifications(context: &Context, ledger: &dyn Ledger) -> Result<(), CommandFailure> {
    let mut interrupt = context.watch_signals()?;
    tokio::select! {
        result = notify::notify_at_run_end(ledger, Timestamp::now, &AllowedPrograms::All) => {
            if let Err(error) = result {
                tracing::warn!("cannot send notifications: {error}");
            }
        }
        _ = interrupt.wait_for(|interrupt| matches!(interrupt, Interrupt::Immediate(_))) => {}
    }
    Ok(())
}

fn build_outcome_printer<'a>(context: &'a Context, inputs: &'a Inputs, gateway: Option<&'a str>) -> OutcomePrinter<'a> {
    let profiles = context.profiles().load(Some(&inputs.campaign.file));
    // A loopback gateway is not suggested, because it reaches no recipients. The default name of a live gateway is an
    // exception.
    let is_suggested = |profile: &&Profile| !profile.is_loopback() || profile.name == suggested::LIVE_GATEWAY;
    let mut live_gateways: Vec<String> = profiles
        .iter()
        .flat_map(|profiles| profiles.profiles())
        .filter(is_suggested)
        .map(|profile| profile.name.clone())
        .collect();
    // If the campaign's own gateway has a profile, only that gateway is suggested.
    if profiles.is_ok_and(|profiles| profiles.profile_names().any(|name| name == inputs.own_gateway)) {
        live_gateways = vec![inputs.own_gateway.clone()];
    }
    OutcomePrinter { output: &context.output, inputs, gateway, live_gateways }
}

/// Loads the campaign, as of now or for an occurrence of its schedule, and checks the path of its results.
fn load_inputs(
    context: &Context,
    file: &Path,
    gateway: Option<&str>,
    occurrence: Option<&Occurrence>,
) -> Result<Arc<Inputs>, CommandFailure> {
    let (state, profiles) = (context.state_folder()?, context.profiles());
    let inputs = match occurrence {
        Some(occurrence) => Arc::new(load_occurrence(&profiles, file, gateway, occurrence)?),
        None => context.load_campaign(file, gateway)?,
    };
    match (ProtectedFiles { state: &state, profiles: &profiles }).check_results_target(&inputs) {
        Some(finding) => Err(Error::Findings(vec![finding]).into()),
        None => Ok(inputs),
    }
}

fn prepare_launch(context: &Context, inputs: Arc<Inputs>, request: RunRequest) -> Result<Launch, CommandFailure> {
    let (state, profiles) = (context.state_folder()?, context.profiles());
    let launch = Launch::prepare(inputs, request, ProtectedFiles { state: &state, profiles: &profiles })?;
    // Listen for signals before the ledger is opened.
    context.watch_signals()?;
    Ok(launch)
}

/// The interval between two reads of the campaign file while waiting.
const FILE_INTERVAL: Duration = Duration::from_secs(30);
/// The interval between two reads of the clock, which might be adjusted meanwhile.
const CLOCK_INTERVAL: Duration = Duration::from_secs(1);

/// Loads the campaign, and the due occurrence of its schedule if it has one.
async fn load_due_campaign(
    context: &Context,
    args: &RunArgs,
) -> Result<(Arc<Inputs>, Option<Occurrence>), CommandFailure> {
    let gateway = args.gateway.as_deref();
    let inputs = load_inputs(context, &args.file, gateway, None)?;
    if !args.dry_run {
        // Checked before waiting for the schedule.
        context.refuse_second_ledger(LedgerPurpose::from_destination(&inputs.destination)).await?;
    }
    let occurrence = match (&inputs.campaign.schedule, args.when_due) {
        (None, true) => return Err(Error::Schedule(ScheduleRefusal::None { file: args.file.clone() }).into()),
        (None, false) => None,
        (Some(_), false) if args.dry_run => None,
        // An unfinished run resumes with the occurrence, list and texts that it began with.
        (Some(schedule), false) => match find_unfinished_occurrence(context, &inputs).await? {
            Some(occurrence) => occurrence,
            None if args.now => None,
            None => return Err(schedule::not_due_failure(&args.file, schedule, &context.output)),
        },
        (Some(schedule), true) => Some(wait_until_due(context, args, schedule).await?),
    };
    match &occurrence {
        Some(_) => Ok((load_inputs(context, &args.file, gateway, occurrence.as_ref())?, occurrence)),
        None => Ok((inputs, None)),
    }
}

/// Finds the occurrence of a campaign's unfinished run. Returns `None` if there is no such run, and `Some(None)` if the
/// run has no occurrence.
async fn find_unfinished_occurrence(
    context: &Context,
    inputs: &Inputs,
) -> Result<Option<Option<Occurrence>>, CommandFailure> {
    let Some(ledger) = context.open_existing_ledger().await? else { return Ok(None) };
    match find_unfinished_run(ledger.as_ref(), inputs).await? {
        Some(run) => Ok(Some(find_occurrence(ledger.as_ref(), run.key).await?)),
        None => Ok(None),
    }
}

/// Waits with a countdown until a campaign is due and its list is complete. If a signal ends the wait, nothing is sent.
///
/// An occurrence that the machine slept through is skipped if it is late by more than `grace`. With `wait_for_file`, an
/// occurrence is also skipped if its list does not arrive in time. A live occurrence is skipped while the active
/// schedule is paused. If the schedule in the file changes, the new times apply.
async fn wait_until_due(context: &Context, args: &RunArgs, schedule: &Schedule) -> Result<Occurrence, CommandFailure> {
    let expired = || Error::Schedule(ScheduleRefusal::Over { file: args.file.clone() });
    let mut countdown = Countdown::start(context)?;
    let (mut schedule, mut read_at) = (schedule.clone(), Timestamp::now());
    let (mut handled, mut announced, mut is_live) = (read_at, None, true);
    loop {
        let now = Timestamp::now();
        let is_due = schedule.find_due(handled, now).current.is_some();
        if is_due || lateness(read_at, now) >= FILE_INTERVAL {
            read_at = now;
            match load_inputs(context, &args.file, args.gateway.as_deref(), None) {
                Ok(inputs) => {
                    is_live = inputs.destination.is_live();
                    let none = || Error::Schedule(ScheduleRefusal::None { file: args.file.clone() });
                    let current = inputs.campaign.schedule.clone().ok_or_else(none)?;
                    if current != schedule {
                        countdown.print_note("the schedule in the campaign file has changed");
                        schedule = current;
                    }
                }
                Err(error) if is_due => return Err(error),
                // A person might be editing the file.
                Err(_) => {}
            }
        }
        let due = schedule.find_due(handled, now);
        if let Some(missed) = &due.missed {
            handled = missed.at;
            countdown.print_note(&describe_missed_occurrence(missed, due.missed_before, now));
        }
        if let Some(occurrence) = due.current {
            handled = occurrence.at;
            if is_live && is_schedule_paused(context, &args.file).await? {
                let date = schedule::format_occurrence(&occurrence);
                countdown.print_note(&format!("the run scheduled for {date} will not be sent: the schedule is paused"));
                continue;
            }
            match wait_for_list(context, args, &schedule, occurrence, &mut countdown).await? {
                Ok(occurrence) => return Ok(occurrence),
                Err(skipped) => countdown.print_note(&skipped),
            }
            continue;
        }
        let next = schedule.occurrences_after(handled).next().ok_or_else(expired)?;
        if announced.as_ref() != Some(&next) {
            let due = schedule::format_occurrence(&next);
            countdown.print_note(&format!("due {due}; press Ctrl-C to stop waiting without sending"));
        }
        let time_left = Duration::try_from(next.at.duration_since(now)).unwrap_or_default();
        announced = Some(next);
        countdown.bar.set_message(format!("in {}", format_duration(time_left)));
        countdown.wait(time_left.min(CLOCK_INTERVAL)).await?;
    }
}

/// Whether the campaign in this file has an active schedule that is paused.
async fn is_schedule_paused(context: &Context, file: &Path) -> Result<bool, CommandFailure> {
    let Some(ledger) = context.open_existing_ledger().await? else { return Ok(false) };
    let Ok(file) = file.canonicalize() else { return Ok(false) };
    let stored = ledger.list_schedules().await?;
    Ok(stored.into_iter().flatten().any(|active| active.paused && Path::new(&active.file) == file))
}

/// Waits until the list of a due occurrence is complete, if the schedule has `wait_for_file`. Otherwise, returns the
/// occurrence at once. If the occurrence is skipped, the inner error describes why.
async fn wait_for_list(
    context: &Context,
    args: &RunArgs,
    schedule: &Schedule,
    occurrence: Occurrence,
    countdown: &mut Countdown<'_>,
) -> Result<Result<Occurrence, String>, CommandFailure> {
    if schedule.wait_for_file.is_none() {
        return Ok(Ok(occurrence));
    }
    let list = find_occurrence_list_path(&context.profiles(), &args.file, args.gateway.as_deref(), &occurrence)?;
    let now = Timestamp::now();
    let mut waiting = match ListStart::determine(schedule, occurrence.clone(), list, now) {
        ListStart::Now => return Ok(Ok(occurrence)),
        ListStart::TooLate => return Ok(Err(describe_missed_occurrence(&occurrence, 0, now))),
        ListStart::Awaits(waiting) => waiting,
    };
    let (list, date) = (shell_path(&waiting.list), schedule::format_occurrence(&occurrence));
    if waiting.is_missing() {
        let until = format_local_minute(waiting.until);
        let note = format!("waiting for the list until {until}: {list}; press Ctrl-C to stop waiting without sending");
        countdown.print_note(&note);
    }
    let next = schedule.occurrences_after(occurrence.at).next();
    countdown.bar.set_message("waiting for the list");
    loop {
        let now = Timestamp::now();
        let skipped = match waiting.check_arrival(now) {
            ListArrival::Complete => return Ok(Ok(occurrence)),
            ListArrival::Overdue => Some(format!("its list did not arrive in time: {list}")),
            ListArrival::Pending => {
                next.as_ref().filter(|next| next.at <= now).map(|_| "the next run is due".to_owned())
            }
        };
        if let Some(reason) = skipped {
            return Ok(Err(format!("the run scheduled for {date} will not be sent: {reason}")));
        }
        countdown.wait(CLOCK_INTERVAL).await?;
    }
}

/// Describes an occurrence that is too late, and the number of missed occurrences before it.
fn describe_missed_occurrence(missed: &Occurrence, before: usize, now: Timestamp) -> String {
    let others = match before {
        0 => String::new(),
        before => format!("; {before} earlier {} missed too", if before == 1 { "run was" } else { "runs were" }),
    };
    let (date, delay) = (schedule::format_occurrence(missed), format_duration(lateness(missed.at, now)));
    format!("the run scheduled for {date} is {delay} overdue and will not be sent{others}")
}

/// A countdown at the terminal. An interrupt ends it.
struct Countdown<'a> {
    output: &'a Output,
    interrupt: watch::Receiver<Interrupt>,
    bar: ProgressBar,
}

impl<'a> Countdown<'a> {
    fn start(context: &'a Context) -> Result<Self, CommandFailure> {
        let output = &context.output;
        let is_shown = !output.quiet && !output.json && std::io::stderr().is_terminal();
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        Ok(Self { output, interrupt: context.watch_signals()?, bar })
    }

    fn print_note(&self, note: &str) {
        self.bar.suspend(|| self.output.print_note(note));
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// If a signal interrupts the wait.
    async fn wait(&mut self, time: Duration) -> Result<(), CommandFailure> {
        tokio::select! {
            () = tokio::time::sleep(time) => Ok(()),
            signal = self.interrupt.wait_for(|interrupt| *interrupt != Interrupt::None) => {
                let signal = signal.ok().and_then(|interrupt| interrupt.signal()).unwrap_or(process::SIGINT);
                Err(Error::Interrupted { signal, phase: RunPhase::Preparing }.into())
            }
        }
    }
}

impl Drop for Countdown<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

async fn dry_run_campaign(context: &Context, inputs: Arc<Inputs>, args: &RunArgs) -> Result<u8, CommandFailure> {
    let (began, accept_changes) = (Instant::now(), args.accept_changes || args.moved);
    let (state, profiles, ledger) =
        (context.state_folder()?, context.profiles(), context.open_existing_ledger().await?);
    let inputs = context.fetch_list(inputs, true, ledger.as_deref()).await?;
    let files = ProtectedFiles { state: &state, profiles: &profiles };
    let spinner = context.output.show_spinner("Reading the list…");
    let dry_run = campaign_runs::dry_run(&inputs, ledger.as_deref(), files, accept_changes, &context.observer).await?;
    drop(spinner);
    let (campaign, survey) = (&inputs.campaign, &dry_run.survey.survey);
    let exit = if survey.count_by_state().get(RowState::Invalid) > 0 { REJECTIONS } else { SUCCESS };
    let rows = survey.planned_rows();
    let findings = dry_run.survey.warnings(&inputs, RunStart::At(Timestamp::now()));
    // A rehearsal ignores windows and deadlines.
    if inputs.destination.is_live() && findings.iter().any(Finding::is_error) {
        return Err(Error::Findings(findings).into());
    }
    if !context.output.json {
        context.output.print_findings(&findings);
    }
    let mut notes = vec!["A dry run sends no messages.".to_owned()];
    notes.extend(describe_excluded_rows(&survey.left_out));
    notes.extend(
        describe_variants(&campaign.brief, survey, &rows).map(|variant_counts| format!("variants: {variant_counts}")),
    );
    if let (Some(profile), Some(cost)) = (inputs.destination.profile(), dry_run.survey.compute_cost(&inputs, &rows)) {
        notes.push(format!("a run {}", describe_cost(&cost, profile.currency.as_deref())));
    }
    let next = match survey.count_planned() {
        0 => format!("check {}", shell_path(&campaign.file)),
        _ => run_arguments(campaign, args),
    };
    let summary = RunSummary {
        parts: survey.parts,
        time: began.elapsed(),
        how: "dry run",
        tone: if exit == SUCCESS { Tone::Good } else { Tone::Caution },
        results: Some(dry_run.results.display().to_string()),
        notes,
        next: context.output.command(next),
        ..RunSummary::without_sending(&campaign.brief, survey)
    };
    print_run_summary(&context.output, &summary, exit);
    Ok(exit)
}

/// The arguments of the `run` command that sends the campaign after this dry run.
fn run_arguments(campaign: &Campaign, args: &RunArgs) -> String {
    let RunArgs { gateway, accept_changes, moved, no_wait, up_to, up_to_abroad, .. } = args;
    let mut command = suggested::send_arguments(campaign, gateway.as_deref());
    let options = [(*accept_changes, "--accept-changes"), (*moved, "--moved"), (*no_wait, "--no-wait")];
    for (_, option) in options.into_iter().filter(|(is_set, _)| *is_set) {
        command += &format!(" {option}");
    }
    for (number, option) in [(up_to, "--up-to"), (up_to_abroad, "--up-to-abroad")] {
        if let Some(number) = number {
            command += &format!(" {option} {number}");
        }
    }
    command
}

/// The number of reasons that a summary shows for skipped and invalid rows.
const SHOWN_REASONS: usize = 8;

/// Describes the rows that were to be sent again but were skipped, with a line for each of the first reasons.
fn describe_not_resent_rows(not_resent: &ExcludedRows) -> Vec<String> {
    let sets = not_resent.sets().take(SHOWN_REASONS).map(|(_, reason, rows)| {
        let were = choose_plural(rows.len(), "was", "were");
        format!("{} {were} not sent again: {reason} ({})", format_count(rows.len(), "row"), name_first_row(rows))
    });
    sets.collect()
}

/// Describes the skipped and invalid rows, with a line for each of the most frequent reasons.
fn describe_excluded_rows(excluded: &ExcludedRows) -> Vec<String> {
    let mut sets: Vec<_> = excluded.sets().filter(|(_, _, rows)| !rows.is_empty()).collect();
    sets.sort_by_key(|(_, _, rows)| std::cmp::Reverse(rows.len()));
    let reasons = sets.iter().take(SHOWN_REASONS).map(|(state, reason, rows)| {
        format!("{} {state}: {reason} ({})", format_thousands(rows.len()), name_first_row(rows))
    });
    reasons.collect()
}

/// Names the only row, or the first of several: `row 3`, `first in row 3`.
fn name_first_row(rows: &RoaringBitmap) -> String {
    format!("{} {}", choose_plural(rows.len(), "row", "first in row"), rows.min().unwrap_or_default())
}

/// Describes how many of the rows get each variant. Returns `None` if the campaign has no variants.
pub(crate) fn describe_variants(brief: &CampaignBrief, survey: &Survey, rows: &RoaringBitmap) -> Option<String> {
    let arm_sizes = |arm: usize| survey.by_size.iter().filter(move |(size, _)| size.arm == arm);
    let number = |arm: usize| arm_sizes(arm).map(|(_, arm_rows)| arm_rows.intersection_len(rows)).sum();
    let arms = brief.list_arms().into_iter().enumerate();
    let arm_counts = arms.filter_map(|(index, arm)| Some(format!("{} {}", format_thousands(number(index)), arm.name?)));
    let arm_counts: Vec<String> = arm_counts.collect();
    (!arm_counts.is_empty()).then(|| arm_counts.join(" · "))
}
