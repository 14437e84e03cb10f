//! The places at which blocks are drawn: a lock each, which is let go of when its process ends, however it ends.

use super::dialect::{Adapter, Lock};
use crate::ledger::{LedgerError, RowSpan, Run, hold};

/// The numbers of locks that a change rests on: each was drawn when this process took its lock; none where the system keeps
/// them, which takes them from nobody.
pub(in crate::ledger) type LockProof = Vec<i64>;

/// A place, and what was drawn there last.
pub(super) struct DrawPlace {
    pub(super) number: u32,
    pub(super) rows: Vec<RowSpan>,
}

/// The blocks of a run at those of its places where some process is; it only looks.
pub(super) async fn list_occupied_rows(
    ledger: &Adapter,
    run: &Run,
    places: &[DrawPlace],
) -> Result<Vec<RowSpan>, LedgerError> {
    let mut taken = Vec::new();
    for place in places {
        if ledger.is_locked(&place_lock_name(run, place)).await? {
            taken.extend(&place.rows);
        }
    }
    Ok(taken)
}

/// Those of the places where nobody is, and their locks: as long as they are kept, nobody comes there.
pub(super) async fn lock_vacant_places(
    ledger: &Adapter,
    run: &Run,
    places: &[DrawPlace],
) -> Result<(Vec<u32>, Vec<Lock>), LedgerError> {
    let (mut shut, mut locks) = (Vec::new(), Vec::new());
    for place in places {
        if let Some(lock) = ledger.try_lock(&place_lock_name(run, place)).await? {
            shut.push(place.number);
            locks.push(lock);
        }
    }
    Ok((shut, locks))
}

/// The first place where nobody is, and its lock.
pub(super) async fn lock_first_vacant_place(
    ledger: &Adapter,
    campaign: &str,
    account: &str,
) -> Result<(u32, Lock), LedgerError> {
    let mut number = 0;
    loop {
        // One that nobody ever came to is free.
        if let Some(lock) = ledger.try_lock(&hold::place_name(campaign, account, number)).await? {
            return Ok((number, lock));
        }
        number += 1;
    }
}

fn place_lock_name(run: &Run, place: &DrawPlace) -> String {
    hold::place_name(&run.campaign, &run.account, place.number)
}
