//! A live run whose ledger does not know of messages that went out: refused, unless a person says that it counts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Error, Inputs, RunEvent, RunObserver};
use crate::ledger::{Ledger, StrayCopies};
use crate::report::{LossSign, find_stray_runs, find_unknown_results};

/// Refuses to send while something contradicts the ledger, or that there is none; never refuses a rehearsal.
///
/// # Errors
/// When something does, or the ledger cannot be read.
pub(super) async fn refuse_lost_ledger(ledger: &dyn Ledger, inputs: &Inputs) -> Result<(), Error> {
    refuse_signs(find_loss_signs(ledger, inputs).await?, ledger.describe_location())
}

/// The same where there is no ledger, while these copies stand where one would have them.
///
/// # Errors
/// When something tells of messages.
pub(super) async fn refuse_stray_copies(copies: Vec<StrayCopies>, state: &Path, inputs: &Inputs) -> Result<(), Error> {
    match inputs.destination.is_live() {
        true => refuse_signs(collect_loss_signs(copies, None, inputs).await?, state.display().to_string()),
        false => Ok(()),
    }
}

fn refuse_signs(signs: Vec<LossSign>, ledger: String) -> Result<(), Error> {
    if signs.is_empty() { Ok(()) } else { Err(Error::LedgerLost { ledger, signs }) }
}

/// Gives what contradicts the ledger other names, because a person wants the ledger to count.
pub(super) async fn move_signs_aside(
    ledger: &dyn Ledger,
    inputs: &Inputs,
    observer: &RunObserver,
) -> Result<(), Error> {
    for sign in find_loss_signs(ledger, inputs).await? {
        let aside = match &sign {
            LossSign::Copies { run, .. } => ledger.set_copies_aside(run).await.map_err(|error| error.reason()),
            LossSign::Results { path, .. } => {
                rename_results(path).map(|aside| aside.display().to_string()).map_err(|error| error.to_string())
            }
        };
        let aside = aside.map_err(|error| Error::Storage(format!("{sign}: {error}")))?;
        observer(RunEvent::PutAside { sign, aside });
    }
    Ok(())
}

async fn find_loss_signs(ledger: &dyn Ledger, inputs: &Inputs) -> Result<Vec<LossSign>, Error> {
    match inputs.destination.is_live() {
        true => collect_loss_signs(ledger.list_stray_copies().await?, Some(ledger), inputs).await,
        false => Ok(Vec::new()),
    }
}

async fn collect_loss_signs(
    copies: Vec<StrayCopies>,
    ledger: Option<&dyn Ledger>,
    inputs: &Inputs,
) -> Result<Vec<LossSign>, Error> {
    let mut signs = find_stray_runs(copies);
    signs.extend(find_unknown_results(ledger, &inputs.campaign.results_file()).await?);
    Ok(signs)
}

/// Gives results that contradict the ledger another name beside their own, and tells it.
fn rename_results(path: &Path) -> io::Result<PathBuf> {
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
    fn renamed_results_keep_their_extension_and_replace_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sale.csv");
        for (text, name) in [("first", "sale.old-1.csv"), ("second", "sale.old-2.csv")] {
            fs::write(&path, text).unwrap();
            let aside = rename_results(&path).unwrap();
            assert_eq!((aside.file_name().unwrap().to_str().unwrap(), path.exists()), (name, false));
            assert_eq!(fs::read_to_string(aside).unwrap(), text);
        }
    }
}
