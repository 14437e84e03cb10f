//! The copies of runs: what was frozen, and the list in shards.

use std::collections::HashSet;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{PgPool, Row as _};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::dialect::storage_error;
use super::ledger::PostgresLedger;
use super::locks::Locks;
use super::shard_copy::copy_in;
use super::shards::{ShardReader, ShardWriter};
use super::sql::StatementError;
use super::sql::look::read_ledger;
use super::sql::statement::{query, scalar};
use super::transaction;
use super::waiting::{DatabaseWait, retry_while_away};
use crate::failpoint;
use crate::ledger::{
    CampaignLock, Copies, LedgerError, LedgerFuture, ListReader, NewCopies, Run, SqliteLedger, StrayCopies,
};

/// Shards that wait between the list and the database.
const QUEUED_SHARDS: usize = 4;

/// Copies without the name of a run, until they are frozen; dropped, they are removed.
struct NewShardedCopies {
    key: i64,
    pool: PgPool,
    locks: Locks,
    place: Arc<str>,
    /// Writes the shards of the list; tells why not.
    writing: Option<JoinHandle<sqlx::Result<()>>>,
    /// Whose place they take, which somebody has; else what is there under the name is put aside.
    replaces: bool,
    kept: bool,
}

impl NewShardedCopies {
    /// Removes what an interrupted start left under this name, and begins anew.
    async fn begin_copies(ledger: &PostgresLedger, name: String, replaces: bool) -> Result<Self, LedgerError> {
        let begin = ledger.write(move |connection, now| {
            let name = name.clone();
            Box::pin(async move {
                delete_copies(&mut *connection, &name).await?;
                let key = scalar("INSERT INTO copies (name, made_at) VALUES ($1, $2) RETURNING key");
                let key: i64 = key.bind(name).bind(now.0).fetch_one(connection).await?;
                Ok(key)
            })
        });
        let key = begin.await.map_err(copy_error)?;
        let (pool, locks, place) = (ledger.pool.clone(), ledger.locks.clone(), Arc::clone(&ledger.place));
        Ok(Self { key, pool, locks, place, writing: None, replaces, kept: false })
    }
}

impl NewShardedCopies {
    /// Gives the copies the name of their run. It may be done twice: the commit of an earlier attempt may be without an answer.
    /// False if the copies are gone.
    async fn name_for_run(&self, name: &str, inputs: &[u8]) -> sqlx::Result<bool> {
        let mut transaction = transaction::begin_unordered_write(&self.pool).await?;
        // It waits for an earlier attempt that the server has not ended yet.
        let current: Option<String> = scalar("SELECT name FROM copies WHERE key = $1 FOR UPDATE")
            .bind(self.key)
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(current) = current else { return Ok(false) };
        if current == name {
            return Ok(true);
        }
        match self.replaces {
            true => delete_copies(&mut transaction, name).await?,
            // Only a ledger that was put back can lead here; those copies may still be needed.
            false => drop(rename_aside(&mut transaction, name).await?),
        }
        query("UPDATE copies SET name = $1, inputs = $2 WHERE key = $3")
            .bind(name)
            .bind(inputs)
            .bind(self.key)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(true)
    }
}

impl NewCopies for NewShardedCopies {
    fn list_writer(&mut self) -> Result<Box<dyn io::Write + Send>, LedgerError> {
        let (given, shards) = sync_channel(QUEUED_SHARDS);
        let (key, pool, runtime) = (self.key, self.pool.clone(), Handle::current());
        let place = Arc::clone(&self.place);
        let writing = move || runtime.block_on(write_shards((&pool, &place), key, &shards));
        self.writing = Some(tokio::task::spawn_blocking(writing));
        Ok(Box::new(ShardWriter::new(given)))
    }

    fn freeze(mut self: Box<Self>, inputs: Vec<u8>, run: &Run) -> LedgerFuture<'_, ()> {
        let name = run.name();
        Box::pin(async move {
            if let Some(writing) = self.writing.take() {
                let written = writing.await.map_err(|error| copy_error_for(&error))?;
                written.map_err(|error| copy_error(storage_error(&self.place, &error)))?;
            }
            failpoint::pass("run.frozen");
            let named = retry_while_away(&self.place, || self.name_for_run(&name, &inputs)).await;
            match named {
                Ok(true) => {}
                Ok(false) => return Err(copy_error_for(&"another process removed the stored inputs in the meantime")),
                Err(error) => return Err(copy_error(storage_error(&self.place, &error))),
            }
            failpoint::pass("run.named");
            self.kept = true;
            Ok(())
        })
    }
}

impl Drop for NewShardedCopies {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let (key, pool, writing) = (self.key, self.pool.clone(), self.writing.take());
        self.locks.spawn_cleanup(async move {
            if let Some(writing) = writing {
                let _ = writing.await;
            }
            let mut transaction = transaction::begin_unordered_write(&pool).await?;
            query("DELETE FROM copies WHERE key = $1").bind(key).execute(&mut *transaction).await?;
            transaction.commit().await
        });
    }
}

/// Writes shards as they come.
async fn write_shards((pool, place): (&PgPool, &Arc<str>), key: i64, shards: &Receiver<Vec<u8>>) -> sqlx::Result<()> {
    let mut number = 0_i64;
    while let Ok(shard) = shards.recv() {
        // With those that came meanwhile, in one commit.
        let together: Vec<Vec<u8>> = std::iter::once(shard).chain(shards.try_iter().take(QUEUED_SHARDS)).collect();
        write_shards_with_retry((pool, place), key, (number, &together)).await?;
        number += together.len() as i64;
    }
    Ok(())
}

/// Writes shards as soon as the database is there.
async fn write_shards_with_retry(
    (pool, place): (&PgPool, &Arc<str>),
    key: i64,
    (first, shards): (i64, &[Vec<u8>]),
) -> sqlx::Result<()> {
    let (mut waiting, mut broke) = (DatabaseWait::new(Arc::clone(place)), false);
    loop {
        let written = async {
            let mut transaction = transaction::begin_unordered_write(pool).await?;
            if broke {
                // The commit of the attempt before may be without an answer.
                let again = query("DELETE FROM copy_shards WHERE copies = $1 AND shard >= $2").bind(key).bind(first);
                again.execute(&mut *transaction).await?;
            }
            copy_in(&mut transaction, key, (first, shards)).await?;
            transaction.commit().await
        };
        match written.await {
            Err(error) if waiting.wait_for_recovery(&error).await => broke = true,
            // The server made that commit only now.
            Err(sqlx::Error::Database(error)) if broke && error.is_unique_violation() => {}
            ended => return ended,
        }
    }
}

/// Reads the shards of a list one after another, each by itself: whoever reads may take its time.
fn read_shards(pool: PgPool, place: Arc<str>, key: i64, runtime: Handle) -> ListReader {
    let (given, coming) = sync_channel(QUEUED_SHARDS);
    let asking = runtime.clone();
    drop(runtime.spawn_blocking(move || {
        let mut number = 0_i64;
        loop {
            let shard = match asking.block_on(load_shard_with_retry((&pool, &place), key, number)) {
                Ok(Some(shard)) => Ok(shard),
                Ok(None) => return,
                Err(error) => Err(io::Error::other(error)),
            };
            let failed = shard.is_err();
            // Nobody reads any more, or it cannot be read.
            if given.send(shard).is_err() || failed {
                return;
            }
            number += 1;
        }
    }));
    Box::new(ShardReader::new(coming))
}

/// A shard, as soon as the database is there.
async fn load_shard_with_retry(
    (pool, place): (&PgPool, &Arc<str>),
    key: i64,
    number: i64,
) -> sqlx::Result<Option<Vec<u8>>> {
    let mut waiting = DatabaseWait::new(Arc::clone(place));
    loop {
        match load_shard(pool, key, number).await {
            Err(error) if waiting.wait_for_recovery(&error).await => {}
            read => return read,
        }
    }
}

/// What is kept of the copies of that name.
async fn find_copies(reader: &mut PgConnection, name: &str) -> Result<Option<PgRow>, StatementError> {
    Ok(query("SELECT key, inputs FROM copies WHERE name = $1").bind(name).fetch_optional(reader).await?)
}

async fn load_shard(pool: &PgPool, key: i64, number: i64) -> sqlx::Result<Option<Vec<u8>>> {
    let mut reader = transaction::begin_read(pool).await?;
    scalar("SELECT rows FROM copy_shards WHERE copies = $1 AND shard = $2")
        .bind(key)
        .bind(number)
        .fetch_optional(&mut *reader)
        .await
}

impl PostgresLedger {
    /// Makes room for the copies of a run of what is held.
    pub(super) async fn new_copies(&self, hold: &CampaignLock) -> Result<Box<dyn NewCopies>, LedgerError> {
        Ok(Box::new(NewShardedCopies::begin_copies(self, format!(".new-{}", hold.name()), false).await?))
    }

    /// Makes room for the copies that take the place of those of a run.
    pub(super) async fn replacement_copies(&self, run: &Run) -> Result<Box<dyn NewCopies>, LedgerError> {
        Ok(Box::new(NewShardedCopies::begin_copies(self, format!(".next-{}", run.name()), true).await?))
    }

    /// The copies that a run is sent from.
    pub(super) async fn copies_of(&self, run: &Run) -> Result<Copies, LedgerError> {
        let name = run.name();
        let found = read_ledger!(self, find_copies, &name)?;
        let place = self.copies_place(&name);
        let Some(found) = found else {
            return Err(LedgerError::CopiesUnreadable { place, reason: "they are missing".to_owned() });
        };
        let known = || Ok::<_, sqlx::Error>((found.try_get(0)?, found.try_get::<Option<_>, _>(1)?.unwrap_or_default()));
        let (key, inputs) = self.to_ledger_result(known().map_err(StatementError::Sql))?;
        let (pool, shown, runtime) = (self.pool.clone(), Arc::clone(&self.place), Handle::current());
        Ok(Copies::new(place, inputs, move || Ok(read_shards(pool.clone(), Arc::clone(&shown), key, runtime.clone()))))
    }

    /// The copies of runs that the ledger does not have: in the database, and in files of this machine, whose ledger may
    /// know of messages that this one does not.
    pub(super) async fn find_strays(&self) -> Result<Vec<StrayCopies>, LedgerError> {
        let (known, found) = read_ledger!(self, find_copies_without_runs)?;
        let stray = |(run, inputs): (String, _)| StrayCopies { place: self.copies_place(&run), run, inputs };
        let mut strays: Vec<_> = found.into_iter().map(stray).collect();
        let here = SqliteLedger::list_copies_without_ledger(&self.mark);
        strays.extend(here.into_iter().filter(|copies| !known.contains(&copies.run)));
        Ok(strays)
    }

    /// Gives the copies of a run that the ledger does not have another name, and tells it.
    pub(super) async fn rename_stray(&self, run: &str) -> Result<String, LedgerError> {
        if SqliteLedger::list_copies_without_ledger(&self.mark).iter().any(|copies| copies.run == run) {
            return SqliteLedger::rename_copies_without_ledger(&self.mark, run);
        }
        let name = run.to_owned();
        let aside = self.write(move |connection, _| {
            let name = name.clone();
            Box::pin(async move { Ok(rename_aside(connection, &name).await?) })
        });
        Ok(self.copies_place(&aside.await?))
    }

    /// Removes the copies of a run, if they are there.
    pub(super) async fn remove_copies(&self, run: &Run) -> Result<(), LedgerError> {
        let name = run.name();
        let removed = self.write(move |connection, _| {
            let name = name.clone();
            Box::pin(async move { Ok(delete_copies(connection, &name).await?) })
        });
        removed.await
    }

    /// Where the copies of a run are, as people can find them.
    fn copies_place(&self, name: &str) -> String {
        format!("{}, table campaign.copies, {name}", self.place)
    }
}

/// The runs of the ledger, and the names and inputs of copies whose runs it does not have.
async fn find_copies_without_runs(
    reader: &mut PgConnection,
) -> Result<(HashSet<String>, Vec<(String, Option<Vec<u8>>)>), StatementError> {
    let known: Vec<String> = scalar("SELECT campaign || '@' || number FROM runs").fetch_all(&mut *reader).await?;
    let found = query(
        "SELECT name, inputs FROM copies WHERE name ~ '@[0-9]+$' AND inputs IS NOT NULL
         AND name NOT IN (SELECT campaign || '@' || number FROM runs) ORDER BY name",
    );
    let found = found.fetch_all(reader).await?;
    let found = found.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    Ok((known.into_iter().collect(), found.collect::<sqlx::Result<_>>()?))
}

async fn delete_copies(connection: &mut PgConnection, name: &str) -> sqlx::Result<()> {
    query("DELETE FROM copies WHERE name = $1").bind(name).execute(connection).await.map(drop)
}

/// Gives copies a name beside their own, if they are there, and tells it.
async fn rename_aside(connection: &mut PgConnection, name: &str) -> sqlx::Result<String> {
    let taken: i64 = scalar("SELECT count(*) FROM copies WHERE name LIKE $1 || '.old-%'")
        .bind(name)
        .fetch_one(&mut *connection)
        .await?;
    let aside = format!("{name}.old-{}", taken + 1);
    query("UPDATE copies SET name = $1 WHERE name = $2").bind(&aside).bind(name).execute(connection).await?;
    Ok(aside)
}

/// Why nothing was copied. A connection that broke stays one, with its own advice.
fn copy_error(error: LedgerError) -> LedgerError {
    match error {
        LedgerError::Unreachable { .. } => error,
        error => copy_error_for(&error.reason()),
    }
}

fn copy_error_for(reason: &dyn Display) -> LedgerError {
    LedgerError::NotCopied { place: "the ledger".to_owned(), reason: reason.to_string() }
}
