//! A run that this process has, to ask or decide about its rows without sending anything.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::cli::context::Context;
use crate::cli::exit::{self, Failure};
use crate::cli::output::Output;
use crate::cli::{runs, target};
use crate::delivery::{RunFolder, RunLock, Snapshot};
use crate::ledger::{Ledger, NewEvent, Owner, Progress, Recorded, Run, RunEnd, State, StopKind};
use crate::report::RunResults;

/// A run that this process has.
pub(in crate::cli) struct Held<'a> {
    context: &'a Context,
    pub(in crate::cli) ledger: Arc<dyn Ledger>,
    /// The run as it was before it was taken.
    pub(in crate::cli) run: Run,
    pub(in crate::cli) owner: Owner,
    /// Nothing where the caller has the lock.
    _lock: Option<RunLock>,
}

/// Where a run stands after it was given back.
pub(in crate::cli) struct Given {
    pub(in crate::cli) snapshot: Snapshot,
    /// What `run` would exit with for this run; 74 when its results could not be written.
    pub(in crate::cli) exit: u8,
    /// Why the results were not written anew, in words.
    pub(in crate::cli) unwritten: Option<String>,
}

impl<'a> Held<'a> {
    /// Takes the run that a user names; by a campaign's name alone the latest whose rows nobody knows, if there is one.
    ///
    /// # Errors
    /// When there is no such run, or another process has it.
    pub(in crate::cli) async fn take(context: &'a Context, name: &str) -> Result<Self, Failure> {
        let ledger = context.existing_ledger().await?;
        let run = runs::find_doubtful(context, ledger.as_deref(), name).await?;
        let ledger = ledger.ok_or_else(|| Failure::new(exit::BUG, "the run's ledger is gone"))?;
        let lock = RunLock::take(&context.state()?, &run.campaign, &run.account)
            .map_err(|error| Failure::storage(format!("the run cannot be locked: {error}")))?
            .ok_or_else(|| {
                let (campaign, gateway) = (&run.campaign, &run.gateway);
                let message = format!("another process is sending `{campaign}` through `{gateway}`; wait for its end");
                Failure::new(exit::NOTHING, message)
            })?;
        Self::claim(context, ledger, run, Some(lock)).await
    }

    /// Takes a run whose lock the caller has.
    pub(in crate::cli) async fn of(context: &'a Context, ledger: Arc<dyn Ledger>, run: Run) -> Result<Self, Failure> {
        Self::claim(context, ledger, run, None).await
    }

    async fn claim(
        context: &'a Context,
        ledger: Arc<dyn Ledger>,
        run: Run,
        lock: Option<RunLock>,
    ) -> Result<Self, Failure> {
        let (owner, _) = runs::claim(ledger.as_ref(), run.key).await?;
        Ok(Self { context, ledger, run, owner, _lock: lock })
    }

    /// How the command that took it prints.
    pub(in crate::cli) fn output(&self) -> &Output {
        &self.context.output
    }

    /// Where the run stands now.
    pub(in crate::cli) async fn snapshot(&self) -> Result<Snapshot, Failure> {
        runs::snapshot(self.ledger.as_ref(), &self.run, false).await
    }

    /// Records what was decided.
    pub(in crate::cli) async fn record(&self, events: Vec<NewEvent>) -> Result<(), Failure> {
        match self.ledger.record(self.run.key, self.owner, events).await? {
            Recorded::Done => Ok(()),
            Recorded::NotOwner => Err(lost(&self.run)),
        }
    }

    /// Writes the results anew and gives the run back.
    pub(in crate::cli) async fn give_back(self) -> Result<Given, Failure> {
        let runs = self.ledger.runs().await?;
        let now = runs.iter().find(|run| run.key == self.run.key).cloned().ok_or_else(|| lost(&self.run))?;
        let snapshot = runs::snapshot(self.ledger.as_ref(), &now, false).await?;
        let reopened = now.progress == Progress::Open && self.run.progress != Progress::Open;
        let before = Run { progress: now.progress, ..self.run.clone() };
        let exit = if reopened { exit::STOPPED } else { runs::code(&before, &snapshot.counts, false) };
        let (unwritten, failed) = self.write_results(&now, &runs).await?;
        let end = RunEnd {
            progress: now.progress,
            stop: if reopened { None } else { still_stopped(&before, &snapshot) },
            stopped: self.run.stopped.clone(),
            counts: snapshot.counts.clone(),
            parts: snapshot.parts,
            results: self.run.results.clone(),
            lag: None,
            at: self.run.ended_at.unwrap_or_else(Timestamp::now),
        };
        self.ledger.end(self.run.key, self.owner, end).await?;
        Ok(Given { snapshot, exit: if failed { exit::STORAGE } else { exit }, unwritten })
    }

    /// Writes the results where they were, unless those of a later run stand there now; if not, why, and whether it failed.
    async fn write_results(&self, now: &Run, runs: &[Run]) -> Result<(Option<String>, bool), Failure> {
        let Some(path) = &self.run.results else { return Ok((None, false)) };
        let name = now.name();
        if let Some(later) = runs::later_at(runs, now, path) {
            let elsewhere = self.context.output.command(format!("results {name} --out FILE"));
            return Ok((Some(format!("`{path}` holds the results of {later}; those of {name}: {elsewhere}")), false));
        }
        let folder = RunFolder::of(&self.context.state()?, &name);
        let written: Result<(), Failure> = async {
            let results = RunResults::open(self.ledger.as_ref(), &folder, now, false).await?;
            let target = target::of_run(self.context, results.frozen(), PathBuf::from(path))?;
            Ok(results.to_file(&target).await?)
        }
        .await;
        let failed = written.is_err();
        Ok((written.err().map(|failure| format!("the results were not written anew: {}", failure.message)), failed))
    }
}

impl Given {
    /// How many rows are in this state.
    pub(in crate::cli) fn count(&self, state: State) -> u64 {
        self.snapshot.counts.get(state)
    }
}

/// Why a run that was only asked or decided about is still stopped: not where nothing of it is left to send.
fn still_stopped(before: &Run, snapshot: &Snapshot) -> Option<StopKind> {
    let left = match before.progress {
        Progress::Finished => before.stopped.is_some(),
        Progress::Open => snapshot.counts.get(State::Planned) > 0,
        Progress::Replaced => false,
    };
    before.stop.filter(|_| left)
}

fn lost(run: &Run) -> Failure {
    Failure::new(exit::NOTHING, format!("another process took {}", run.name()))
}
