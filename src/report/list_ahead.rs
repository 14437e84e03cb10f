//! A frozen list that is read on a thread of its own, a few groups of records ahead of who takes them.

use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use super::ResultsError;
use super::frozen_list::FrozenList;
use crate::audience::{Chunk, Reader};
use crate::finding::Finding;

/// Groups that wait to be taken.
const AHEAD: usize = 4;

/// A list that is read ahead.
pub(super) struct ListAhead {
    groups: Receiver<Chunk>,
    reading: JoinHandle<Result<FrozenList, Box<Finding>>>,
}

impl ListAhead {
    /// Reads on where this reader stands.
    pub(super) fn of(mut reader: Reader<FrozenList>) -> Self {
        let (given, groups) = channel(AHEAD);
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
    pub(super) async fn next(&mut self) -> Option<Chunk> {
        self.groups.recv().await
    }

    /// Reads what is left of the list, and makes sure that it is the one with this SHA-256 in hexadecimal.
    pub(super) async fn finish(self, sha256: &str) -> Result<(), ResultsError> {
        drop(self.groups);
        let reading = self.reading.await.map_err(|error| ResultsError::Recipients(error.to_string()))?;
        reading.map_err(|finding| vec![*finding])?.finish(sha256)
    }
}
