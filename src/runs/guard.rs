//! Who has a message of a campaign already.

use roaring::RoaringTreemap;

use super::{Error, Inputs};
use crate::ledger::{Ledger, Run, RunFilter, RunId};

/// The numbers that have a message of this campaign and edition through this account, and the round they are of.
///
/// The built-in sandbox forgets between runs, so a rehearsal is never guarded.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn already_sent(ledger: &dyn Ledger, inputs: &Inputs, edition: &str) -> Result<(RoaringTreemap, u32), Error> {
    let mut runs = runs_of(ledger, inputs).await?;
    runs.retain(|run| run.edition == edition);
    let round = runs.iter().map(|run| run.round).max().unwrap_or(1);
    if !inputs.destination.is_live() {
        return Ok((RoaringTreemap::new(), round));
    }
    let keys: Vec<RunId> = runs.iter().filter(|run| run.round == round).map(|run| run.key).collect();
    Ok((ledger.numbers_sent_to(&keys).await?, round))
}

/// The runs of this campaign through this account, whatever their edition, oldest first.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn runs_of(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<Run>, Error> {
    let (brief, live) = (&inputs.campaign.brief, inputs.destination.is_live());
    let mut runs = ledger.runs(RunFilter::of_campaign(&brief.name)).await?;
    runs.retain(|run| run.live == live && run.went_through(&brief.gateway, inputs.destination.account()));
    Ok(runs)
}

/// The runs of the same campaign, edition and account as this one, oldest first: all that its people may have a message of.
///
/// The built-in sandbox forgets between runs, so a rehearsal stands alone.
///
/// # Errors
/// When the ledger cannot be read.
pub async fn edition_of(ledger: &dyn Ledger, run: &Run) -> Result<Vec<Run>, Error> {
    let mut runs = ledger.runs(RunFilter::of_campaign(&run.campaign)).await?;
    runs.retain(|other| {
        other.key == run.key
            || run.live && other.live && other.edition == run.edition && other.went_through(&run.gateway, &run.account)
    });
    Ok(runs)
}
