//! Whom a cap holds back, and what counts for it.

use rustc_hash::FxHashMap;

use super::budget::is_used;
use crate::domain::{Addressee, FrequencyCap, Row};
use crate::ledger::{EnvelopeRecord, RowEvents, Run, SentRow, SharedRun};

/// Whether the messages of a run count towards caps: marketing that campaigns or assistants send to people.
///
/// Test messages, lookups, code calls and service messages do not count.
pub(in crate::ledger) fn counts_for_caps(run: &Run) -> bool {
    let of_assistants = run.campaign == SharedRun::ASSISTANT_MESSAGES;
    run.live && (!run.shared || of_assistants) && run.suppression.purpose.is_marketing() && !run.kind.is_single()
}

/// The messages of an envelope that count, by row and number: those that went out or may have.
pub(in crate::ledger) fn counted_messages<'e>(
    envelope: &'e EnvelopeRecord,
    events: &'e RowEvents,
) -> impl Iterator<Item = &'e SentRow> {
    envelope.rows.iter().enumerate().filter(|(index, _)| is_used(envelope, *index, events)).map(|(_, sent)| sent)
}

/// Whether caps allow one more message now to a number that got some at these times.
pub(in crate::ledger) fn caps_allow(caps: &[FrequencyCap], now: i64, times: &[i64]) -> bool {
    caps.iter().all(|cap| cap.allows_another(now, times.iter().copied()))
}

/// The rows of an envelope that caps hold back, by when their numbers got messages.
pub(in crate::ledger) fn find_capped_rows(
    caps: &[FrequencyCap],
    now: i64,
    rows: &[SentRow],
    mut times: FxHashMap<Addressee, Vec<i64>>,
) -> Vec<Row> {
    let mut capped = Vec::new();
    for sent in rows {
        let times = times.entry(sent.to).or_default();
        match caps_allow(caps, now, times) {
            // What goes out in this envelope counts for what comes behind it.
            true => times.push(now),
            false => capped.push(sent.row),
        }
    }
    capped
}
