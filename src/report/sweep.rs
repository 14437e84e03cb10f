//! What became of each row, read from the ledger in the order of the rows, a few envelopes at a time.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use std::sync::Arc;

use jiff::Timestamp;
use rustc_hash::FxHashMap;

use crate::domain::{Phone, Row};
use crate::ledger::{Change, EnvelopeRecord, Ledger, LedgerError, Outcome, RowEvents, RunId, State};

/// Envelopes that are read at once.
const BLOCK: u32 = 64;

/// The last that is known of a row.
#[derive(Clone, Debug)]
pub struct Fate {
    /// The number it was sent to.
    pub phone: Phone,
    /// The envelope of its last attempt.
    pub envelope: u32,
    /// When that attempt was recorded.
    pub submitted_at: Arc<str>,
    /// What came of it, and when; nothing for an intent alone.
    pub settled: Option<(Arc<str>, Outcome)>,
    /// An earlier attempt that turned out to be taken, although the row was sent again.
    pub taken_before: Option<u32>,
    /// What was learnt or decided about the row afterwards.
    pub judged: Option<Judged>,
}

impl Fate {
    /// Its attempt, if the gateway took it.
    fn taken(&self) -> Option<u32> {
        let took = |outcome: &Outcome| matches!(outcome, Outcome::Accepted { .. } | Outcome::Queued { .. });
        self.settled.as_ref().is_some_and(|(_, outcome)| took(outcome)).then_some(self.envelope)
    }
}

/// What events make of a row's last attempt.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The state that it came to.
    pub state: State,
    /// The last event about the attempt that counts, and when it was recorded.
    pub last: Option<(Arc<str>, Change)>,
    /// The order whose identifiers that attempt had; nothing for the run's own.
    pub order: Option<u32>,
    /// Whether an earlier attempt under the same identifier went out after all.
    pub duplicate: bool,
}

/// A sweep over the rows of a run from the first to the last.
///
/// Rows leave in the file's order, retries aside, so the envelopes that overlap a row are few and
/// memory holds those, never the run.
pub struct Sweep<'a> {
    ledger: &'a dyn Ledger,
    run: RunId,
    /// Blocks of envelopes with the first row in them, in the order of those rows.
    blocks: VecDeque<(Row, RangeInclusive<u32>)>,
    fates: FxHashMap<Row, Fate>,
    events: RowEvents,
}

impl<'a> Sweep<'a> {
    /// A sweep over the run.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn new(ledger: &'a dyn Ledger, run: RunId) -> Result<Self, LedgerError> {
        let events = ledger.events(run).await?.into();
        let summaries = ledger.envelope_summaries(run).await?;
        let mut blocks: BTreeMap<u32, Row> = BTreeMap::new();
        for summary in summaries {
            let first = blocks.entry(summary.envelope / BLOCK).or_insert(summary.first);
            *first = summary.first.min(*first);
        }
        let mut blocks: Vec<_> =
            blocks.into_iter().map(|(block, first)| (first, block * BLOCK..=block * BLOCK + (BLOCK - 1))).collect();
        blocks.sort_by_key(|(first, _)| *first);
        Ok(Self { ledger, run, blocks: blocks.into(), fates: FxHashMap::default(), events })
    }

    /// The fate of `row`, if it has an envelope. Rows are asked for in ascending order.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub async fn take(&mut self, row: Row) -> Result<Option<Fate>, LedgerError> {
        while self.blocks.front().is_some_and(|(first, _)| *first <= row) {
            if let Some((_, numbers)) = self.blocks.pop_front() {
                for envelope in self.ledger.envelopes(self.run, numbers).await? {
                    self.add(envelope);
                }
            }
        }
        let mut fate = self.fates.remove(&row);
        if let Some(fate) = fate.as_mut().filter(|_| self.events.concern(row)) {
            fate.judged = Some(judged(&self.events, row, fate));
        }
        Ok(fate)
    }

    fn add(&mut self, envelope: EnvelopeRecord) {
        let number = envelope.envelope;
        let submitted_at = instant(envelope.begun_at);
        let settled_at = envelope.settled.as_ref().map(|(at, _)| instant(*at));
        let mut outcomes = envelope.settled.map(|(_, outcomes)| outcomes.into_iter());
        for sent in envelope.rows {
            let outcome = outcomes.as_mut().and_then(Iterator::next);
            let settled = settled_at.clone().zip(outcome);
            let mut fate = Fate {
                phone: sent.phone,
                envelope: number,
                submitted_at: submitted_at.clone(),
                settled,
                taken_before: None,
                judged: None,
            };
            // A later envelope is a later attempt; blocks may come in any order.
            match self.fates.entry(sent.row) {
                Entry::Vacant(entry) => {
                    entry.insert(fate);
                }
                Entry::Occupied(mut known) if known.get().envelope < number => {
                    fate.taken_before = known.get().taken().or(known.get().taken_before);
                    known.insert(fate);
                }
                Entry::Occupied(mut known) => {
                    let known = known.get_mut();
                    known.taken_before = known.taken_before.or(fate.taken());
                }
            }
        }
    }
}

fn judged(events: &RowEvents, row: Row, fate: &Fate) -> Judged {
    let state = fate.settled.as_ref().map_or(State::InDoubt, |(_, outcome)| outcome.state());
    let (state, last) = events.judge(row, fate.envelope, state);
    // A message with an identifier of its own doubles nothing.
    let same = |earlier| events.order(row, earlier) == events.order(row, fate.envelope);
    Judged {
        state,
        last: last.map(|event| (instant(event.at), event.change.clone())),
        order: events.order(row, fate.envelope),
        duplicate: fate.taken_before.is_some_and(same) || events.duplicate(row, fate.envelope).is_some(),
    }
}

/// An instant as RFC 3339 in UTC, whole milliseconds.
fn instant(at: Timestamp) -> Arc<str> {
    format!("{at:.3}").into()
}
