//! A live run whose ledger does not know of messages that went out: refused, unless a person says that it counts.

use std::path::Path;

use super::{Error, Event, Inputs, Observer};
use crate::ledger::Ledger;
use crate::report::{Sign, unknown_copies, unknown_results};

/// Refuses to send while something contradicts the ledger, or that there is none; never refuses a rehearsal.
///
/// # Errors
/// When something does, or the ledger cannot be read.
pub async fn refuse_lost(ledger: Option<&dyn Ledger>, state: &Path, inputs: &Inputs) -> Result<(), Error> {
    let signs = signs(ledger, state, inputs).await?;
    if signs.is_empty() { Ok(()) } else { Err(Error::LedgerLost { state: state.to_owned(), signs }) }
}

/// Gives what contradicts the ledger other names, because a person wants the ledger to count.
pub(super) async fn put_aside(
    ledger: &dyn Ledger,
    state: &Path,
    inputs: &Inputs,
    observer: &Observer,
) -> Result<(), Error> {
    for sign in signs(Some(ledger), state, inputs).await? {
        let aside = sign.put_aside().map_err(|error| Error::Storage(format!("{sign}: {error}")))?;
        observer(Event::PutAside { sign, aside });
    }
    Ok(())
}

async fn signs(ledger: Option<&dyn Ledger>, state: &Path, inputs: &Inputs) -> Result<Vec<Sign>, Error> {
    if !inputs.destination.is_live() {
        return Ok(Vec::new());
    }
    let mut signs = unknown_copies(ledger, state).await?;
    signs.extend(unknown_results(ledger, &inputs.campaign.results_file()).await?);
    Ok(signs)
}
