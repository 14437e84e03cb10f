//! A live run whose ledger does not know of messages that went out: refused, unless a person says that it counts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Error, Event, Inputs, Observer};
use crate::ledger::{Ledger, StrayCopies};
use crate::report::{LossSign, stray_runs, unknown_results};

/// Refuses to send while something contradicts the ledger, or that there is none; never refuses a rehearsal.
///
/// # Errors
/// When something does, or the ledger cannot be read.
pub(super) async fn refuse_lost(ledger: &dyn Ledger, inputs: &Inputs) -> Result<(), Error> {
    refuse(signs(ledger, inputs).await?, ledger.place())
}

/// The same where there is no ledger, while these copies stand where one would have them.
///
/// # Errors
/// When something tells of messages.
pub(super) async fn refuse_stray(copies: Vec<StrayCopies>, state: &Path, inputs: &Inputs) -> Result<(), Error> {
    match inputs.destination.is_live() {
        true => refuse(all_signs(copies, None, inputs).await?, state.display().to_string()),
        false => Ok(()),
    }
}

fn refuse(signs: Vec<LossSign>, ledger: String) -> Result<(), Error> {
    if signs.is_empty() { Ok(()) } else { Err(Error::LedgerLost { ledger, signs }) }
}

/// Gives what contradicts the ledger other names, because a person wants the ledger to count.
pub(super) async fn put_aside(ledger: &dyn Ledger, inputs: &Inputs, observer: &Observer) -> Result<(), Error> {
    for sign in signs(ledger, inputs).await? {
        let aside = match &sign {
            LossSign::Copies { run, .. } => ledger.put_copies_aside(run).await.map_err(|error| error.reason()),
            LossSign::Results { path, .. } => {
                rename(path).map(|aside| aside.display().to_string()).map_err(|error| error.to_string())
            }
        };
        let aside = aside.map_err(|error| Error::Storage(format!("{sign}: {error}")))?;
        observer(Event::PutAside { sign, aside });
    }
    Ok(())
}

async fn signs(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<LossSign>, Error> {
    match inputs.destination.is_live() {
        true => all_signs(ledger.stray_copies().await?, Some(ledger), inputs).await,
        false => Ok(Vec::new()),
    }
}

async fn all_signs(
    copies: Vec<StrayCopies>,
    ledger: Option<&dyn Ledger>,
    inputs: &Inputs,
) -> Result<Vec<LossSign>, Error> {
    let mut signs = stray_runs(copies);
    signs.extend(unknown_results(ledger, &inputs.campaign.results_file()).await?);
    Ok(signs)
}

/// Gives results that contradict the ledger another name beside their own, and tells it.
fn rename(path: &Path) -> io::Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
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
            let aside = rename(&path).unwrap();
            assert_eq!((aside.file_name().unwrap().to_str().unwrap(), path.exists()), (name, false));
            assert_eq!(fs::read_to_string(aside).unwrap(), text);
        }
    }
}
