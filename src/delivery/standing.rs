//! Where a run stands: what each of its rows came to so far.

use std::collections::HashMap;

use roaring::RoaringBitmap;

use crate::domain::Row;
use crate::ledger::{Ledger, LedgerError, LeftOut, Progress, RowStates, Run, State, StateCounts};

/// Envelopes that are read at once.
const BLOCK: u32 = 256;

/// What is known of a run's rows.
#[derive(Debug)]
pub struct Standing {
    /// Counts by state.
    pub counts: StateCounts,
    /// Parts billed, as far as the gateway told.
    pub parts: u64,
    /// Rows that are never sent.
    pub left_out: LeftOut,
    /// Rows that need no sending: left out, or with an envelope that stands.
    pub settled: RoaringBitmap,
    /// The hashes of the rows that had an envelope, are proven not sent, and go out again.
    pub digests: HashMap<Row, [u8; 8]>,
    /// The number of the last envelope.
    pub last_envelope: u32,
}

impl Standing {
    /// Reads where `run` stands; `owned` tells whether a process is sending it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn read(ledger: &dyn Ledger, run: &Run, owned: bool) -> Result<Self, LedgerError> {
        let left_out = ledger.left_out(run.key).await?;
        let mut states = RowStates::default();
        let mut settled = left_out.rows();
        let mut digests = HashMap::new();
        let mut last_envelope = 0;
        loop {
            let next = last_envelope + 1;
            let envelopes = ledger.envelopes(run.key, next..=next.saturating_add(BLOCK - 1)).await?;
            for envelope in &envelopes {
                last_envelope = envelope.envelope;
                states.add(envelope, owned);
                for sent in &envelope.rows {
                    if states.get(sent.row) == Some(State::Planned) {
                        settled.remove(sent.row.get());
                        digests.insert(sent.row, sent.digest);
                    } else {
                        settled.insert(sent.row.get());
                        digests.remove(&sent.row);
                    }
                }
            }
            if envelopes.is_empty() {
                break;
            }
        }
        let mut counts = states.counts(run.recipients, &left_out);
        if run.progress == Progress::Finished {
            // A finished run tries nothing any more.
            counts.shift(State::Planned, State::NotSent, counts.get(State::Planned));
        }
        Ok(Self { counts, parts: states.parts(), left_out, settled, digests, last_envelope })
    }
}
