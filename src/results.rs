//! `campaign results`, `replies` and `outcome`: the results of a run, the replies of its recipients, and their
//! purchases, compared with the holdout group.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::args::{OutcomeArgs, RepliesArgs, ResultsArgs};
use super::context::Context;
use super::events::describe_results_backup;
use super::exit::{self, CommandFailure};
use super::numbers::parse_region;
use super::output::{Output, RowOutput, RowSyntax};
use super::text::{
    SpanMeaning, StyledLine, StyledText, TerminalTable, caution, copyable, dim, join_spans, plain, span, strong,
};
use campaign_core::domain::{Phone, Purpose, Row, RowSet};
use campaign_core::private::{self, ExistingFile};
use campaign_engine::delivery::{FrozenInputs, SingleKind};
use campaign_engine::report::{
    ArmFigures, CampaignEffect, EffectVerdict, JSON_VERSION, PurchaseFile, Purchases, ResultsError, RunResults,
    UnclearReply, add_approvals, find_unclear_replies, format_count, format_duration, format_local_minute,
    format_local_second, format_thousands, is_owned, load_approvals, write_replies,
};
use campaign_ledger::{Ledger, Run};
use campaign_runs::{Error, ProtectedFiles};

pub(super) async fn write_results(context: &Context, args: ResultsArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run(&args.run).await?;
    let (ledger, state, profiles) = (ledger.as_ref(), context.state_folder()?, context.profiles());
    campaign_runs::report_results_conflict(ledger, &run, &context.observer).await?;
    let path = if args.is_printed(&run) { None } else { Some(args.choose_file(ledger, &run).await?) };
    let edition = if args.people { campaign_runs::list_edition_runs(ledger, &run).await? } else { Vec::new() };
    let results = match edition.as_slice() {
        [] => RunResults::open(ledger, &run, is_owned(ledger, &run).await?).await?,
        edition => RunResults::open_for_recipients(ledger, edition).await?,
    };
    let _spinner = path.is_some().then(|| context.output.show_spinner("Writing the results…"));
    let selection = args.selection.row_selection(results.frozen_inputs().brief.region)?;
    let last = run.last_row();
    if let Some(row) = selection.rows.as_ref().map(RowSet::last_row).filter(|row| *row > last && !run.shared) {
        return Err(Error::NoSuchRow { row, last }.into());
    }
    let results = results.with_selection(selection).with_excel(args.excel);
    let Some(path) = path else {
        if context.output.json {
            return print_json(&context.output, &run, &results).await;
        }
        ignore_closed_reader(results.write_csv(BufWriter::new(RowOutput::stdout(RowSyntax::Csv))).await)?;
        return Ok(exit::SUCCESS);
    };
    let target =
        ProtectedFiles { state: &state, profiles: &profiles }.results_target_of_run(results.frozen_inputs(), path);
    target.resolve_path().map_err(Error::ResultsPlace)?;
    let backup = results.write_file(&target).await?;
    if let Some(backup) = &backup {
        context.output.print_note(&describe_results_backup(backup));
    }
    let (path, approvals) = (target.path().display().to_string(), load_approvals(ledger, &run).await?);
    if context.output.json {
        let mut object = json!({ "run": run.name(), "results": path, "exit": exit::SUCCESS });
        add_approvals(&mut object, &approvals);
        context.output.print_object(&object);
    } else {
        // With `--people`, the rows come from all runs of the edition.
        let subject = if args.people { run.campaign.clone() } else { run.name() };
        let mut text = StyledText::new();
        text.push(StyledLine::success([plain(format!("results of {subject}: ")), copyable(path)]).unbroken());
        for approval in &approvals {
            text.add_line(2, [plain(format!("approved by {} on {}", approval.by, format_local_minute(approval.at)))]);
        }
        context.output.print_done(text, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

impl ResultsArgs {
    /// Whether the results are printed instead of written to a file.
    fn is_printed(&self, run: &Run) -> bool {
        // Selected rows, and the row of a lookup or a code call, are printed and do not replace a file.
        let is_selection = self.out.is_none() && (!self.selection.is_empty() || SingleKind::from_run(run).is_some());
        is_selection || self.out.as_deref() == Some(Path::new("-"))
    }

    /// Chooses the file to write: the file that `--out` names, or else a file next to the results of the run.
    async fn choose_file(&self, ledger: &dyn Ledger, run: &Run) -> Result<PathBuf, CommandFailure> {
        if let Some(out) = &self.out {
            return Ok(out.clone());
        }
        let name = run.name();
        let Some(results) = &run.results else {
            return Err(CommandFailure::invalid(format!(
                "{name} has no results file yet; choose one with `--out FILE`"
            )));
        };
        let mut path = PathBuf::from(results);
        if campaign_runs::is_folder_gone(ledger, run, &path).await {
            return Err(CommandFailure::invalid(format!(
                "the folder that contained `{results}` no longer exists; choose a file with `--out FILE`"
            )));
        }
        if self.people {
            path.set_extension("people.csv");
        } else if let Some(later) = campaign_runs::find_later_run(ledger, run, results).await? {
            return Err(CommandFailure::invalid(format!(
                "`{results}` now contains the results of {later}; write the results of {name} to another file with `--out FILE`"
            )));
        }
        if self.excel {
            path.set_extension("excel.xlsx");
        }
        Ok(path)
    }
}

/// Prints one object with all rows, without loading them all into memory.
async fn print_json(output: &Output, run: &Run, results: &RunResults<'_>) -> Result<u8, CommandFailure> {
    let mut out = BufWriter::new(RowOutput::stdout(RowSyntax::Json));
    let write_failure = |error| ResultsError::Write { path: PathBuf::from("standard output"), error };
    let header =
        write!(out, "{{\"version\":{JSON_VERSION},\"run\":{},\"rows\":[", json!(run.name())).map_err(write_failure);
    let written = match header {
        Ok(()) => results.write_json(&mut out).await,
        Err(error) => Err(error),
    };
    // If writing the rows failed, the object is still complete and contains the error.
    let (code, error) = match ignore_closed_reader(written) {
        Ok(()) => match output.distrust_reason() {
            None => (exit::SUCCESS, String::new()),
            Some(reason) => (exit::STORAGE, format!(",\"error\":{}", json!(reason))),
        },
        Err(error) => (exit::STORAGE, format!(",\"error\":{}", json!(error.to_string()))),
    };
    let ending = writeln!(out, "],\"exit\":{code}{error}}}").and_then(|()| out.flush()).map_err(write_failure);
    ignore_closed_reader(ending)?;
    Ok(code)
}

/// Treats a reader that closes early, such as `head`, as a success.
fn ignore_closed_reader(result: Result<(), ResultsError>) -> Result<(), ResultsError> {
    match result {
        Err(ResultsError::Write { error, .. }) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

pub(super) async fn show_replies(context: &Context, args: RepliesArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run(&args.run).await?;
    if args.review {
        return print_unclear_replies(context, ledger.as_ref(), &run).await;
    }
    let Some(path) = args.out.filter(|out| out.as_os_str() != "-") else {
        let out = BufWriter::new(RowOutput::stdout(RowSyntax::Csv));
        return match write_replies(ledger.as_ref(), &run, out).await {
            // The reader has closed the pipe.
            Err(ResultsError::Write { error, .. }) if error.kind() == ErrorKind::BrokenPipe => Ok(exit::SUCCESS),
            written => written.map(|_| exit::SUCCESS).map_err(|error| replies_failure(error, Path::new("-"))),
        };
    };
    let write_failure = |error: io::Error| {
        let help = if error.kind() == ErrorKind::AlreadyExists { "; choose a new file" } else { "" };
        CommandFailure::invalid(format!("cannot write `{}`: {error}{help}", path.display()))
    };
    let file: File = private::open_file(&path, ExistingFile::CreateNew).map_err(write_failure)?;
    let mut out = BufWriter::new(file);
    let written = write_replies(ledger.as_ref(), &run, &mut out).await;
    let count = written.map_err(|error| replies_failure(error, &path))?;
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(write_failure)?;
    if context.output.json {
        context
            .output
            .print_object(&json!({ "run": run.name(), "replies": path, "count": count, "exit": exit::SUCCESS }));
    } else {
        let replies = if count == 1 { "reply".to_owned() } else { "replies".to_owned() };
        let replies = format!("{} {replies} to {}: ", format_thousands(count), run.name());
        let line = StyledLine::success([plain(replies), copyable(path.display().to_string())]);
        context.output.print_done(line.unbroken(), exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Describes why the replies to a run cannot be written to a file or to standard output.
fn replies_failure(error: ResultsError, path: &Path) -> CommandFailure {
    match error {
        ResultsError::Write { error, .. } => {
            CommandFailure::storage_failure(format!("cannot write the replies to `{}`: {error}", path.display()))
        }
        error => Error::from(error).into(),
    }
}

/// Prints the replies that look like an opt-out, each with the command that records it.
async fn print_unclear_replies(context: &Context, ledger: &dyn Ledger, run: &Run) -> Result<u8, CommandFailure> {
    let replies = find_unclear_replies(ledger, run).await.map_err(Error::from)?;
    // An opt-out in reply to a service message covers service messages too.
    let scope = if run.suppression.purpose == Purpose::Service { " --scope all" } else { "" };
    let add_command = |phone: &Phone| context.output.command(format!("suppress add +{phone}{scope}"));
    if context.output.json {
        let reply_json = |UnclearReply { row, phone, channel, at, text }: &UnclearReply| {
            json!({
                "row": row.get(), "phone": phone.to_string(), "channel": channel, "at": format!("{at:.3}"), "text": text,
                "suppress": add_command(phone),
            })
        };
        let replies: Vec<_> = replies.iter().map(reply_json).collect();
        context.output.print_object(&json!({ "run": run.name(), "review": replies, "exit": exit::SUCCESS }));
        return Ok(exit::SUCCESS);
    }
    let mut text = StyledText::new();
    for reply in &replies {
        let UnclearReply { row, phone, channel: _, at, text: reply_text } = reply;
        let parts = [
            vec![strong(format!("row {row}"))],
            vec![plain(format!("+{phone}"))],
            vec![dim(format_local_second(*at))],
            vec![plain(reply_text.as_str())],
        ];
        text.push(StyledLine::new(join_spans(parts, " · ")));
        text.push(StyledLine::next_step(add_command(phone)).with_indent(2));
    }
    let count = match replies.len() {
        0 => "no replies to review".to_owned(),
        1 => "1 reply to review".to_owned(),
        count => format!("{} replies to review", format_thousands(count as u64)),
    };
    text.add_line(0, [strong(run.name()), plain(format!(": {count}"))]);
    context.output.print_result(text);
    Ok(exit::SUCCESS)
}

/// The label of the holdout group.
const HOLDOUT_NAME: &str = "holdout";

pub(super) async fn show_outcome(context: &Context, args: OutcomeArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run(&args.run).await?;
    if SingleKind::from_run(&run).is_some() {
        let message = format!("{} has no recipient list; `outcome` needs a run of a campaign", run.name());
        return Err(CommandFailure::invalid(message));
    }
    let frozen = FrozenInputs::load_for_run(ledger.as_ref(), &run).await.map_err(Error::from)?;
    let zone = match &frozen.brief.timezone {
        Some(name) => TimeZone::get(name).map_err(|error| CommandFailure::invalid(error.to_string()))?,
        None => TimeZone::system(),
    };
    let zone_name = zone.iana_name().unwrap_or("this computer's time zone").to_owned();
    let file = PurchaseFile {
        path: args.file.clone(),
        phone: args.phone.clone(),
        at: args.at.clone(),
        amount: args.amount.clone(),
        region: parse_region(args.region.as_deref())?.or(frozen.brief.region),
        zone,
    };
    let spinner = context.output.show_spinner("Reading the purchases…");
    let reading = tokio::task::spawn_blocking(move || Purchases::read_file(&file)).await;
    let purchases =
        reading.map_err(|error| CommandFailure::new(exit::BUG, error.to_string()))?.map_err(|findings| {
            let problems = format_count(findings.len() as u64, "problem");
            CommandFailure::with_findings(format!("{problems} found; no purchases were counted"), findings)
        })?;
    let mut runs = campaign_runs::list_edition_runs(ledger.as_ref(), &run).await?;
    // Each round sends a message to everyone again, and purchases count from the message of this round.
    runs.retain(|other| other.round == run.round);
    let effect = CampaignEffect::measure(ledger.as_ref(), &runs, &purchases, args.within).await.map_err(Error::from)?;
    drop(spinner);
    if context.output.json {
        let within = args.within.as_secs();
        context.output.print_object(&effect_json(&run.name(), within, &effect, &purchases, args.amount.is_some()));
    } else {
        let head = format!(
            "{}: {} in `{}`; purchases count if made within {} after the message; times in the file are in \
             {zone_name}\n",
            run.name(),
            format_count(purchases.len() as u64, "purchase"),
            args.file.display(),
            format_duration(args.within.unsigned_abs())
        );
        let mut text = StyledText::from(head);
        text.extend(describe_effect(&effect, &purchases, args.amount.is_some()));
        context.output.print_done(text, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

fn describe_effect(effect: &CampaignEffect, purchases: &Purchases, has_amounts: bool) -> StyledText {
    let CampaignEffect { sent, holdout, waiting } = effect;
    let holdout = holdout.as_ref();
    let mut text = StyledText::new();
    for (why, (rows, first)) in &purchases.unusable {
        text.add_line(
            2,
            [caution(format!("skipped: {} with {why}, first in row {first}", format_count(*rows, "row")))],
        );
    }
    if *waiting > 0 {
        text.add_line(2, [plain(format!("not sent yet, so not counted: {}", format_count(*waiting, "message")))]);
    }
    let sent = sent.iter().map(|(variant, arm)| (variant.as_deref().unwrap_or("sent"), arm));
    let rows = sent.clone().chain(holdout.map(|arm| (HOLDOUT_NAME, arm)));
    let rows = rows.map(|(name, arm)| {
        let compared_arm = holdout.filter(|holdout| !std::ptr::eq(*holdout, arm));
        let above = compared_arm.map_or_else(String::new, |holdout| {
            let difference = arm.buyers.share() - holdout.buyers.share();
            let interval = arm.buyers.difference_interval(holdout.buyers);
            format!(
                "{} ({} to {})",
                format_points(difference),
                format_points(interval.low),
                format_points(interval.high)
            )
        });
        let interval = arm.buyers.wilson_interval();
        let amount = if has_amounts { arm.amount.trim_decimals().to_json_digits() } else { String::new() };
        [
            name.to_owned(),
            format_thousands(arm.buyers.total),
            format_thousands(arm.buyers.successes),
            format_percent(arm.buyers.share()),
            format!("{} to {}", format_percent(interval.low), format_percent(interval.high)),
            above,
            format_thousands(arm.purchases),
            amount,
        ]
    });
    let amount_header = if has_amounts { "amount" } else { "" };
    let header =
        ["", "people", "bought", "share", "95% interval", "points above the holdout", "purchases", amount_header];
    text.extend(TerminalTable::new(header, rows));
    match holdout {
        None => text.push(StyledLine::from_prose(
            "no recipient was in a holdout group, so the effect of the messages cannot be measured; to have one, set \
             `holdout: 10%` and send to a larger list",
        )),
        Some(holdout) => sent.for_each(|(name, arm)| text.push(verdict_line(name, arm, holdout))),
    }
    text
}

/// Formats the verdict on a variant compared with the holdout group.
fn verdict_line(name: &str, arm: &ArmFigures, holdout: &ArmFigures) -> StyledLine {
    let (meaning, finding) = match EffectVerdict::from_proportions(arm.buyers, holdout.buyers) {
        EffectVerdict::More => {
            (SpanMeaning::Good, "a higher share of recipients made a purchase than in the holdout group")
        }
        EffectVerdict::Fewer => {
            (SpanMeaning::Bad, "a lower share of recipients made a purchase than in the holdout group")
        }
        EffectVerdict::Unproven => {
            (SpanMeaning::Caution, "not enough data: the difference from the holdout group might be due to chance")
        }
        EffectVerdict::TooFew => (
            SpanMeaning::Caution,
            "not enough data: at least 30 recipients are needed in each \
                                                         group",
        ),
    };
    StyledLine::new([strong(name), plain(": "), span(meaning, finding)])
}

fn format_percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn format_points(difference: f64) -> String {
    format!("{:+.1}", difference * 100.0)
}

fn effect_json(run: &str, within: i64, effect: &CampaignEffect, purchases: &Purchases, has_amounts: bool) -> Value {
    let CampaignEffect { sent, holdout, waiting } = effect;
    let holdout = holdout.as_ref();
    let arm_json = |variant: Option<&str>, arm: &ArmFigures| {
        let ArmFigures { buyers, purchases, amount } = arm;
        let interval = buyers.wilson_interval();
        let mut object = json!({
            "people": buyers.total, "bought": buyers.successes, "share": buyers.share(),
            "low": interval.low, "high": interval.high, "purchases": purchases,
            "amount": has_amounts.then(|| amount.trim_decimals()),
        });
        if let Some(holdout) = holdout.filter(|holdout| !std::ptr::eq(*holdout, arm)) {
            let above = buyers.difference_interval(holdout.buyers);
            object["above_holdout"] = json!({ "low": above.low, "high": above.high });
            object["verdict"] = EffectVerdict::from_proportions(*buyers, holdout.buyers).as_str().into();
        }
        object["variant"] = json!(variant);
        object
    };
    let unusable = purchases.unusable.iter();
    let unusable: Vec<Value> = unusable
        .map(|(why, (rows, first)): (_, &(u64, Row))| json!({ "why": why, "rows": rows, "first": first.get() }))
        .collect();
    json!({
        "run": run,
        "within": within,
        "sent": sent.iter().map(|(variant, arm)| arm_json(variant.as_deref(), arm)).collect::<Vec<_>>(),
        "holdout": holdout.map(|holdout| arm_json(None, holdout)),
        "waiting": waiting,
        "unusable": unusable,
        "exit": exit::SUCCESS,
    })
}
