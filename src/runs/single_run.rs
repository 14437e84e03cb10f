//! The run of a single operation: what is in the ledger and the state folder before it is sent.

use std::io;

use jiff::tz::TimeZone;

use super::{ConfirmedSingle, Error};
use crate::check::Tee;
use crate::delivery::{SingleKind, Snapshot};
use crate::domain::Endpoint;
use crate::ledger::{Hold, LeftOut, NewRun, Progress, Run, RunEnd, RunFilter, State, StopKind};

impl ConfirmedSingle {
    /// Creates the run and freezes the number, as for a campaign.
    pub(super) async fn begin(&self, hold: &Hold) -> Result<Run, Error> {
        let single = &self.single;
        let (operation, destination) = (single.operation, &single.destination);
        let mut copies = self.adapters.ledger.prepare_copies(hold).await?;
        let list = format!("phone\n{}\n", single.phone);
        let sha256 = Tee::new(list.as_bytes(), Some(copies.list()?)).finish().map_err(copying)?;
        let today = (self.adapters.clock)().to_zoned(TimeZone::system()).date().to_string();
        let frozen = operation.frozen(destination.gateway(), today, sha256);
        let run = self.adapters.ledger.create_run(&self.new_run()).await?;
        copies.freeze(frozen.to_bytes().map_err(|error| copying(error.into()))?, &run).await?;
        self.adapters.ledger.open_run(run.key, None).await?;
        Ok(run)
    }

    fn new_run(&self) -> NewRun {
        let (operation, destination) = (self.single.operation, &self.single.destination);
        NewRun {
            campaign: operation.campaign().to_owned(),
            edition: String::new(),
            gateway: destination.gateway().to_owned(),
            account: destination.account().to_owned(),
            endpoint: Endpoint::Sync,
            kind: operation.kind(),
            live: destination.is_live(),
            round: 1,
            recipients: 1,
            last_row: SingleKind::ROW,
            left_out: LeftOut::default(),
            file: None,
            began_at: (self.adapters.clock)(),
            random: rand::random(),
        }
    }

    /// Ends what earlier calls left open when they were killed: nothing goes on with it, and doubt stays doubt.
    ///
    /// They are held, so none of them can still be going on.
    pub(super) async fn close_interrupted(&self, hold: &Hold) -> Result<(), Error> {
        let (ledger, single) = (self.adapters.ledger.as_ref(), &self.single);
        let open = RunFilter { open: true, ..RunFilter::of_campaign(single.operation.campaign()) };
        let mut runs = ledger.runs(open).await?;
        runs.retain(|run| run.account == single.destination.account());
        for run in runs {
            let lease = ledger.claim(hold, run.key).await?.lease;
            let run = Run { progress: Progress::Finished, ..run };
            let Snapshot { counts, parts, .. } = Snapshot::read(ledger, &run, false).await?;
            let unsent = counts.get(State::NotSent) > 0;
            let end = RunEnd {
                lag: None,
                progress: run.progress,
                stop: unsent.then_some(StopKind::Asked),
                stopped: unsent.then(|| "interrupted before it was sent".to_owned()),
                counts,
                parts: parts.billed,
                results: None,
                at: (self.adapters.clock)(),
            };
            ledger.end(lease, end).await?;
        }
        Ok(())
    }
}

fn copying(error: io::Error) -> Error {
    Error::Storage(format!("the number cannot be written to the state folder: {error}"))
}
