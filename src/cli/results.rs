//! `campaign results`: the results of a run, at any time: as CSV, or printed as JSON.

use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::ResultsArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::runs;
use super::screen::{Form, Screen};
use super::target;
use crate::delivery::{Frozen, OneOff, RunFolder};
use crate::ledger::{Ledger, LeftOut, Run, State};
use crate::report::{
    Fates, Listing, ResultsError, Sweep, Target, unknown_results, write_file, write_objects, write_results,
};

pub(super) async fn results(context: &Context, args: ResultsArgs) -> Result<u8, Failure> {
    let ledger = context.existing_ledger().await?;
    let run = runs::find(context, ledger.as_deref(), &args.run).await?;
    let Some(ledger) = ledger else { return Ok(exit::FINE) };
    runs::judge(context, ledger.as_ref(), &run).await?;
    let owned = runs::is_owned(context, &run)?;
    let source = Source { ledger: ledger.as_ref(), run: &run, owned, states: &args.state };
    // Some rows only, or the one of a lookup or a code call, are for looking at; they take no file's place.
    let some = args.out.is_none() && (!args.state.is_empty() || OneOff::of(&run).is_some());
    if some || args.out.as_deref() == Some(Path::new("-")) {
        let state = context.state()?;
        return match context.output.json {
            true => source.print_json(&context.output, &state).await,
            false => source.write(&state, None).await.map(|()| exit::FINE),
        };
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
    let state = context.state()?;
    let frozen = runs::frozen(&RunFolder::of(&state, &run.name()))?;
    let target = target::of_run(context, &frozen, path)?;
    target.judge().map_err(|why| target::refuse(&why))?;
    source.write(&state, Some(&target)).await?;
    let path = target.path().display().to_string();
    if context.output.json {
        context.output.object(&json!({ "run": run.name(), "results": path, "exit": exit::FINE }));
    } else {
        context.output.result(&format!("results: {path}\n"));
    }
    Ok(exit::FINE)
}

/// A run whose results are written.
pub(super) struct Source<'a> {
    pub(super) ledger: &'a dyn Ledger,
    pub(super) run: &'a Run,
    /// Whether a process is sending it.
    pub(super) owned: bool,
    /// Only rows in these states; all when there are none.
    pub(super) states: &'a [State],
}

/// What a run keeps besides its envelopes.
struct Kept {
    name: String,
    recipients: PathBuf,
    frozen: Frozen,
    left_out: LeftOut,
}

impl Source<'_> {
    /// Writes the results to a file, or to standard output, as CSV.
    pub(super) async fn write(&self, state: &Path, target: Option<&Target>) -> Result<(), Failure> {
        if let Some(target) = target.filter(|_| self.run.live)
            && let Some(sign) = unknown_results(Some(self.ledger), target.path()).await?
        {
            let message = format!("nothing was written, because the ledger knows less than what is there: {sign}");
            return Err(Failure::storage(format!(
                "{message}; name another file with `results {} --out FILE`",
                self.run.name()
            )));
        }
        let kept = self.kept(state).await?;
        let (listing, fates) = (self.listing(&kept), self.fates().await?);
        let written = match target {
            Some(target) => write_file(target, &listing, fates).await,
            None => read_by_nobody(write_results(BufWriter::new(Screen::of(Form::Csv)), &listing, fates).await),
        };
        written.map_err(Failure::storage)
    }

    /// Prints one object with all rows, which are never in memory together.
    async fn print_json(&self, output: &Output, state: &Path) -> Result<u8, Failure> {
        let kept = self.kept(state).await?;
        let (listing, fates) = (self.listing(&kept), self.fates().await?);
        let mut out = BufWriter::new(Screen::of(Form::Json));
        let unwritten = |error| ResultsError::Write { path: PathBuf::from("the output"), error };
        let begun = write!(out, "{{\"run\":{},\"rows\":[", json!(kept.name)).map_err(unwritten);
        let written = match begun {
            Ok(()) => write_objects(&mut out, &listing, fates).await,
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
        read_by_nobody(ended).map_err(Failure::storage)?;
        Ok(code)
    }

    async fn kept(&self, state: &Path) -> Result<Kept, Failure> {
        let name = self.run.name();
        let folder = RunFolder::of(state, &name);
        let frozen = runs::frozen(&folder)?;
        let left_out = self.ledger.left_out(self.run.key).await?;
        Ok(Kept { name, recipients: folder.recipients(), frozen, left_out })
    }

    fn listing<'k>(&'k self, kept: &'k Kept) -> Listing<'k> {
        Listing {
            recipients: &kept.recipients,
            recipients_sha256: &kept.frozen.recipients_sha256,
            brief: &kept.frozen.brief,
            run: &kept.name,
            kind: self.run.kind,
            ids: Some(self.run.ids),
            orders: &self.run.orders,
            left_out: &kept.left_out,
            states: self.states,
        }
    }

    async fn fates(&self) -> Result<Fates<'_>, Failure> {
        Ok(Fates::Ledger(Sweep::new(self.ledger, self.run, self.owned).await?))
    }
}

/// A reader that has seen enough, such as `head`, is no failure.
fn read_by_nobody(written: Result<(), ResultsError>) -> Result<(), ResultsError> {
    match written {
        Err(ResultsError::Write { error, .. }) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
