//! A frozen list that is read on a thread of its own, a few groups of records ahead of who takes them.

use std::panic::resume_unwind;

use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use super::ResultsError;
use super::frozen_list::FrozenList;
use crate::audience::{Chunk, RecipientReader};
use crate::finding::Finding;

/// Groups that wait to be taken.
const CHUNKS_AHEAD: usize = 4;

/// A list that is read ahead.
pub(super) struct ReadAheadList {
    groups: Receiver<Chunk>,
    reading: JoinHandle<Result<FrozenList, Box<Finding>>>,
}

impl ReadAheadList {
    /// Reads on where this reader stands.
    pub(super) fn spawn(mut reader: RecipientReader<FrozenList>) -> Self {
        let (given, groups) = channel(CHUNKS_AHEAD);
        let reading = tokio::task::spawn_blocking(move || {
            loop {
                let mut group = Chunk::new();
                if !reader.read_chunk(&mut group)? || given.blocking_send(group).is_err() {
                    // It ended, or nobody takes more.
                    return Ok(reader.into_input());
                }
            }
        });
        Self { groups, reading }
    }

    /// The next group; nothing at the end, or where the list cannot be read on, as [`ListAhead::finish`] tells.
    pub(super) async fn next_chunk(&mut self) -> Option<Chunk> {
        self.groups.recv().await
    }

    /// Reads what is left of the list, and makes sure that it is the one with this SHA-256 in hexadecimal.
    pub(super) async fn verify_hash(self, sha256: &str) -> Result<(), ResultsError> {
        drop(self.groups);
        let reading = self.reading.await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(error) => ResultsError::Recipients(error.to_string()),
        })?;
        reading.map_err(|finding| vec![*finding])?.verify_hash(sha256)
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::audience::ListSettings;
    use crate::ledger::ListReader;
    use crate::report::ListSource;

    /// A list of so many rows that is read ahead, and its SHA-256.
    fn read_ahead(rows: u64) -> (ReadAheadList, String) {
        let rows: String = (0..rows).map(|row| format!("{}\n", 380_501_000_000 + row)).collect();
        let text = format!("phone\n{rows}");
        let sha256 = Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        let open = || Ok(Box::new(io::Cursor::new(text.clone())) as ListReader);
        let place = Path::new("list.csv");
        let list = FrozenList::open(ListSource::Outside { path: place, open: &open }).unwrap();
        (ReadAheadList::spawn(RecipientReader::open(list, place, &ListSettings::default()).unwrap()), sha256)
    }

    #[tokio::test]
    async fn rows_come_once_and_in_order() {
        let (mut list, sha256) = read_ahead(20_000);
        let mut next = 2;
        while let Some(group) = list.next_chunk().await {
            for record in group.iter() {
                assert_eq!(record.row.get(), next);
                next += 1;
            }
        }
        assert_eq!(next, 20_002);
        list.verify_hash(&sha256).await.unwrap();
    }

    #[tokio::test]
    async fn hash_covers_the_whole_list_if_few_rows_are_taken() {
        for taken in [0, 1] {
            let (mut list, sha256) = read_ahead(20_000);
            for _ in 0..taken {
                assert!(list.next_chunk().await.is_some());
            }
            list.verify_hash(&sha256).await.unwrap();
            let (list, _) = read_ahead(20_001);
            assert!(matches!(list.verify_hash(&sha256).await, Err(ResultsError::ListChanged(_))), "{taken}");
        }
    }

    #[tokio::test]
    async fn read_error_is_reported_at_the_end() {
        let open = || Ok(Box::new(io::Cursor::new("phone,name\n380501000002,Olena\n380501000003\n")) as ListReader);
        let place = Path::new("list.csv");
        let list = FrozenList::open(ListSource::Outside { path: place, open: &open }).unwrap();
        let mut list = ReadAheadList::spawn(RecipientReader::open(list, place, &ListSettings::default()).unwrap());
        while list.next_chunk().await.is_some() {}
        assert!(matches!(list.verify_hash("").await, Err(ResultsError::Recipients(_))));
    }
}
