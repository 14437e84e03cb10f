//! What intents have to keep within, and what follows from what becomes of them.

use std::collections::BTreeSet;

use sqlx::SqliteConnection;

use super::change::{Failure, Now};
use super::{contacts, left_out, spending};
use crate::domain::Outcome;
use crate::ledger::rules::is_out;
use crate::ledger::{CAPPED, Intent, LeftOut, NewRowEvent, Permit, Run, RunId};

/// Why an intent may not be recorded as it is, if it has bounds and goes over them; else what it uses is taken.
pub(super) async fn take(
    connection: &mut SqliteConnection,
    now: Now,
    run: &Run,
    intent: &Intent,
) -> Result<Option<Permit>, Failure> {
    let capped = contacts::held_by_caps(connection, now, run, intent).await?;
    if !capped.is_empty() {
        left_out::add(connection, run.key, &LeftOut::skipped(&capped, CAPPED)).await?;
        return Ok(Some(Permit::Capped(capped)));
    }
    spending::take(connection, run, intent).await
}

/// A run was taken.
pub(super) async fn claimed(connection: &mut SqliteConnection, now: Now, run: RunId) -> Result<(), Failure> {
    spending::forget(connection, run).await?;
    contacts::clear(connection, now).await
}

/// An intent was settled: what did not go out uses nothing.
pub(super) async fn settled(
    connection: &mut SqliteConnection,
    (run, envelope): (RunId, u32),
    outcomes: &[Outcome],
) -> Result<(), Failure> {
    if outcomes.iter().all(is_out) {
        return Ok(());
    }
    spending::give_back(connection, (run, envelope), outcomes).await?;
    contacts::renew(connection, run, envelope).await
}

/// What was known of an envelope is another thing now.
pub(super) async fn merged(connection: &mut SqliteConnection, run: RunId, envelope: u32) -> Result<(), Failure> {
    spending::forget(connection, run).await?;
    contacts::renew(connection, run, envelope).await
}

/// Something was learnt or decided about messages.
pub(super) async fn learnt(
    connection: &mut SqliteConnection,
    run: RunId,
    events: &[NewRowEvent],
) -> Result<(), Failure> {
    spending::forget(connection, run).await?;
    for envelope in events.iter().map(|event| event.envelope).collect::<BTreeSet<u32>>() {
        contacts::renew(connection, run, envelope).await?;
    }
    Ok(())
}
