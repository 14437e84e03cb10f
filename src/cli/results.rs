//! `campaign results`: the results of a run as CSV, at any time.

use std::path::{Path, PathBuf};

use super::args::ResultsArgs;
use super::context::Context;
use super::exit::{self, Failure};
use super::runs;
use crate::delivery::{OneOff, RunFolder};
use crate::ledger::{Ledger, Progress, Run, State};
use crate::report::{Fates, Listing, ResultsError, Sweep, write_file, write_results};

pub(super) async fn results(context: &Context, args: ResultsArgs) -> Result<u8, Failure> {
    let ledger = context.existing_ledger().await?;
    let run = runs::find(ledger.as_deref(), &args.run).await?;
    let Some(ledger) = ledger else { return Ok(exit::FINE) };
    let owned = runs::is_owned(context, &run)?;
    let source = Source { ledger: ledger.as_ref(), run: &run, owned, states: &args.state };
    // Some rows only, or the one of a lookup or a code call, are for looking at; they take no file's place.
    let some = args.out.is_none() && (!args.state.is_empty() || OneOff::of(&run).is_some());
    if some || args.out.as_deref() == Some(Path::new("-")) {
        source.write(&context.state()?, None).await?;
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
    source.write(&context.state()?, Some(&path)).await?;
    let path = path.display().to_string();
    if context.output.json {
        context.output.object(&serde_json::json!({ "run": run.name(), "results": path, "exit": exit::FINE }));
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

impl Source<'_> {
    /// Writes the results to a file, or to standard output.
    pub(super) async fn write(&self, state: &Path, path: Option<&Path>) -> Result<(), Failure> {
        let run = self.run;
        let folder = RunFolder::of(state, &run.name());
        let frozen = runs::frozen(&folder)?;
        let left_out = self.ledger.left_out(run.key).await?;
        let (recipients, name) = (folder.recipients(), run.name());
        let listing = Listing {
            recipients: &recipients,
            brief: &frozen.brief,
            run: &name,
            kind: run.kind,
            ids: Some(run.ids),
            orders: &run.orders,
            left_out: &left_out,
            states: self.states,
            finished: run.progress == Progress::Finished,
        };
        let fates = Fates::Ledger { sweep: Sweep::new(self.ledger, run.key).await?, owned: self.owned };
        let written = match path {
            Some(path) => write_file(path, &listing, fates).await,
            None => match write_results(std::io::BufWriter::new(std::io::stdout()), &listing, fates).await {
                // A reader that has seen enough, such as `head`, is no failure.
                Err(ResultsError::Write { error, .. }) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                written => written,
            },
        };
        written.map_err(Failure::storage)
    }
}
