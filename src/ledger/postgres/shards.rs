//! A list in shards: some thousands of rows each, compressed, so that the database keeps no record for a person.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender};

/// The bytes of a shard before it is compressed: some 5,000 rows.
const SHARD_BYTES: usize = 512 * 1024;
/// How hard a shard is compressed (zstd's levels): the lowest costs a fraction of what reading the list does.
const COMPRESSION_LEVEL: i32 = 1;

/// The next shard of a list; nothing at its end.
pub(super) fn read_packed_shard(list: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut shard = Vec::with_capacity(SHARD_BYTES);
    list.take(SHARD_BYTES as u64).read_to_end(&mut shard)?;
    if shard.is_empty() { Ok(None) } else { zstd::bulk::compress(&shard, COMPRESSION_LEVEL).map(Some) }
}

/// Cuts a list into shards, and gives them away one by one; a shorter one ends it, and so does a flush.
pub(super) struct ShardWriter {
    shard: Vec<u8>,
    sender: SyncSender<Vec<u8>>,
}

impl ShardWriter {
    pub(super) fn new(given: SyncSender<Vec<u8>>) -> Self {
        Self { shard: Vec::with_capacity(SHARD_BYTES), sender: given }
    }

    fn send_shard(&mut self) -> io::Result<()> {
        if self.shard.is_empty() {
            return Ok(());
        }
        let packed = zstd::bulk::compress(&self.shard, COMPRESSION_LEVEL)?;
        self.shard.clear();
        // Whoever took them has said why it does not any more.
        self.sender.send(packed).map_err(|_| io::Error::other("the recipients cannot be copied to the ledger"))
    }
}

impl Write for ShardWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = SHARD_BYTES - self.shard.len();
        let taken = bytes.len().min(room);
        self.shard.extend_from_slice(&bytes[..taken]);
        if taken == room {
            self.send_shard()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send_shard()
    }
}

impl Drop for ShardWriter {
    fn drop(&mut self) {
        // What was not flushed need not be kept, but mostly is wanted.
        let _ = self.send_shard();
    }
}

/// Reads a list from its shards, as they come.
pub(super) struct ShardReader {
    shard: io::Cursor<Vec<u8>>,
    receiver: Receiver<io::Result<Vec<u8>>>,
}

impl ShardReader {
    pub(super) fn new(coming: Receiver<io::Result<Vec<u8>>>) -> Self {
        Self { shard: io::Cursor::default(), receiver: coming }
    }
}

impl Read for ShardReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.shard.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            // A thread that has other tasks too leaves them to another one meanwhile: one of them may be what brings the shard.
            let coming = tokio::task::block_in_place(|| self.receiver.recv());
            // Nobody gives any more: that was the last.
            let Ok(packed) = coming else { return Ok(0) };
            self.shard = io::Cursor::new(zstd::bulk::decompress(&packed?, SHARD_BYTES)?);
        }
    }
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
            let (given, shards) = sync_channel(64);
            let mut writer = ShardWriter::new(given);
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
            let (give, coming) = sync_channel(64);
            for shard in shards {
                prop_assert!(zstd::bulk::decompress(&shard, SHARD_BYTES).unwrap().len() <= SHARD_BYTES);
                give.send(Ok(shard)).unwrap();
            }
            drop(give);
            let mut read = Vec::new();
            ShardReader::new(coming).read_to_end(&mut read).unwrap();
            prop_assert_eq!(read, list);
        }
    }
}
