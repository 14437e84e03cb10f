//! Opt-outs that an import added: how many of a file are new, which an opt-out of the recipient replaces, and undoing an import.

use std::collections::{HashMap, HashSet};

use super::change::{Now, StatementError};
use super::dialect::Connection;
use super::suppression::{
    ENTRIES_PER_STATEMENT, bump_version, mark_removed, opt_out_from_row, resolve_opt_outs, select_records,
};
use crate::ledger::{Additions, EntryRemoval, OptOut, OptOutReach, OptOutScope};

/// Why a record is no longer on the list.
const REPLACED_REASON: &str = "replaced by an opt-out of their own";

/// What an opt-out is about: records with the same key cover each other.
type OptOutKey<'a> = (u64, &'a OptOutScope, OptOutReach);

fn opt_out_key(opt_out: &OptOut) -> OptOutKey<'_> {
    (opt_out.who.to_u64(), &opt_out.scope, opt_out.reach)
}

/// What would come of adding these to the list.
pub(super) async fn count_additions(reader: &mut Connection, opt_outs: &[OptOut]) -> Result<Additions, StatementError> {
    let opt_outs = resolve_opt_outs(reader, opt_outs).await?;
    let (mut additions, mut seen) = (Additions::default(), HashSet::new());
    for some in opt_outs.chunks(ENTRIES_PER_STATEMENT) {
        let known = load_known_opt_outs(reader, some).await?;
        let known: HashMap<OptOutKey<'_>, &OptOut> = known.iter().map(|known| (opt_out_key(known), known)).collect();
        for new in some {
            let stays = known.get(&opt_out_key(new)).is_some_and(|known| !new.replaces(known));
            if stays || !seen.insert(opt_out_key(new)) {
                additions.already += 1;
            } else {
                additions.added += 1;
            }
        }
    }
    Ok(additions)
}

async fn load_known_opt_outs(reader: &mut Connection, opt_outs: &[OptOut]) -> Result<Vec<OptOut>, StatementError> {
    let records = select_records(reader, opt_outs.iter().map(|opt_out| opt_out.who)).await?;
    records.iter().map(opt_out_from_row).collect()
}

/// Takes imported records off the list that these opt-outs replace.
pub(super) async fn replace_imported(connection: &mut Connection, opt_outs: &[OptOut]) -> Result<(), StatementError> {
    let own: Vec<&OptOut> = opt_outs.iter().filter(|opt_out| !opt_out.is_imported()).collect();
    for some in own.chunks(ENTRIES_PER_STATEMENT) {
        let by_key: HashMap<OptOutKey<'_>, &OptOut> = some.iter().map(|new| (opt_out_key(new), *new)).collect();
        for record in &select_records(connection, some.iter().map(|new| new.who)).await? {
            let known = opt_out_from_row(record)?;
            if let Some(new) = by_key.get(&opt_out_key(&known)).filter(|new| new.replaces(&known)) {
                mark_removed(connection, Now(new.at.as_microsecond()), record, (&new.source, REPLACED_REASON)).await?;
            }
        }
    }
    Ok(())
}

/// Takes these records off the list, as far as they are on it unchanged.
pub(super) async fn remove_entries(
    connection: &mut Connection,
    now: Now,
    removal: &EntryRemoval,
) -> Result<u64, StatementError> {
    let mut removed = 0;
    for some in removal.entries.chunks(ENTRIES_PER_STATEMENT) {
        let by_key: HashMap<OptOutKey<'_>, &OptOut> = some.iter().map(|entry| (opt_out_key(entry), entry)).collect();
        for record in &select_records(connection, some.iter().map(|entry| entry.who)).await? {
            let known = opt_out_from_row(record)?;
            if by_key.get(&opt_out_key(&known)).is_some_and(|entry| **entry == known) {
                mark_removed(connection, now, record, (&removal.by, removal.why.as_deref().unwrap_or(""))).await?;
                removed += 1;
            }
        }
    }
    if removed > 0 {
        bump_version(connection).await?;
    }
    Ok(removed)
}
