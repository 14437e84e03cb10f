//! `campaign results`: writes the results of a run at any time, as CSV, as a workbook or as JSON.

use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::ResultsArgs;
use super::clock::minute;
use super::context::Context;
use super::events::kept_results;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::screen::{Screen, Syntax};
use super::text::{Line, Text, copied, plain};
use crate::delivery::SingleKind;
use crate::domain::RowSet;
use crate::ledger::{Ledger, Run};
use crate::report::{ResultsError, RunResults, approvals, approved_json, is_owned};
use crate::runs::{self, Error, OwnFiles};

pub(super) async fn results(context: &Context, args: ResultsArgs) -> Result<u8, Failure> {
    let (ledger, run) = context.named_run(&args.run).await?;
    let (ledger, state, profiles) = (ledger.as_ref(), context.state()?, context.profiles());
    runs::judge_results(ledger, &run, &context.observer).await?;
    let path = if args.prints(&run) { None } else { Some(args.file(ledger, &run).await?) };
    let edition = if args.people { runs::edition_of(ledger, &run).await? } else { Vec::new() };
    let results = match edition.as_slice() {
        [] => RunResults::open(ledger, &run, is_owned(ledger, &run).await?).await?,
        edition => RunResults::of_people(ledger, edition).await?,
    };
    let _waiting = path.is_some().then(|| context.output.waiting("Writing the results…"));
    let selection = args.selection.selection(results.frozen().brief.region)?;
    let last = run.last_row();
    if let Some(row) = selection.rows.as_ref().map(RowSet::last).filter(|row| *row > last && !run.shared) {
        return Err(Error::NoSuchRow { row, last }.into());
    }
    let results = results.selecting(selection).for_excel(args.excel);
    let Some(path) = path else {
        if context.output.json {
            return print_json(&context.output, &run, &results).await;
        }
        ignore_closed_reader(results.to_csv(BufWriter::new(Screen::of(Syntax::Csv))).await)?;
        return Ok(exit::FINE);
    };
    let target = OwnFiles { state: &state, profiles: &profiles }.target_of_run(results.frozen(), path);
    target.judge().map_err(Error::ResultsPlace)?;
    let kept = results.to_file(&target).await?;
    if let Some(kept) = &kept {
        context.output.note(&kept_results(kept));
    }
    let (path, approvals) = (target.path().display().to_string(), approvals(ledger, &run).await?);
    if context.output.json {
        let mut object = json!({ "run": run.name(), "results": path, "exit": exit::FINE });
        approved_json(&mut object, &approvals);
        context.output.object(&object);
    } else {
        // The rows of people come from all runs of the edition.
        let shown = if args.people { run.campaign.clone() } else { run.name() };
        let mut text = Text::new();
        text.push(Line::success([plain(format!("results of {shown}: ")), copied(path)]).whole());
        for approval in &approvals {
            text.line(2, [plain(format!("approved by {} on {}", approval.by, minute(approval.at)))]);
        }
        context.output.done(text, exit::FINE);
    }
    Ok(exit::FINE)
}

impl ResultsArgs {
    /// Whether they are printed.
    fn prints(&self, run: &Run) -> bool {
        // A selection of rows, or the row of a lookup or a code call, is printed and replaces no file.
        let some = self.out.is_none() && (!self.selection.is_empty() || SingleKind::of(run).is_some());
        some || self.out.as_deref() == Some(Path::new("-"))
    }

    /// The file to write: the named one, or one beside the results of the run.
    async fn file(&self, ledger: &dyn Ledger, run: &Run) -> Result<PathBuf, Failure> {
        if let Some(out) = &self.out {
            return Ok(out.clone());
        }
        let name = run.name();
        let Some(results) = &run.results else {
            return Err(Failure::wrong(format!("{name} has no results file yet; choose one with `--out FILE`")));
        };
        let mut path = PathBuf::from(results);
        if runs::is_gone(ledger, run, &path).await {
            return Err(Failure::wrong(format!(
                "the folder of `{results}` no longer exists; choose a file with `--out FILE`"
            )));
        }
        if self.people {
            path.set_extension("people.csv");
        } else if let Some(later) = runs::later_at(ledger, run, results).await? {
            return Err(Failure::wrong(format!(
                "`{results}` now contains the results of {later}; write the results of {name} to another file with `--out FILE`"
            )));
        }
        if self.excel {
            path.set_extension("excel.xlsx");
        }
        Ok(path)
    }
}

/// Prints one object with all rows, which are never in memory together.
async fn print_json(output: &Output, run: &Run, results: &RunResults<'_>) -> Result<u8, Failure> {
    let mut out = BufWriter::new(Screen::of(Syntax::Json));
    let unwritten = |error| ResultsError::Write { path: PathBuf::from("standard output"), error };
    let begun = write!(out, "{{\"run\":{},\"rows\":[", json!(run.name())).map_err(unwritten);
    let written = match begun {
        Ok(()) => results.to_objects(&mut out).await,
        Err(error) => Err(error),
    };
    // The object is complete even if the rows failed, and has the error.
    let (code, error) = match ignore_closed_reader(written) {
        Ok(()) => match output.distrusted() {
            None => (exit::FINE, String::new()),
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
