//! `campaign results`: writes or prints the results of a run.

use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::ResultsArgs;
use super::context::Context;
use super::events::describe_kept_results;
use super::exit;
use super::exit::CommandFailure;
use super::output::{JSON_VERSION_MEMBER, Output, RowOutput, RowSyntax};
use super::text::{StyledLine, StyledText, copyable, plain};
use campaign_core::domain::RowSet;
use campaign_engine::delivery::SingleKind;
use campaign_engine::report::{ResultsError, RunResults, add_approvals, format_local_minute, is_owned, load_approvals};
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
    /// Whether they are printed.
    fn is_printed(&self, run: &Run) -> bool {
        // Selected rows, and the row of a lookup or a code call, are printed and do not replace a file.
        let some = self.out.is_none() && (!self.selection.is_empty() || SingleKind::from_run(run).is_some());
        some || self.out.as_deref() == Some(Path::new("-"))
    }

    /// The file to write: the named one, or one beside the results of the run.
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
                "the folder of `{results}` no longer exists; choose a file with `--out FILE`"
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

/// Prints one object with all rows, without loading them into memory together.
async fn print_json(output: &Output, run: &Run, results: &RunResults<'_>) -> Result<u8, CommandFailure> {
    let mut out = BufWriter::new(RowOutput::stdout(RowSyntax::Json));
    let unwritten = |error| ResultsError::Write { path: PathBuf::from("standard output"), error };
    let begun = write!(out, "{{{JSON_VERSION_MEMBER},\"run\":{},\"rows\":[", json!(run.name())).map_err(unwritten);
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
