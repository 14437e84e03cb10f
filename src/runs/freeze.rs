//! What a run is sent from: frozen when it begins, compared when it goes on.

use std::io::{self, BufReader, Sink};
use std::sync::Arc;

use super::launch::Session;
use super::list_changes::{describe_list_changes, is_same_except};
use super::{CampaignList, Error, InputChanges, Inputs, ListSurvey, run_blocking};
use crate::check::{CompiledCampaign, Tee};
use crate::delivery::{FrozenInputs, compile_frozen};
use crate::ledger::{Copies, Ledger, LedgerError, ListReader, Run};

/// What changed since a run began.
pub(super) struct RunChanges {
    /// What; nothing if the inputs are the same.
    pub(super) what: Option<InputChanges>,
    /// Whether the campaign says its edition with the words that it froze, so that what takes its place keeps it.
    pub(super) keeps_edition: bool,
}

/// What a run that begins now freezes.
pub(super) fn freeze_inputs(inputs: &Inputs, survey: &ListSurvey) -> FrozenInputs {
    let campaign = &inputs.campaign;
    FrozenInputs {
        brief: campaign.brief.clone(),
        includes: survey.includes.clone(),
        today: inputs.today.clone(),
        // From the root, since what follows may be said in any folder.
        campaign_file: std::path::absolute(&campaign.file).unwrap_or_else(|_| campaign.file.clone()),
        list: campaign.recipients.list_file().map(|list| list.path().into()),
        recipients_sha256: survey.sha256.clone(),
        forgotten: Vec::new(),
        trims_cells: true,
    }
}

impl Session {
    /// What changed since a run began.
    pub(super) async fn find_changes(&self, run: &Run) -> Result<RunChanges, Error> {
        compare_inputs(self.adapters.ledger.as_ref(), run, self.inputs()).await
    }
}

/// What changed since a run began.
pub(super) async fn compare_inputs(ledger: &dyn Ledger, run: &Run, inputs: &Arc<Inputs>) -> Result<RunChanges, Error> {
    let copies = match ledger.load_copies(run).await {
        Ok(copies) => copies,
        Err(LedgerError::CopiesUnreadable { place, .. }) => return Ok(RunChanges::copies_lost(&place, false)),
        Err(error) => return Err(error.into()),
    };
    let inputs = Arc::clone(inputs);
    run_blocking(move || {
        let Ok(frozen) = FrozenInputs::from_copies(&copies) else {
            return Ok(RunChanges::copies_lost(copies.place(), false));
        };
        if !is_list_intact(&copies, &frozen) {
            return Ok(RunChanges::copies_lost(copies.place(), true));
        }
        // What was fetched once is not compared with what would be fetched now.
        let inputs = match inputs.campaign.recipients.list_file() {
            Some(_) => inputs,
            None => Arc::new(inputs.with_list(CampaignList::Copies(copies.clone()))),
        };
        let (campaign, (includes, sha256)) = (&inputs.campaign, inputs.compute_fingerprint()?);
        let list = || {
            let now = inputs.open_list().map_err(|_| io::ErrorKind::Other.into());
            describe_list_changes((copies.open_list(), &frozen.brief), (now, &campaign.brief))
        };
        let is_same = frozen.recipients_sha256 == sha256
            || !frozen.forgotten.is_empty() && {
                let now = inputs.open_list().map_err(|_| io::ErrorKind::Other.into());
                is_same_except((copies.open_list(), &frozen.brief), (now, &campaign.brief), &frozen.forgotten)
            };
        let how = (!is_same).then(list);
        let settings = frozen.describe_differences(&campaign.brief, &includes, None);
        let keeps_edition = frozen.brief.edition == campaign.brief.edition;
        Ok(RunChanges { what: InputChanges::from_parts(settings, how, &campaign.recipients), keeps_edition })
    })
    .await?
}

impl RunChanges {
    /// Of a run whose copies are lost: it cannot be resumed, but it can be replaced, and then recipients of a message are skipped.
    fn copies_lost(place: &str, damaged: bool) -> Self {
        Self { what: Some(InputChanges::Copies { place: place.to_owned(), damaged }), keeps_edition: false }
    }
}

/// Whether the copy of the list is what was frozen.
pub(super) fn is_list_intact(copies: &Copies, frozen: &FrozenInputs) -> bool {
    let hashed = copies.open_list().and_then(|list| Tee::new(list, None::<Sink>).finish());
    hashed.is_ok_and(|sha256| sha256 == frozen.recipients_sha256)
}

/// Opens the copies of a run: what is sent never depends on what the files say now.
///
/// # Errors
/// When the ledger has no copies of it, or they are damaged.
pub async fn open_copies(
    ledger: &dyn Ledger,
    run: &Run,
) -> Result<(FrozenInputs, CompiledCampaign<BufReader<ListReader>>), Error> {
    let copies = ledger.load_copies(run).await?;
    run_blocking(move || {
        let frozen = FrozenInputs::from_copies(&copies)?;
        let list = copies.open_list().map_err(|error| copies.unreadable_error(error))?;
        let list = (BufReader::with_capacity(1 << 16, list), copies.place().as_ref());
        let prepared = compile_frozen(&frozen, list).map_err(|findings| {
            copies.unreadable_error(findings.into_iter().map(|finding| finding.message).collect::<Vec<_>>().join("; "))
        })?;
        Ok((frozen, prepared))
    })
    .await?
}
