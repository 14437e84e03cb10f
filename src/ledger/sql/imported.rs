//! Opt-outs that an import added: how many of a file are new, which an opt-out of the recipient replaces, and undoing an import.

use std::collections::{HashMap, HashSet};

use super::change::{Failure, Now};
use super::dialect::Connection;
use super::suppression::{AT_ONCE, as_listed, opt_out, raise, records_of, take_off};
use crate::ledger::{Additions, EntryRemoval, OptOut, Reach, Scope};

/// Why a record is no longer on the list.
const REPLACED: &str = "replaced by an opt-out of their own";

/// What an opt-out is about: records with the same key cover each other.
type Key<'a> = (u64, &'a Scope, Reach);

fn key(opt_out: &OptOut) -> Key<'_> {
    (opt_out.who.get(), &opt_out.scope, opt_out.reach)
}

/// What would come of adding these to the list.
pub(super) async fn additions(reader: &mut Connection, opt_outs: &[OptOut]) -> Result<Additions, Failure> {
    let opt_outs = as_listed(reader, opt_outs).await?;
    let (mut additions, mut seen) = (Additions::default(), HashSet::new());
    for some in opt_outs.chunks(AT_ONCE) {
        let known = known(reader, some).await?;
        let known: HashMap<Key<'_>, &OptOut> = known.iter().map(|known| (key(known), known)).collect();
        for new in some {
            let stays = known.get(&key(new)).is_some_and(|known| !new.replaces(known));
            if stays || !seen.insert(key(new)) {
                additions.already += 1;
            } else {
                additions.added += 1;
            }
        }
    }
    Ok(additions)
}

async fn known(reader: &mut Connection, opt_outs: &[OptOut]) -> Result<Vec<OptOut>, Failure> {
    let records = records_of(reader, opt_outs.iter().map(|opt_out| opt_out.who)).await?;
    records.iter().map(opt_out).collect()
}

/// Takes imported records off the list that these opt-outs replace.
pub(super) async fn replace(connection: &mut Connection, opt_outs: &[OptOut]) -> Result<(), Failure> {
    let own: Vec<&OptOut> = opt_outs.iter().filter(|opt_out| !opt_out.is_imported()).collect();
    for some in own.chunks(AT_ONCE) {
        let by_key: HashMap<Key<'_>, &OptOut> = some.iter().map(|new| (key(new), *new)).collect();
        for record in &records_of(connection, some.iter().map(|new| new.who)).await? {
            let known = opt_out(record)?;
            if let Some(new) = by_key.get(&key(&known)).filter(|new| new.replaces(&known)) {
                take_off(connection, Now(new.at.as_microsecond()), record, (&new.source, REPLACED)).await?;
            }
        }
    }
    Ok(())
}

/// Takes these records off the list, as far as they are on it unchanged.
pub(super) async fn remove(connection: &mut Connection, now: Now, removal: &EntryRemoval) -> Result<u64, Failure> {
    let mut removed = 0;
    for some in removal.entries.chunks(AT_ONCE) {
        let by_key: HashMap<Key<'_>, &OptOut> = some.iter().map(|entry| (key(entry), entry)).collect();
        for record in &records_of(connection, some.iter().map(|entry| entry.who)).await? {
            let known = opt_out(record)?;
            if by_key.get(&key(&known)).is_some_and(|entry| **entry == known) {
                take_off(connection, now, record, (&removal.by, removal.why.as_deref().unwrap_or(""))).await?;
                removed += 1;
            }
        }
    }
    if removed > 0 {
        raise(connection).await?;
    }
    Ok(removed)
}
