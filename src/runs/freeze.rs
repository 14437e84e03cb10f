//! The frozen copies of a run: made when it begins, compared when it goes on, sent from.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;
use std::sync::Arc;

use super::launch::Session;
use super::list_changes::list_changes;
use super::{Error, Inputs, ListSurvey, blocking};
use crate::check::{Prepared, Tee, Texts, prepare};
use crate::delivery::{FrozenInputs, RunFolder};
use crate::ledger::Hold;
use crate::regular_file;

/// The folder of a run that has not begun; dropped, it is removed.
pub(super) struct NewFolder(Option<RunFolder>);

impl NewFolder {
    /// A new folder for a run of what is held.
    pub(super) fn prepare(state: &Path, hold: &Hold) -> Result<Self, Error> {
        let folder = RunFolder::prepare(state, hold).map_err(copying)?;
        Ok(Self(Some(folder)))
    }

    /// A file for the copy of the recipients.
    pub(super) fn create_recipients(&self) -> Result<File, Error> {
        self.folder()?.create_recipients().map_err(copying)
    }

    /// Freezes what a run is sent from, and gives the folder the run's name in the state folder.
    pub(super) fn freeze(
        &mut self,
        frozen: &FrozenInputs,
        recipients: &File,
        (state, run): (&Path, &str),
    ) -> Result<RunFolder, Error> {
        let folder = self.0.take().ok_or_else(gone)?;
        folder.freeze(frozen, recipients).map_err(copying)?;
        folder.rename(state, run).map_err(copying)
    }

    fn folder(&self) -> Result<&RunFolder, Error> {
        self.0.as_ref().ok_or_else(gone)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if let Some(folder) = self.0.take() {
            // Nothing was sent from it; what cannot be removed harms nobody.
            let _ = folder.discard();
        }
    }
}

impl Session {
    /// What a run that begins now freezes.
    pub(super) fn frozen(&self, survey: &ListSurvey) -> FrozenInputs {
        let campaign = &self.inputs().campaign;
        FrozenInputs {
            brief: campaign.brief.clone(),
            includes: survey.includes.clone(),
            today: self.inputs().today.clone(),
            // From the root, since what follows may be said in any folder.
            campaign_file: std::path::absolute(&campaign.file).unwrap_or_else(|_| campaign.file.clone()),
            list: campaign.recipients.clone(),
            recipients_sha256: survey.sha256.clone(),
        }
    }

    /// What changed since the run in `folder` began, in words.
    pub(super) async fn changes(&self, folder: &RunFolder) -> Result<Vec<String>, Error> {
        changes(self.inputs(), folder).await
    }
}

/// What changed since the run in `folder` began, in words.
pub(super) async fn changes(inputs: &Arc<Inputs>, folder: &RunFolder) -> Result<Vec<String>, Error> {
    let (inputs, folder) = (Arc::clone(inputs), folder.clone());
    blocking(move || {
        // A run whose copies are lost cannot go on; it can be ended, and then whoever has a message is skipped.
        let Some(frozen) = folder.frozen().ok().filter(|frozen| is_whole(&folder, frozen)) else {
            let path = folder.path().display();
            return Ok(vec![format!("the copies it is sent from, in `{path}`, are missing or damaged")]);
        };
        let (campaign, (includes, sha256)) = (&inputs.campaign, inputs.fingerprint()?);
        let list = || {
            let copy = folder.recipients();
            list_changes((&copy, &frozen.brief), (&campaign.recipients, &campaign.brief))
        };
        let recipients = (frozen.recipients_sha256 != sha256).then(list);
        Ok(frozen.differences(&campaign.brief, &includes, recipients))
    })
    .await?
}

/// Whether a run's own copies are not what it froze.
pub(super) fn is_damaged(folder: &RunFolder) -> bool {
    folder.frozen().is_ok_and(|frozen| !is_whole(folder, &frozen))
}

/// Whether the copy of the recipients is what was frozen.
fn is_whole(folder: &RunFolder, frozen: &FrozenInputs) -> bool {
    let hashed = regular_file::open(&folder.recipients()).and_then(|list| Tee::new(list, None::<File>).finish());
    hashed.is_ok_and(|(_, sha256)| sha256 == frozen.recipients_sha256)
}

/// Opens the frozen copies of a run: what is sent never depends on what the files say now.
pub(super) async fn thaw(folder: RunFolder) -> Result<(FrozenInputs, Prepared<BufReader<File>>), Error> {
    blocking(move || {
        let damaged = |error: String| {
            Error::Storage(format!("the frozen copies in `{}` cannot be read: {error}", folder.path().display()))
        };
        let frozen = folder.frozen().map_err(|error| damaged(error.to_string()))?;
        let path = folder.recipients();
        let file = regular_file::open(&path).map_err(|error| damaged(error.to_string()))?;
        let mut load = |name: &str| {
            let found = frozen.includes.iter().find(|(include, _)| include == name);
            found.map(|(_, source)| source.clone()).ok_or_else(|| format!("the text `{name}` is not among the copies"))
        };
        let texts = Texts { places: None, load: &mut load };
        let prepared = prepare(&frozen.brief, (BufReader::with_capacity(1 << 16, file), &path), texts, &frozen.today)
            .map_err(|findings| {
            damaged(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
        })?;
        Ok((frozen, prepared))
    })
    .await?
}

fn copying(error: io::Error) -> Error {
    Error::Storage(format!("the inputs cannot be copied to the state folder: {error}"))
}

fn gone() -> Error {
    Error::Internal("the run's folder is gone".to_owned())
}
