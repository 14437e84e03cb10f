//! Going on with an unfinished run.

use std::sync::Arc;

use super::{Ready, Selected, Session};
use crate::cli::exit::Failure;
use crate::cli::survey::blocking;
use crate::cli::{confirm, runs};
use crate::delivery::RunFolder;
use crate::ledger::{Run, State};

impl Session<'_> {
    /// What changed since the run in `folder` began, in words.
    pub(super) async fn changes(&self, folder: &RunFolder) -> Result<Vec<String>, Failure> {
        let inputs = Arc::clone(&self.inputs);
        let folder = folder.clone();
        blocking(move || {
            let frozen = folder.frozen().map_err(|error| {
                Failure::storage(format!("the frozen copies in `{}` cannot be read: {error}", folder.path().display()))
            })?;
            let (includes, sha256) = inputs.fingerprint()?;
            Ok(frozen.differences(&inputs.campaign.brief, &includes, &sha256))
        })
        .await
    }

    /// Asks for a yes to go on, and gives back the run.
    pub(super) async fn resume(&self, run: Run, folder: RunFolder) -> Result<Ready, Failure> {
        if let Some(profile) = self.inputs.profile.as_ref().filter(|profile| !profile.is_loopback()) {
            runs::check_host(self.ledger.as_ref(), profile).await?;
            let standing = runs::standing(self.ledger.as_ref(), &run, false).await?;
            let left = self.to_send(standing.counts.get(State::Planned));
            confirm::resume(self.context, &self.args, profile, (&run, &standing), left).await?;
        }
        self.context.output.note(&format!("going on with {}", run.name()));
        Ok(Ready::Run(Box::new(Selected { run, folder })))
    }
}
