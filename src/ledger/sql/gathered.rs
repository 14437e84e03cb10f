//! Intents and outcomes of several envelopes in one statement each, since every statement is a way to the database and back.
//!
//! What is gathered in one commit comes to what each of them alone comes to (`envelopes`): a run that may not send an envelope,
//! and an outcome of what fell into doubt meanwhile, take that way. A test holds both to each other.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sqlx::{QueryBuilder, Row as _};

use super::bounds;
use super::change::{Now, StatementError};
use super::dialect::{self, Connection, Database};
use super::envelopes::{self, grant_permit};
use super::numbers::EnvelopeNumbers;
use super::statement::read_u32;
use super::written::{NewEnvelope, PackedOutcomes, has_no_outcomes};
use crate::ledger::{Intent, Permit, RunId, Settlement};

/// Records outcomes of envelopes.
pub(super) async fn settle_batch(
    connection: &mut Connection,
    now: Now,
    settlements: &[Arc<Settlement>],
) -> Result<(), StatementError> {
    let named = |settlement: &Settlement| (settlement.run, settlement.envelope);
    let different: HashSet<_> = settlements.iter().map(|settlement| named(settlement)).collect();
    let settled = match different.len() == settlements.len() && settlements.len() > 1 {
        true => settle_in_one_statement(&mut *connection, now, settlements).await?,
        false => HashSet::new(),
    };
    for settlement in settlements {
        if settled.contains(&named(settlement)) {
            bounds::release_after_settlement(&mut *connection, named(settlement), &settlement.outcomes).await?;
        } else {
            envelopes::settle_envelope(&mut *connection, now, Arc::clone(settlement)).await?;
        }
    }
    Ok(())
}

/// Records the outcomes of those that have none, and tells which these are.
async fn settle_in_one_statement(
    connection: &mut Connection,
    now: Now,
    settlements: &[Arc<Settlement>],
) -> Result<HashSet<(RunId, u32)>, StatementError> {
    let outcomes = |settlement: &Arc<Settlement>| {
        PackedOutcomes::new((settlement.run, settlement.envelope), now, &settlement.outcomes)
    };
    let outcomes = settlements.iter().map(outcomes).collect::<Result<Vec<_>, _>>()?;
    let mut statement = QueryBuilder::<Database>::new("UPDATE envelopes SET settled_at = ");
    statement.push_bind(now.0);
    statement.push(", outcomes = given.column3, outcomes_sum = given.column4, evidence = given.column5 FROM (");
    statement.push_values(outcomes.iter().zip(settlements), |mut values, (outcomes, settlement)| {
        values
            .push_bind(settlement.run.0)
            .push_bind(i64::from(settlement.envelope))
            .push_bind(outcomes.packed.as_slice())
            .push_bind(outcomes.checksum())
            .push_bind(settlement.evidence.as_deref().map(dialect::to_storable_text));
    });
    statement.push(concat!(
        ") AS given WHERE run = given.column1 AND envelope = given.column2 AND ",
        has_no_outcomes!(),
        " RETURNING run, envelope"
    ));
    let settled = statement.build().persistent(dialect::CACHES_STATEMENTS).fetch_all(connection).await?;
    settled.iter().map(|row| Ok((RunId(row.try_get(0)?), read_u32(row, 1)?))).collect()
}

/// Records intents, or tells why not, in their order.
pub(super) async fn begin_batch(
    connection: &mut Connection,
    now: Now,
    numbers: &EnvelopeNumbers,
    intents: &[Arc<Intent>],
) -> Result<Vec<Permit>, StatementError> {
    let mut permits = Vec::with_capacity(intents.len());
    for alike in intents.chunk_by(|one, next| are_alike(one, next)) {
        let mut begun = match alike {
            [_, _, ..] => begin_in_one_statement(&mut *connection, now, numbers, alike).await?,
            _ => HashMap::new(),
        };
        for (index, intent) in alike.iter().enumerate() {
            permits.push(match begun.remove(&index) {
                Some(permit) => permit,
                None => envelopes::begin_envelope(&mut *connection, now, numbers.clone(), Arc::clone(intent)).await?,
            });
        }
    }
    Ok(permits)
}

/// Whether they leave by one right, and neither has to keep within anything of its own.
fn are_alike(one: &Intent, other: &Intent) -> bool {
    let is_free = |intent: &Intent| intent.bounds.is_none() && intent.leave_by.is_none();
    one.lease == other.lease && one.account.name == other.account.name && is_free(one) && is_free(other)
}

/// Records intents that are alike; tells the permits of those that may leave as they are, by their places.
async fn begin_in_one_statement(
    connection: &mut Connection,
    now: Now,
    numbers: &EnvelopeNumbers,
    intents: &[Arc<Intent>],
) -> Result<HashMap<usize, Permit>, StatementError> {
    let Some(first) = intents.first() else { return Ok(HashMap::new()) };
    let next = numbers.next_number(&mut *connection, first.lease).await?;
    let envelopes = (next..).zip(intents).map(|(number, intent)| NewEnvelope::from_intent(now, number, intent));
    let envelopes = envelopes.collect::<Result<Vec<_>, StatementError>>()?;
    let by_right = (first.lease, &first.account);
    let mut inserted = envelopes::insert_intents(&mut *connection, now, by_right, &envelopes, false).await?;
    // So that the numbers are counted, and turns taken, in their order.
    inserted.sort_by_key(|inserted| inserted.envelope);
    let mut permits = HashMap::new();
    for inserted in inserted {
        let place = usize::try_from(inserted.envelope - next).unwrap_or(usize::MAX);
        if let Some(intent) = intents.get(place) {
            permits.insert(place, grant_permit(&mut *connection, now, numbers, intent, inserted).await?);
        }
    }
    Ok(permits)
}
