//! Queries about single messages that were sent lately.

use std::time::Duration;

use super::change::{Failure, Now};
use super::dialect::{Adapter, Connection};
use super::look::look;
use super::statement::{query, scalar};
use crate::ledger::repeat_guard::{RepeatHash, RepeatKey, age, is_expired, latest_expiry};
use crate::ledger::{LedgerError, LedgerFuture, RepeatCheck, RepeatGuard, RepeatPlace};

impl RepeatGuard for Adapter {
    fn take_repeat_place(&self, message: Vec<u8>, again: bool) -> LedgerFuture<'_, RepeatCheck> {
        Box::pin(async move {
            match self.keeps_repeats() {
                true => {
                    self.write(move |connection, now| {
                        let message = message.clone();
                        Box::pin(async move { take(connection, now, &message, again).await })
                    })
                    .await
                }
                false => Ok(RepeatCheck::Unavailable),
            }
        })
    }

    fn sent_ago(&self, message: Vec<u8>) -> LedgerFuture<'_, Option<Duration>> {
        Box::pin(async move {
            match self.keeps_repeats() {
                true => look!(self, sent_ago, self.now(), &message),
                false => Ok(None),
            }
        })
    }

    fn give_repeat_place_back(&self, place: RepeatPlace) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            match self.keeps_repeats() {
                true => self.write(move |connection, now| Box::pin(give_back(connection, now, place.clone()))).await,
                false => Ok(()),
            }
        })
    }
}

async fn take(connection: &mut Connection, now: Now, message: &[u8], again: bool) -> Result<RepeatCheck, Failure> {
    query("DELETE FROM repeats WHERE until <= $1 OR until > $2")
        .bind(now.0)
        .bind(latest_expiry(now.0))
        .execute(&mut *connection)
        .await?;
    let hash = known_or_new_key(&mut *connection).await?.hash(message);
    let before = until_of(&mut *connection, &hash).await?;
    if let Some(until) = before.filter(|_| !again) {
        return Ok(RepeatCheck::Repeated(age(until, now.0)));
    }
    let place = RepeatPlace::new(hash, now.0, before);
    put(connection, &hash, place.until).await?;
    Ok(RepeatCheck::Taken(place))
}

async fn sent_ago(reader: &mut Connection, now: Now, message: &[u8]) -> Result<Option<Duration>, Failure> {
    let Some(key) = key(&mut *reader).await? else { return Ok(None) };
    let until = until_of(reader, &key.hash(message)).await?;
    Ok(until.filter(|until| !is_expired(*until, now.0)).map(|until| age(until, now.0)))
}

/// Takes an entry back, unless a later message has its place by now.
async fn give_back(connection: &mut Connection, now: Now, place: RepeatPlace) -> Result<(), Failure> {
    if until_of(&mut *connection, &place.hash).await? != Some(place.until) {
        return Ok(());
    }
    match place.before.filter(|until| !is_expired(*until, now.0)) {
        Some(before) => put(connection, &place.hash, before).await,
        None => {
            query("DELETE FROM repeats WHERE hash = $1").bind(place.hash.to_vec()).execute(connection).await?;
            Ok(())
        }
    }
}

async fn put(connection: &mut Connection, hash: &RepeatHash, until: i64) -> Result<(), Failure> {
    query("INSERT INTO repeats (hash, until) VALUES ($1, $2) ON CONFLICT (hash) DO UPDATE SET until = excluded.until")
        .bind(hash.to_vec())
        .bind(until)
        .execute(connection)
        .await?;
    Ok(())
}

async fn until_of(reader: &mut Connection, hash: &RepeatHash) -> Result<Option<i64>, Failure> {
    Ok(scalar("SELECT until FROM repeats WHERE hash = $1").bind(hash.to_vec()).fetch_optional(reader).await?)
}

/// The secret of the ledger; nothing before the first message.
async fn key(reader: &mut Connection) -> Result<Option<RepeatKey>, Failure> {
    let key: Option<Vec<u8>> = scalar("SELECT key FROM repeat_key").fetch_optional(reader).await?;
    let damaged = |_| LedgerError::Damaged { what: "the key for hashing messages".to_owned() };
    Ok(key.map(|bytes| bytes.try_into().map(RepeatKey)).transpose().map_err(damaged)?)
}

async fn known_or_new_key(connection: &mut Connection) -> Result<RepeatKey, Failure> {
    if let Some(known) = key(&mut *connection).await? {
        return Ok(known);
    }
    let bytes: [u8; RepeatKey::LENGTH] = rand::random();
    query("INSERT INTO repeat_key (key) VALUES ($1)").bind(bytes.to_vec()).execute(connection).await?;
    Ok(RepeatKey(bytes))
}
