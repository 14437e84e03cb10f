//! Intents and outcomes of several envelopes in one statement each, since every statement is a way to the database and back.
//!
//! What is gathered in one commit comes to what each of them alone comes to (`envelopes`): a run that may not send an envelope,
//! and an outcome of what fell into doubt meanwhile, take that way. A test holds both to each other.

use std::collections::HashSet;
use std::sync::Arc;

use sqlx::{QueryBuilder, Row as _};

use super::bounds;
use super::change::{Failure, Now};
use super::dialect::{self, Connection, Database};
use super::envelopes::{self, granted};
use super::numbers::Numbers;
use super::statement::small;
use super::written::{NewEnvelope, Outcomes, has_no_outcomes};
use crate::domain::Purpose;
use crate::ledger::{Intent, Permit, RunId, Settlement};

/// Records outcomes of envelopes.
pub(super) async fn settle(
    connection: &mut Connection,
    now: Now,
    settlements: &[Arc<Settlement>],
) -> Result<(), Failure> {
    let named = |settlement: &Settlement| (settlement.run, settlement.envelope);
    let different: HashSet<_> = settlements.iter().map(|settlement| named(settlement)).collect();
    let settled = match different.len() == settlements.len() && settlements.len() > 1 {
        true => settle_together(&mut *connection, now, settlements).await?,
        false => HashSet::new(),
    };
    for settlement in settlements {
        if settled.contains(&named(settlement)) {
            bounds::settled(&mut *connection, named(settlement), &settlement.outcomes).await?;
        } else {
            envelopes::settle(&mut *connection, now, Arc::clone(settlement)).await?;
        }
    }
    Ok(())
}

/// Records the outcomes of those that have none, and tells which these are.
async fn settle_together(
    connection: &mut Connection,
    now: Now,
    settlements: &[Arc<Settlement>],
) -> Result<HashSet<(RunId, u32)>, Failure> {
    let outcomes =
        |settlement: &Arc<Settlement>| Outcomes::new((settlement.run, settlement.envelope), now, &settlement.outcomes);
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
            .push_bind(settlement.evidence.as_deref().map(dialect::text));
    });
    statement.push(concat!(
        ") AS given WHERE run = given.column1 AND envelope = given.column2 AND ",
        has_no_outcomes!(),
        " RETURNING run, envelope"
    ));
    let settled = statement.build().persistent(dialect::REMEMBERS).fetch_all(connection).await?;
    settled.iter().map(|row| Ok((RunId(row.try_get(0)?), small(row, 1)?))).collect()
}

/// Records intents, or tells why not, in their order.
pub(super) async fn begin(
    connection: &mut Connection,
    now: Now,
    numbers: &Numbers,
    intents: &[Arc<Intent>],
) -> Result<Vec<Permit>, Failure> {
    let mut permits = Vec::with_capacity(intents.len());
    for alike in intents.chunk_by(|one, next| are_alike(one, next)) {
        let begun = match alike {
            [first, _, ..] if can_be_gathered(numbers, first) => {
                begin_together(&mut *connection, now, numbers, alike).await?
            }
            _ => None,
        };
        match begun {
            Some(begun) => permits.extend(begun),
            None => {
                for intent in alike {
                    permits.push(envelopes::begin(&mut *connection, now, numbers.clone(), Arc::clone(intent)).await?);
                }
            }
        }
    }
    Ok(permits)
}

/// Whether whatever lets one of them leave lets the other.
fn are_alike(one: &Intent, other: &Intent) -> bool {
    one.lease == other.lease && one.account.name == other.account.name && is_free(one) && is_free(other)
}

/// Whether nothing of its own has to be kept within.
fn is_free(intent: &Intent) -> bool {
    intent.bounds.is_none() && intent.leave_by.is_none()
}

/// Whether its run is this process's alone, so that its envelopes are let go together or not at all.
fn can_be_gathered(numbers: &Numbers, intent: &Intent) -> bool {
    is_free(intent) && numbers.has_whole(intent.lease)
}

/// Records intents of one run that this process has whole; nothing where it may not send them as they are.
async fn begin_together(
    connection: &mut Connection,
    now: Now,
    numbers: &Numbers,
    intents: &[Arc<Intent>],
) -> Result<Option<Vec<Permit>>, Failure> {
    let Some(first) = intents.first() else { return Ok(Some(Vec::new())) };
    let (lease, account) = (first.lease, &first.account);
    let next = numbers.next(&mut *connection, lease).await?;
    let envelopes = (next..).zip(intents).map(|(number, intent)| NewEnvelope::of(now, number, intent));
    let envelopes = envelopes.collect::<Result<Vec<_>, Failure>>()?;
    let mut statement = QueryBuilder::<Database>::new(
        "INSERT INTO envelopes (run, envelope, owner, begun_at, first_row, last_row, rows, rows_sum, kind, costs)
         SELECT key, given.column1, ",
    );
    statement.push_bind(lease.epoch.0).push(", ").push_bind(now.0);
    statement.push(
        ", given.column2, given.column3, given.column4, given.column5, given.column6, given.column7 FROM runs CROSS JOIN (",
    );
    statement.push_values(&envelopes, |mut values, envelope| {
        values
            .push_bind(i64::from(envelope.number))
            .push_bind(i64::from(envelope.within.first.get()))
            .push_bind(i64::from(envelope.within.last.get()))
            .push_bind(envelope.packed.as_slice())
            .push_bind(envelope.sum)
            .push_bind(envelope.kind.as_str())
            .push_bind(envelope.costs.as_deref());
    });
    statement.push(") AS given WHERE key = ").push_bind(lease.run.0);
    statement.push(" AND NOT stop_requested AND terms IS NULL AND owner = ").push_bind(lease.epoch.0);
    statement.push(" AND (opt_outs = (SELECT version FROM opt_out_list) OR (shared AND purpose IS NULL) OR purpose = ");
    statement.push_bind(Purpose::Service.name());
    statement.push(") RETURNING (SELECT not_before FROM accounts WHERE name = ").push_bind(&*account.name);
    statement.push("), EXISTS (SELECT 1 FROM contacts_kept JOIN runs USING (loopback) WHERE runs.key = ");
    statement.push_bind(lease.run.0).push(")");
    let inserted = statement.build().persistent(dialect::REMEMBERS).fetch_all(&mut *connection).await?;
    // All or none: what is asked is the same of each.
    let Some(said) = inserted.first().filter(|_| inserted.len() == intents.len()) else { return Ok(None) };
    let said = (said.try_get(0)?, said.try_get(1)?);
    let mut permits = Vec::with_capacity(intents.len());
    for (envelope, intent) in envelopes.iter().zip(intents) {
        permits.push(granted(&mut *connection, now, numbers, (envelope.number, intent), said).await?);
    }
    Ok(Some(permits))
}
