//! `campaign results` and `campaign replies`: the results of a run, and the replies of its recipients, as a file or printed.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::{RepliesArgs, ResultsArgs};
use super::context::Context;
use super::events::describe_kept_results;
use super::exit::{self, CommandFailure};
use super::output::{Output, RowOutput, RowSyntax};
use super::text::{StyledLine, StyledText, copyable, dim, join_spans, plain, strong};
use campaign_core::domain::{Phone, Purpose, RowSet};
use campaign_core::private::{self, ExistingFile};
use campaign_engine::delivery::SingleKind;
use campaign_engine::report::{
    JSON_VERSION, ResultsError, RunResults, UnclearReply, add_approvals, find_unclear_replies, format_local_minute,
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
    let _waiting = path.is_some().then(|| context.output.show_spinner("Writing the results…"));
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
    let kept = results.write_file(&target).await?;
    if let Some(kept) = &kept {
        context.output.print_note(&describe_kept_results(kept));
    }
    let (path, approvals) = (target.path().display().to_string(), load_approvals(ledger, &run).await?);
    if context.output.json {
        let mut object = json!({ "run": run.name(), "results": path, "exit": exit::SUCCESS });
        add_approvals(&mut object, &approvals);
        context.output.print_object(&object);
    } else {
        // With `--people`, the rows come from all runs of the edition.
        let shown = if args.people { run.campaign.clone() } else { run.name() };
        let mut text = StyledText::new();
        text.push(StyledLine::success([plain(format!("results of {shown}: ")), copyable(path)]).unbroken());
        for approval in &approvals {
            text.add_line(2, [plain(format!("approved by {} on {}", approval.by, format_local_minute(approval.at)))]);
        }
        context.output.print_done(text, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

impl ResultsArgs {
    /// Whether the results are printed.
    fn is_printed(&self, run: &Run) -> bool {
        // Selected rows, and the row of a lookup or a code call, are printed and do not replace a file.
        let some = self.out.is_none() && (!self.selection.is_empty() || SingleKind::from_run(run).is_some());
        some || self.out.as_deref() == Some(Path::new("-"))
    }

    /// The file to write: the named one, or one next to the results of the run.
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
    let unwritten = |error| ResultsError::Write { path: PathBuf::from("standard output"), error };
    let begun = write!(out, "{{\"version\":{JSON_VERSION},\"run\":{},\"rows\":[", json!(run.name())).map_err(unwritten);
    let written = match begun {
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
    let ended = writeln!(out, "],\"exit\":{code}{error}}}").and_then(|()| out.flush()).map_err(unwritten);
    ignore_closed_reader(ended)?;
    Ok(code)
}

/// A reader that closes early, such as `head`, is not a failure.
fn ignore_closed_reader(written: Result<(), ResultsError>) -> Result<(), ResultsError> {
    match written {
        Err(ResultsError::Write { error, .. }) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
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
            written => written.map(|_| exit::SUCCESS).map_err(|error| Error::from(error).into()),
        };
    };
    let refused = |error: io::Error| {
        let help = if error.kind() == ErrorKind::AlreadyExists { "; choose a new file" } else { "" };
        CommandFailure::invalid(format!("cannot write `{}`: {error}{help}", path.display()))
    };
    if path.exists() {
        return Err(refused(ErrorKind::AlreadyExists.into()));
    }
    let file: File = private::open_file(&path, ExistingFile::Truncate).map_err(refused)?;
    let mut out = BufWriter::new(file);
    let count = write_replies(ledger.as_ref(), &run, &mut out).await.map_err(Error::from)?;
    out.flush().and_then(|()| out.get_ref().sync_all()).map_err(refused)?;
    if context.output.json {
        context
            .output
            .print_object(&json!({ "run": run.name(), "replies": path, "count": count, "exit": exit::SUCCESS }));
    } else {
        let what = if count == 1 { "reply".to_owned() } else { "replies".to_owned() };
        let what = format!("{} {what} to {}: ", format_thousands(count), run.name());
        let line = StyledLine::success([plain(what), copyable(path.display().to_string())]);
        context.output.print_done(line.unbroken(), exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
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
