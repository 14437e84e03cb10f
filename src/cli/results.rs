//! `campaign results`: writes the results of a run at any time, as CSV, as a workbook or as JSON.

use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::ResultsArgs;
use super::context::Context;
use super::events::kept_results;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::screen::{Screen, Syntax};
use crate::delivery::SingleKind;
use crate::finding::one_line;
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
    let results = results.in_states(&args.state).for_excel(args.excel);
    let Some(path) = path else {
        if context.output.json {
            return print_json(&context.output, &run, &results).await;
        }
        read_by_nobody(results.to_csv(BufWriter::new(Screen::of(Syntax::Csv))).await)?;
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
        let approved = approvals.iter().map(|approval| format!("  approved by {}\n", one_line(&approval.by)));
        context.output.done(&format!("results: {path}\n{}", approved.collect::<String>()), exit::FINE);
    }
    Ok(exit::FINE)
}

impl ResultsArgs {
    /// Whether they are printed.
    fn prints(&self, run: &Run) -> bool {
        // Some rows only, or the one of a lookup or a code call, are for looking at; they take no file's place.
        let some = self.out.is_none() && (!self.state.is_empty() || SingleKind::of(run).is_some());
        some || self.out.as_deref() == Some(Path::new("-"))
    }

    /// The file that is written: the one that was named, or one by where the run wrote its results.
    async fn file(&self, ledger: &dyn Ledger, run: &Run) -> Result<PathBuf, Failure> {
        if let Some(out) = &self.out {
            return Ok(out.clone());
        }
        let name = run.name();
        let Some(results) = &run.results else {
            return Err(Failure::wrong(format!("{name} has no results file yet; name one with `--out FILE`")));
        };
        let mut path = PathBuf::from(results);
        if runs::is_gone(ledger, run, &path).await {
            return Err(Failure::wrong(format!("the folder of `{results}` is gone; name a file with `--out FILE`")));
        }
        if self.people {
            path.set_extension("people.csv");
        } else if let Some(later) = runs::later_at(ledger, run, results).await? {
            return Err(Failure::wrong(format!(
                "`{results}` holds the results of {later}; name another file for those of {name} with `--out FILE`"
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
    let unwritten = |error| ResultsError::Write { path: PathBuf::from("the output"), error };
    let begun = write!(out, "{{\"run\":{},\"rows\":[", json!(run.name())).map_err(unwritten);
    let written = match begun {
        Ok(()) => results.to_objects(&mut out).await,
        Err(error) => Err(error),
    };
    // Whatever came of the rows, the object is whole and tells it.
    let (code, error) = match read_by_nobody(written) {
        Ok(()) => match output.distrusted() {
            None => (exit::FINE, String::new()),
            Some(reason) => (exit::STORAGE, format!(",\"error\":{}", json!(reason))),
        },
        Err(error) => (exit::STORAGE, format!(",\"error\":{}", json!(error.to_string()))),
    };
    let ended = writeln!(out, "],\"exit\":{code}{error}}}").and_then(|()| out.flush()).map_err(unwritten);
    read_by_nobody(ended)?;
    Ok(code)
}

/// A reader that has seen enough, such as `head`, is no failure.
fn read_by_nobody(written: Result<(), ResultsError>) -> Result<(), ResultsError> {
    match written {
        Err(ResultsError::Write { error, .. }) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
