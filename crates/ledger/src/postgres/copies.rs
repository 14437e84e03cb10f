//! Copies of runs in the database: the frozen inputs, and the recipient list in compressed shards.

use std::collections::HashSet;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{PgPool, Row as _};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::dialect::storage_error;
use super::ledger::PostgresLedger;
use super::locks::Locks;
use super::sql::StatementError;
use super::sql::{query, read_ledger, scalar};
use super::transaction::{self, DatabaseWait, retry_while_unavailable};
use crate::{CampaignLock, Copies, LedgerError, LedgerFuture, ListReader, NewCopies, Run, SqliteLedger, StrayCopies};
use campaign_core::failpoint;

/// The number of shards that wait between the list and the database.
const QUEUED_SHARDS: usize = 4;

/// Copies that do not have the name of their run yet. Dropping them before they are frozen removes them.
struct NewShardedCopies {
    key: i64,
    pool: PgPool,
    locks: Locks,
    place: Arc<str>,
    /// The task that writes the shards of the list.
    writing: Option<JoinHandle<sqlx::Result<()>>>,
    /// Whether they replace the run's copies; otherwise existing copies are renamed.
    replaces: bool,
    frozen: bool,
}

impl NewShardedCopies {
    /// Removes the leftovers of an interrupted start under this name, and begins new copies.
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
        Ok(Self { key, pool, locks, place, writing: None, replaces, frozen: false })
    }
}

impl NewShardedCopies {
    /// Names the copies after their run. The call can be repeated, because the answer to an earlier attempt's commit
    /// might have been lost. Returns `false` if the copies are gone.
    async fn name_for_run(&self, name: &str, inputs: &[u8]) -> sqlx::Result<bool> {
        let mut transaction = transaction::begin_unordered_write(&self.pool).await?;
        // This waits for an earlier attempt that the server has not finished yet.
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
            // Copies with this name exist only if the ledger was restored; they might still be needed.
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
        let (sender, shards) = sync_channel(QUEUED_SHARDS);
        let (key, pool, runtime) = (self.key, self.pool.clone(), Handle::current());
        let place = Arc::clone(&self.place);
        let writing = move || runtime.block_on(write_shards(&pool, &place, key, &shards));
        self.writing = Some(tokio::task::spawn_blocking(writing));
        Ok(Box::new(ShardWriter::new(sender)))
    }

    fn freeze(mut self: Box<Self>, inputs: Vec<u8>, run: &Run) -> LedgerFuture<'_, ()> {
        let name = run.name();
        Box::pin(async move {
            if let Some(writing) = self.writing.take() {
                let written = writing.await.map_err(|error| copy_error_for(&error))?;
                written.map_err(|error| copy_error(storage_error(&self.place, &error)))?;
            }
            failpoint::pass("run.frozen");
            let named = retry_while_unavailable(&self.place, || self.name_for_run(&name, &inputs)).await;
            match named {
                Ok(true) => {}
                Ok(false) => return Err(copy_error_for(&"another process removed the stored inputs in the meantime")),
                Err(error) => return Err(copy_error(storage_error(&self.place, &error))),
            }
            failpoint::pass("run.named");
            self.frozen = true;
            Ok(())
        })
    }
}

impl Drop for NewShardedCopies {
    fn drop(&mut self) {
        if self.frozen {
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

/// Writes shards as they arrive.
async fn write_shards(pool: &PgPool, place: &Arc<str>, key: i64, shards: &Receiver<Vec<u8>>) -> sqlx::Result<()> {
    let mut number = 0_i64;
    while let Ok(shard) = shards.recv() {
        // One commit for all shards that have arrived.
        let batch: Vec<Vec<u8>> = std::iter::once(shard).chain(shards.try_iter().take(QUEUED_SHARDS)).collect();
        write_shards_with_retry(pool, place, key, number, &batch).await?;
        number += batch.len() as i64;
    }
    Ok(())
}

/// Writes shards, and retries while the database is unavailable.
async fn write_shards_with_retry(
    pool: &PgPool,
    place: &Arc<str>,
    key: i64,
    first: i64,
    shards: &[Vec<u8>],
) -> sqlx::Result<()> {
    let (mut waiting, mut is_retry) = (DatabaseWait::new(Arc::clone(place)), false);
    loop {
        let written = async {
            let mut transaction = transaction::begin_unordered_write(pool).await?;
            if is_retry {
                // The previous attempt might have been committed without an answer.
                let delete = query("DELETE FROM copy_shards WHERE copies = $1 AND shard >= $2").bind(key).bind(first);
                delete.execute(&mut *transaction).await?;
            }
            copy_in(&mut transaction, key, first, shards).await?;
            transaction.commit().await
        };
        match written.await {
            Err(error) if waiting.wait_for_recovery(&error).await => is_retry = true,
            // The server completed the previous attempt only now.
            Err(sqlx::Error::Database(error)) if is_retry && error.is_unique_violation() => {}
            result => return result,
        }
    }
}

/// Reads the shards of a list one by one in separate transactions, because the reader might be slow.
fn read_shards(pool: PgPool, place: Arc<str>, key: i64, runtime: Handle) -> ListReader {
    let (sender, receiver) = sync_channel(QUEUED_SHARDS);
    let reader_runtime = runtime.clone();
    drop(runtime.spawn_blocking(move || {
        let mut number = 0_i64;
        loop {
            let shard = match reader_runtime.block_on(load_shard_with_retry(&pool, &place, key, number)) {
                Ok(Some(shard)) => Ok(shard),
                Ok(None) => return,
                Err(error) => Err(io::Error::other(error)),
            };
            let is_unreadable = shard.is_err();
            // Sending fails if the reader has stopped.
            if sender.send(shard).is_err() || is_unreadable {
                return;
            }
            number += 1;
        }
    }));
    Box::new(ShardReader::new(receiver))
}

/// Loads a shard, and retries while the database is unavailable.
async fn load_shard_with_retry(
    pool: &PgPool,
    place: &Arc<str>,
    key: i64,
    number: i64,
) -> sqlx::Result<Option<Vec<u8>>> {
    let mut waiting = DatabaseWait::new(Arc::clone(place));
    loop {
        match load_shard(pool, key, number).await {
            Err(error) if waiting.wait_for_recovery(&error).await => {}
            result => return result,
        }
    }
}

/// Finds the copies with this name.
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
    /// Begins the copies of a new run of a locked campaign.
    pub(super) async fn begin_new_copies(&self, lock: &CampaignLock) -> Result<Box<dyn NewCopies>, LedgerError> {
        Ok(Box::new(NewShardedCopies::begin_copies(self, format!(".new-{}", lock.name()), false).await?))
    }

    /// Begins copies that replace the existing copies of a run.
    pub(super) async fn begin_replacement_copies(&self, run: &Run) -> Result<Box<dyn NewCopies>, LedgerError> {
        Ok(Box::new(NewShardedCopies::begin_copies(self, format!(".next-{}", run.name()), true).await?))
    }

    /// Loads the copies from which a run is sent.
    pub(super) async fn load_run_copies(&self, run: &Run) -> Result<Copies, LedgerError> {
        let name = run.name();
        let record = read_ledger!(self, find_copies, &name)?;
        let place = self.copies_place(&name);
        let Some(record) = record else {
            return Err(LedgerError::CopiesUnreadable { place, reason: "they are missing".to_owned() });
        };
        let columns =
            || Ok::<_, sqlx::Error>((record.try_get(0)?, record.try_get::<Option<_>, _>(1)?.unwrap_or_default()));
        let (key, inputs) = self.to_ledger_result(columns().map_err(StatementError::Sql))?;
        let (pool, place_name, runtime) = (self.pool.clone(), Arc::clone(&self.place), Handle::current());
        Ok(Copies::new(place, inputs, move || {
            Ok(read_shards(pool.clone(), Arc::clone(&place_name), key, runtime.clone()))
        }))
    }

    /// Finds copies of unknown runs in the database and in files on this machine. The former ledger of such files might
    /// know of messages that this ledger does not know.
    pub(super) async fn find_stray_copies(&self) -> Result<Vec<StrayCopies>, LedgerError> {
        let (known, unknown) = read_ledger!(self, find_copies_without_runs)?;
        let to_stray = |(run, inputs): (String, _)| StrayCopies { place: self.copies_place(&run), run, inputs };
        let mut strays: Vec<_> = unknown.into_iter().map(to_stray).collect();
        let local = SqliteLedger::list_copies_without_ledger(&self.mark);
        strays.extend(local.into_iter().filter(|copies| !known.contains(&copies.run)));
        Ok(strays)
    }

    /// Renames the copies of an unknown run and returns their new location.
    pub(super) async fn rename_stray_copies(&self, run: &str) -> Result<String, LedgerError> {
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

    /// Removes the copies of a run, if there are any.
    pub(super) async fn remove_copies(&self, run: &Run) -> Result<(), LedgerError> {
        let name = run.name();
        let removed = self.write(move |connection, _| {
            let name = name.clone();
            Box::pin(async move { Ok(delete_copies(connection, &name).await?) })
        });
        removed.await
    }

    /// The location of a run's copies, for messages.
    fn copies_place(&self, name: &str) -> String {
        format!("{}, table campaign.copies, {name}", self.place)
    }
}

/// The names of the runs in the ledger, and the name and inputs of each copy whose run is not in the ledger.
async fn find_copies_without_runs(
    reader: &mut PgConnection,
) -> Result<(HashSet<String>, Vec<(String, Option<Vec<u8>>)>), StatementError> {
    let known: Vec<String> = scalar("SELECT campaign || '@' || number FROM runs").fetch_all(&mut *reader).await?;
    let statement = query(
        "SELECT name, inputs FROM copies WHERE name ~ '@[0-9]+$' AND inputs IS NOT NULL
         AND name NOT IN (SELECT campaign || '@' || number FROM runs) ORDER BY name",
    );
    let rows = statement.fetch_all(reader).await?;
    let copies = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    Ok((known.into_iter().collect(), copies.collect::<sqlx::Result<_>>()?))
}

async fn delete_copies(connection: &mut PgConnection, name: &str) -> sqlx::Result<()> {
    query("DELETE FROM copies WHERE name = $1").bind(name).execute(connection).await.map(drop)
}

/// Renames copies, if there are any, and returns the new name.
async fn rename_aside(connection: &mut PgConnection, name: &str) -> sqlx::Result<String> {
    let count: i64 = scalar("SELECT count(*) FROM copies WHERE name LIKE $1 || '.old-%'")
        .bind(name)
        .fetch_one(&mut *connection)
        .await?;
    let aside = format!("{name}.old-{}", count + 1);
    query("UPDATE copies SET name = $1 WHERE name = $2").bind(&aside).bind(name).execute(connection).await?;
    Ok(aside)
}

/// Converts an error that occurred while copying. A broken connection keeps its own error and advice.
fn copy_error(error: LedgerError) -> LedgerError {
    match error {
        LedgerError::Unreachable { .. } => error,
        error => copy_error_for(&error.reason()),
    }
}

fn copy_error_for(reason: &dyn Display) -> LedgerError {
    LedgerError::NotCopied { place: "the ledger".to_owned(), reason: reason.to_string() }
}

/// The size of a shard before compression, in bytes: about 5,000 rows.
const SHARD_BYTES: usize = 512 * 1024;
/// A low zstd level, so that compression takes only a fraction of the time for reading the list.
const COMPRESSION_LEVEL: i32 = 1;

/// Reads the next shard of a list and compresses it. `None` at the end of the list.
pub(super) fn pack_next_shard(list: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut shard = Vec::with_capacity(SHARD_BYTES);
    list.take(SHARD_BYTES as u64).read_to_end(&mut shard)?;
    if shard.is_empty() { Ok(None) } else { zstd::bulk::compress(&shard, COMPRESSION_LEVEL).map(Some) }
}

/// Cuts a list into shards and sends them. A flush ends the current shard.
pub(super) struct ShardWriter {
    shard: Vec<u8>,
    sender: SyncSender<Vec<u8>>,
}

impl ShardWriter {
    pub(super) fn new(sender: SyncSender<Vec<u8>>) -> Self {
        Self { shard: Vec::with_capacity(SHARD_BYTES), sender }
    }

    fn send_shard(&mut self) -> io::Result<()> {
        if self.shard.is_empty() {
            return Ok(());
        }
        let packed = zstd::bulk::compress(&self.shard, COMPRESSION_LEVEL)?;
        self.shard.clear();
        // The receiver reports why it stopped.
        self.sender.send(packed).map_err(|_| io::Error::other("the recipients cannot be copied to the ledger"))
    }
}

impl Write for ShardWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let remaining = SHARD_BYTES - self.shard.len();
        let count = bytes.len().min(remaining);
        self.shard.extend_from_slice(&bytes[..count]);
        if count == remaining {
            self.send_shard()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_shard()
    }
}

impl Drop for ShardWriter {
    fn drop(&mut self) {
        // Callers rely only on rows that they flushed, but usually want the rest too.
        let _ = self.send_shard();
    }
}

/// Reads a list from arriving shards.
pub(super) struct ShardReader {
    shard: io::Cursor<Vec<u8>>,
    receiver: Receiver<io::Result<Vec<u8>>>,
}

impl ShardReader {
    pub(super) fn new(receiver: Receiver<io::Result<Vec<u8>>>) -> Self {
        Self { shard: io::Cursor::default(), receiver }
    }
}

impl Read for ShardReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.shard.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            // `block_in_place` moves the other tasks of this thread elsewhere, because one of them might deliver the
            // shard.
            let received = tokio::task::block_in_place(|| self.receiver.recv());
            // The sender is done: that was the last shard.
            let Ok(packed) = received else { return Ok(0) };
            self.shard = io::Cursor::new(zstd::bulk::decompress(&packed?, SHARD_BYTES)?);
        }
    }
}

/// The start of a binary COPY stream: signature, flags, and an empty header extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The end of a binary COPY stream.
const TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// The number of columns of a record.
const COLUMNS: i16 = 3;

/// Writes shards of copies with consecutive numbers as one binary COPY stream (PostgreSQL, `COPY`, "Binary Format").
pub(super) async fn copy_in(
    connection: &mut PgConnection,
    copies: i64,
    first: i64,
    shards: &[Vec<u8>],
) -> sqlx::Result<()> {
    let begin = "COPY campaign.copy_shards (copies, shard, rows) FROM STDIN (FORMAT BINARY)";
    let mut stream = connection.copy_in_raw(begin).await?;
    stream.send(HEADER).await?;
    for (number, shard) in (first..).zip(shards) {
        stream.send(record_header(copies, number, shard.len())).await?;
        stream.send(shard.as_slice()).await?;
    }
    stream.send(TRAILER.as_slice()).await?;
    stream.finish().await.map(drop)
}

/// The bytes before the content of a shard: the number of columns, the values of `copies` and `shard`, and the length.
fn record_header(copies: i64, number: i64, bytes: usize) -> Vec<u8> {
    let mut header = COLUMNS.to_be_bytes().to_vec();
    for value in [copies, number] {
        // The length of the value, in bytes.
        header.extend(8_i32.to_be_bytes());
        header.extend(value.to_be_bytes());
    }
    // A shard is far smaller than the maximum size of a column value.
    header.extend(i32::try_from(bytes).unwrap_or(i32::MAX).to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn list_round_trips_byte_for_byte(
            pieces in proptest::collection::vec((0_usize..300_000, any::<u8>(), any::<bool>()), 0..8),
        ) {
            let (sender, shards) = sync_channel(64);
            let mut writer = ShardWriter::new(sender);
            let mut list = Vec::new();
            for (length, byte, flushed) in pieces {
                let piece: Vec<u8> = (0..length).map(|at| byte.wrapping_add((at % 251) as u8)).collect();
                writer.write_all(&piece).unwrap();
                list.extend(piece);
                if flushed {
                    writer.flush().unwrap();
                }
            }
            drop(writer);
            let (sender, receiver) = sync_channel(64);
            for shard in shards {
                prop_assert!(zstd::bulk::decompress(&shard, SHARD_BYTES).unwrap().len() <= SHARD_BYTES);
                sender.send(Ok(shard)).unwrap();
            }
            drop(sender);
            let mut read = Vec::new();
            ShardReader::new(receiver).read_to_end(&mut read).unwrap();
            prop_assert_eq!(read, list);
        }
    }

    #[test]
    fn record_header_has_big_endian_lengths() {
        let header = record_header(1, 258, 5);
        let expected =
            [&[0, 3][..], &[0, 0, 0, 8], &[0, 0, 0, 0, 0, 0, 0, 1], &[0, 0, 0, 8], &[0, 0, 0, 0, 0, 0, 1, 2]];
        assert_eq!(header, [expected.concat(), vec![0, 0, 0, 5]].concat());
        assert_eq!((HEADER.len(), TRAILER), (19, [255, 255]));
    }
}
