//! What a run is sent from: frozen when it begins, compared when it goes on.

use std::io::{self, BufReader, Sink};
use std::sync::Arc;

use super::launch::Session;
use super::list_changes::{is_same_but, list_changes};
use super::{Error, InputChanges, Inputs, List, ListSurvey, blocking};
use crate::check::{CompiledCampaign, Tee};
use crate::delivery::{FrozenInputs, compile_frozen};
use crate::ledger::{Copies, Ledger, LedgerError, ListReader, Run};

/// What changed since a run began.
pub(super) struct Changes {
    /// What; nothing if the inputs are the same.
    pub(super) what: Option<InputChanges>,
    /// Whether the campaign says its edition with the words that it froze, so that what takes its place keeps it.
    pub(super) keeps_edition: bool,
}

/// What a run that begins now freezes.
pub(super) fn frozen(inputs: &Inputs, survey: &ListSurvey) -> FrozenInputs {
    let campaign = &inputs.campaign;
    FrozenInputs {
        brief: campaign.brief.clone(),
        includes: survey.includes.clone(),
        today: inputs.today.clone(),
        // From the root, since what follows may be said in any folder.
        campaign_file: std::path::absolute(&campaign.file).unwrap_or_else(|_| campaign.file.clone()),
        list: campaign.recipients.file().map(|list| list.path().into()),
        recipients_sha256: survey.sha256.clone(),
        forgotten: Vec::new(),
        trims_cells: true,
    }
}

impl Session {
    /// What changed since a run began.
    pub(super) async fn changes(&self, run: &Run) -> Result<Changes, Error> {
        changes(self.adapters.ledger.as_ref(), run, self.inputs()).await
    }
}

/// What changed since a run began.
pub(super) async fn changes(ledger: &dyn Ledger, run: &Run, inputs: &Arc<Inputs>) -> Result<Changes, Error> {
    let copies = match ledger.copies(run).await {
        Ok(copies) => copies,
        Err(LedgerError::Copies { place, .. }) => return Ok(Changes::lost(&place, false)),
        Err(error) => return Err(error.into()),
    };
    let inputs = Arc::clone(inputs);
    blocking(move || {
        let Ok(frozen) = FrozenInputs::of(&copies) else { return Ok(Changes::lost(copies.place(), false)) };
        if !is_whole(&copies, &frozen) {
            return Ok(Changes::lost(copies.place(), true));
        }
        // What was fetched once is not compared with what would be fetched now.
        let inputs = match inputs.campaign.recipients.file() {
            Some(_) => inputs,
            None => Arc::new(inputs.with_list(List::Copies(copies.clone()))),
        };
        let (campaign, (includes, sha256)) = (&inputs.campaign, inputs.fingerprint()?);
        let list = || {
            let now = inputs.list().map_err(|_| io::ErrorKind::Other.into());
            list_changes((copies.list(), &frozen.brief), (now, &campaign.brief))
        };
        let is_same = frozen.recipients_sha256 == sha256
            || !frozen.forgotten.is_empty() && {
                let now = inputs.list().map_err(|_| io::ErrorKind::Other.into());
                is_same_but((copies.list(), &frozen.brief), (now, &campaign.brief), &frozen.forgotten)
            };
        let how = (!is_same).then(list);
        let settings = frozen.differences(&campaign.brief, &includes, None);
        let keeps_edition = frozen.brief.edition == campaign.brief.edition;
        Ok(Changes { what: InputChanges::of(settings, how, &campaign.recipients), keeps_edition })
    })
    .await?
}

impl Changes {
    /// Of a run whose copies are lost: it cannot be resumed, but it can be replaced, and then recipients of a message are skipped.
    fn lost(place: &str, damaged: bool) -> Self {
        Self { what: Some(InputChanges::Copies { place: place.to_owned(), damaged }), keeps_edition: false }
    }
}

/// Whether the copy of the list is what was frozen.
pub(super) fn is_whole(copies: &Copies, frozen: &FrozenInputs) -> bool {
    let hashed = copies.list().and_then(|list| Tee::new(list, None::<Sink>).finish());
    hashed.is_ok_and(|sha256| sha256 == frozen.recipients_sha256)
}

/// Opens the copies of a run: what is sent never depends on what the files say now.
///
/// # Errors
/// When the ledger has no copies of it, or they are damaged.
pub async fn thaw(
    ledger: &dyn Ledger,
    run: &Run,
) -> Result<(FrozenInputs, CompiledCampaign<BufReader<ListReader>>), Error> {
    let copies = ledger.copies(run).await?;
    blocking(move || {
        let frozen = FrozenInputs::of(&copies)?;
        let list = copies.list().map_err(|error| copies.unusable(error))?;
        let list = (BufReader::with_capacity(1 << 16, list), copies.place().as_ref());
        let prepared = compile_frozen(&frozen, list).map_err(|findings| {
            copies.unusable(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
        })?;
        Ok((frozen, prepared))
    })
    .await?
}
