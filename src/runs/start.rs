//! What a call to send begins with: an unfinished run that goes on, or a new one. Or why it may not.

use std::sync::Arc;

use super::freeze::{RunChanges, compare_inputs};
use super::inputs::Includes;
use super::whose::refuse_other_file;
use super::{
    ChangedInputs, EarlierEdition, Error, Inputs, SentRecipients, find_sent_recipients, list_campaign_runs,
    run_blocking,
};
use crate::delivery::FrozenInputs;
use crate::ledger::{Ledger, Run, RunProgress};
use crate::report::is_owned;

/// What the texts of a campaign say today.
pub(super) struct TodaysTexts {
    /// The edition, rendered.
    pub(super) edition: String,
    /// The texts that others include or extend, by name.
    pub(super) includes: Includes,
}

impl TodaysTexts {
    /// Opens the list and compiles the texts.
    pub(super) async fn compile(inputs: &Arc<Inputs>) -> Result<Self, Error> {
        let inputs = Arc::clone(inputs);
        run_blocking(move || {
            let prepared = inputs.compile_campaign()?;
            Ok(Self { includes: prepared.recipe.list_includes().to_vec(), edition: prepared.edition })
        })
        .await?
    }
}

/// Tells why `run` would send nothing of these inputs, if it would be for what was sent before.
///
/// # Errors
/// Why not; or that the ledger or an input cannot be read.
pub(super) async fn refuse_start(ledger: &dyn Ledger, inputs: &Arc<Inputs>) -> Result<(), Error> {
    if !inputs.destination.is_live() {
        return Ok(());
    }
    let opened = TodaysTexts::compile(inputs).await?;
    let runs = list_campaign_runs(ledger, inputs).await?;
    refuse_other_file(ledger, &runs, inputs, &opened.includes).await?;
    match runs.iter().rfind(|run| run.progress == RunProgress::Open) {
        // Whoever sends it now goes by its copies.
        Some(open) if is_owned(ledger, open).await? => Ok(()),
        Some(open) => refuse_changes(ledger, open, inputs, &opened.edition).await,
        None => {
            let sent = find_sent_recipients(ledger, inputs, &opened.edition).await?;
            refuse_other_text(ledger, &sent, inputs, &opened.includes).await
        }
    }
}

/// Refuses to go on with a run whose campaign, texts or list changed since it began; `edition` is the one of now.
pub(super) async fn refuse_changes(
    ledger: &dyn Ledger,
    run: &Run,
    inputs: &Arc<Inputs>,
    edition: &str,
) -> Result<(), Error> {
    let RunChanges { what: Some(changes), keeps_edition } = compare_inputs(ledger, run, inputs).await? else {
        return Ok(());
    };
    let earlier_edition = (run.edition != edition).then(|| EarlierEdition {
        unfinished: run.edition.clone(),
        current: edition.to_owned(),
        is_kept: keeps_edition,
    });
    let (run, file, through) = (run.name(), inputs.campaign.file.clone(), &inputs.campaign.brief.gateway);
    let gateway = (*through != inputs.own_gateway).then(|| through.clone());
    Err(Error::InputsChanged(Box::new(ChangedInputs { run, file, gateway, changes, earlier_edition })))
}

/// Refuses another text within an edition whose people have a message: they would get nothing of it.
pub(super) async fn refuse_other_text(
    ledger: &dyn Ledger,
    sent: &SentRecipients,
    inputs: &Inputs,
    includes: &Includes,
) -> Result<(), Error> {
    let Some(run) = sent.last_run().filter(|_| !sent.numbers.is_empty()) else { return Ok(()) };
    // What cannot be compared refuses nothing: whoever has a message is skipped all the same.
    let Ok(frozen) = FrozenInputs::load_for_run(ledger, run).await else { return Ok(()) };
    if frozen.has_same_messages(&inputs.campaign.brief, includes) {
        return Ok(());
    }
    Err(Error::TextChanged { run: run.name(), began_at: run.began_at, people: sent.numbers.len() })
}
