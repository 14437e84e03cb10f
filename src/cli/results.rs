//! `campaign results`: the results of a run, at any time: as CSV, or printed as JSON.

use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::ResultsArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::screen::{Screen, Syntax};
use crate::delivery::{RunFolder, SingleKind};
use crate::ledger::Run;
use crate::report::{ResultsError, RunResults, is_owned};
use crate::runs::{self, Error, OwnFiles};

pub(super) async fn results(context: &Context, args: ResultsArgs) -> Result<u8, Failure> {
    let (ledger, run) = context.named_run(&args.run).await?;
    let (state, profiles) = (context.state()?, context.profiles());
    runs::judge_results(ledger.as_ref(), &state, &run, &context.observer).await?;
    let owned = is_owned(&state, &run);
    let folder = RunFolder::of(&state, &run.name());
    // Some rows only, or the one of a lookup or a code call, are for looking at; they take no file's place.
    let some = args.out.is_none() && (!args.state.is_empty() || SingleKind::of(&run).is_some());
    if some || args.out.as_deref() == Some(Path::new("-")) {
        let results = RunResults::open(ledger.as_ref(), &folder, &run, owned).await?.in_states(&args.state);
        if context.output.json {
            return print_json(&context.output, &run, &results).await;
        }
        read_by_nobody(results.to_csv(BufWriter::new(Screen::of(Syntax::Csv))).await)?;
        return Ok(exit::FINE);
    }
    let later = match (&args.out, &run.results) {
        (None, Some(path)) => runs::later_at(&ledger.runs().await?, &run, path),
        _ => None,
    };
    if let Some(later) = later {
        let name = run.name();
        return Err(Failure::wrong(format!(
            "`{}` holds the results of {later}; name another file for those of {name} with `--out FILE`",
            run.results.unwrap_or_default()
        )));
    }
    let Some(path) = args.out.or_else(|| run.results.clone().map(PathBuf::from)) else {
        return Err(Failure::wrong(format!("{} has no results file yet; name one with `--out FILE`", run.name())));
    };
    let results = RunResults::open(ledger.as_ref(), &folder, &run, owned).await?.in_states(&args.state);
    let target = OwnFiles { state: &state, profiles: &profiles }.target_of_run(results.frozen(), path);
    target.judge().map_err(Error::ResultsPlace)?;
    results.to_file(&target).await?;
    let path = target.path().display().to_string();
    if context.output.json {
        context.output.object(&json!({ "run": run.name(), "results": path, "exit": exit::FINE }));
    } else {
        context.output.result(&format!("results: {path}\n"));
    }
    Ok(exit::FINE)
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
