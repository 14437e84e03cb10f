//! Going on with an unfinished run.

use std::fs::File;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::{Ready, Selected, Start};
use crate::check::Tee;
use crate::cli::exit::Failure;
use crate::cli::survey::blocking;
use crate::cli::{confirm, runs};
use crate::delivery::{FrozenInputs, RunFolder, RunLock, Snapshot};
use crate::domain::Row;
use crate::ledger::{Run, State};
use crate::regular;

impl Start<'_> {
    /// What changed since the run in `folder` began, in words.
    pub(super) async fn changes(&self, folder: &RunFolder) -> Result<Vec<String>, Failure> {
        let inputs = Arc::clone(&self.inputs);
        let folder = folder.clone();
        blocking(move || {
            // A run whose copies are lost cannot go on; it can be ended, and then whoever has a message is skipped.
            let Some(frozen) = folder.frozen().ok().filter(|frozen| is_whole(&folder, frozen)) else {
                return Ok(vec![format!(
                    "the copies it is sent from, in `{}`, are missing or damaged",
                    folder.path().display()
                )]);
            };
            let (includes, sha256) = inputs.fingerprint()?;
            Ok(frozen.differences(&inputs.campaign.brief, &includes, &sha256))
        })
        .await
    }

    /// Asks for a yes to go on, and gives back the run.
    pub(super) async fn resume(&self, run: Run, folder: RunFolder, lock: Option<RunLock>) -> Result<Ready, Failure> {
        let snapshot = runs::snapshot(self.ledger.as_ref(), &run, false).await?;
        let left = snapshot.counts.get(State::Planned);
        let open = open_rows(&run, &snapshot);
        let number = if left == 0 { 0 } else { self.chosen(&open, run.last_row())?.len() };
        if let Some(profile) = self.inputs.destination.remote() {
            runs::check_host(&self.context.output, self.ledger.as_ref(), profile).await?;
            if left > 0 && self.asks_first() {
                self.ask_for_rest(profile, &open).await?;
            }
            confirm::resume(self.context, &self.args, profile, (&run, &snapshot), number.min(left)).await?;
        }
        self.context.output.note(&format!("going on with {}", run.name()));
        Ok(Ready::Run(Box::new(Selected { run, folder, lock })))
    }
}

/// Whether the copy of the recipients is what was frozen.
pub(super) fn is_whole(folder: &RunFolder, frozen: &FrozenInputs) -> bool {
    let hashed = regular::open(&folder.recipients()).and_then(|list| Tee::new(list, None::<File>).finish());
    hashed.is_ok_and(|(_, sha256)| sha256 == frozen.recipients_sha256)
}

/// The rows of an unfinished run that may still be sent; blank rows of the list are among them.
fn open_rows(run: &Run, snapshot: &Snapshot) -> RoaringBitmap {
    let mut rows = RoaringBitmap::new();
    rows.insert_range(Row::HEADER.get() + 1..=run.last_row().get());
    rows - &snapshot.settled
}
