//! A live run whose ledger does not know of messages that went out: refused, unless a person says that it counts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Error, Event, Inputs, Observer};
use crate::ledger::Ledger;
use crate::report::{LossSign, unknown_copies, unknown_results};

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
        let aside = rename(&sign).map_err(|error| Error::Storage(format!("{sign}: {error}")))?;
        observer(Event::PutAside { sign, aside });
    }
    Ok(())
}

async fn signs(ledger: Option<&dyn Ledger>, state: &Path, inputs: &Inputs) -> Result<Vec<LossSign>, Error> {
    if !inputs.destination.is_live() {
        return Ok(Vec::new());
    }
    let mut signs = unknown_copies(ledger, state).await?;
    signs.extend(unknown_results(ledger, &inputs.campaign.results_file()).await?);
    Ok(signs)
}

/// Gives what contradicts the ledger another name beside its own, and tells that name.
fn rename(sign: &LossSign) -> io::Result<PathBuf> {
    let (LossSign::Copies(path) | LossSign::Results { path, .. }) = sign;
    let (stem, extension) = match sign {
        LossSign::Copies(_) => (path.file_name(), None),
        LossSign::Results { .. } => (path.file_stem(), path.extension()),
    };
    let stem = stem.unwrap_or_default().to_string_lossy();
    let extension = extension.map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    let named = |number: u32| path.with_file_name(format!("{stem}.old-{number}{extension}"));
    let aside = (1..).map(named).find(|aside| !aside.exists()).unwrap_or_default();
    fs::rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_aside_keeps_its_kind_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.csv");
        for (text, name) in [("first", "sale.old-1.csv"), ("second", "sale.old-2.csv")] {
            fs::write(&path, text).unwrap();
            let aside = rename(&LossSign::Results { path: path.clone(), identifiers: 1 }).unwrap();
            assert_eq!((aside.file_name().unwrap().to_str().unwrap(), path.exists()), (name, false));
            assert_eq!(fs::read_to_string(aside).unwrap(), text);
        }
    }
}
