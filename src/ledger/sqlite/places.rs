//! The places at which blocks are drawn: a lock each, which the system lets go of when its process ends, however it ends.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::lock;
use crate::ledger::{LedgerError, Rows, Run, SharedRun, hold};

/// A place, and the block that was drawn there last.
pub(super) struct Place {
    pub(super) number: u32,
    pub(super) rows: Rows,
}

/// The blocks of a run at those of its places where some process is; it only looks.
pub(super) fn taken(ledger: &Path, run: &Run, places: &[Place]) -> Result<Vec<Rows>, LedgerError> {
    let mut taken = Vec::new();
    for place in places {
        let file = file(ledger, run, place);
        if lock::is_held(&file).map_err(|error| lock::failed(&file, &error))? {
            taken.push(place.rows);
        }
    }
    Ok(taken)
}

/// Those of the places where nobody is, and their locks: as long as they are kept, nobody comes there.
pub(super) fn shut(ledger: &Path, run: &Run, places: &[Place]) -> Result<(Vec<u32>, Vec<File>), LedgerError> {
    let (mut shut, mut locks) = (Vec::new(), Vec::new());
    for place in places {
        if let Some(lock) = take(&file(ledger, run, place))? {
            shut.push(place.number);
            locks.push(lock);
        }
    }
    Ok((shut, locks))
}

/// The first place where nobody is, and its lock.
pub(super) fn free(ledger: &Path, SharedRun { campaign, account, .. }: &SharedRun) -> Result<(u32, File), LedgerError> {
    let mut number = 0;
    loop {
        // One that nobody ever came to is free.
        if let Some(lock) = take(&lock::path(ledger, &hold::place_name(campaign, account, number)))? {
            return Ok((number, lock));
        }
        number += 1;
    }
}

fn file(ledger: &Path, run: &Run, place: &Place) -> PathBuf {
    lock::path(ledger, &hold::place_name(&run.campaign, &run.account, place.number))
}

fn take(file: &Path) -> Result<Option<File>, LedgerError> {
    lock::try_take(file).map_err(|error| lock::failed(file, &error))
}
