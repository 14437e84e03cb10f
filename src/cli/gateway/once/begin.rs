//! The run of a single operation: what is in the ledger and the state folder before it is sent.

use jiff::{Timestamp, Zoned};

use super::Asking;
use crate::check::Tee;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::delivery::{OneOff, RunFolder, Snapshot};
use crate::domain::Endpoint;
use crate::ledger::{LeftOut, NewRun, Progress, Run, RunEnd, State, StopKind};
use crate::runs::claim;

impl Asking<'_> {
    /// Creates the run and freezes the number, as for a campaign.
    pub(super) async fn begin(&self) -> Result<Run, Failure> {
        let state = self.context.state()?;
        let folder =
            RunFolder::prepare(&state, self.one_off.campaign(), self.destination.account()).map_err(copying)?;
        let list = format!("phone\n{}\n", self.phone);
        let copy = folder.create_recipients().map_err(copying)?;
        let (copy, sha256) = Tee::new(list.as_bytes(), Some(copy)).finish().map_err(copying)?;
        let copy = copy.ok_or_else(|| Failure::new(exit::BUG, "the number was not copied"))?;
        let frozen = self.one_off.frozen(self.destination.gateway(), Zoned::now().date().to_string(), sha256);
        let run = self.ledger.create_run(&self.new_run()).await?;
        folder.freeze(&frozen, &copy).map_err(copying)?;
        folder.rename(&state, &run.name()).map_err(copying)?;
        self.ledger.open_run(run.key, None).await?;
        Ok(run)
    }

    fn new_run(&self) -> NewRun {
        NewRun {
            campaign: self.one_off.campaign().to_owned(),
            edition: String::new(),
            gateway: self.destination.gateway().to_owned(),
            account: self.destination.account().to_owned(),
            endpoint: Endpoint::Sync,
            kind: self.one_off.kind(),
            live: self.destination.is_live(),
            round: 1,
            recipients: 1,
            last_row: OneOff::ROW,
            left_out: LeftOut::default(),
            began_at: Timestamp::now(),
            random: rand::random(),
        }
    }

    /// Ends what earlier calls left open when they were killed: nothing goes on with it, and doubt stays doubt.
    ///
    /// The lock is held, so none of them can still be going on.
    pub(super) async fn close_interrupted(&self) -> Result<(), Failure> {
        let mut runs = self.ledger.runs().await?;
        runs.retain(|run| {
            let mine = run.campaign == self.one_off.campaign() && run.account == self.destination.account();
            mine && run.progress == Progress::Open
        });
        for run in runs {
            let (owner, _) = claim(self.ledger.as_ref(), run.key).await?;
            let run = Run { progress: Progress::Finished, ..run };
            let Snapshot { counts, parts, .. } = Snapshot::read(self.ledger.as_ref(), &run, false).await?;
            let unsent = counts.get(State::NotSent) > 0;
            let end = RunEnd {
                lag: None,
                progress: run.progress,
                stop: unsent.then_some(StopKind::Halted),
                stopped: unsent.then(|| "interrupted before it was sent".to_owned()),
                counts,
                parts,
                results: None,
                at: Timestamp::now(),
            };
            self.ledger.end(run.key, owner, end).await?;
        }
        Ok(())
    }
}

fn copying(error: std::io::Error) -> Failure {
    Failure::storage(format!("the number cannot be written to the state folder: {error}"))
}
