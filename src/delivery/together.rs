//! What a process that sends a run together with others owes them. Pure.

use crate::domain::OperationOutcome;
use crate::ledger::{Allowance, EnvelopeRecord};

/// How a process sends a run together with others.
#[derive(Clone, Debug)]
pub struct SharedPace {
    /// The campaign's own pace, which all of them keep together; nothing where it is that of the account.
    pub pace: Option<Allowance>,
}

/// The most rows that a process draws at once: not much to look at again when it is gone.
pub(super) const MAX_SHARE: u32 = 5_000;
/// For how many seconds a share lasts one process, so that none is left with much when the others are through.
const SHARE_SECONDS: f64 = 2.0;

/// How many rows a process draws at once that sends so many a second at most, in envelopes of so many.
#[must_use]
pub fn share_size(rate: Option<f64>, batch: usize) -> u32 {
    let least = u32::try_from(batch).unwrap_or(MAX_SHARE).clamp(1, MAX_SHARE);
    let lasting = rate.map_or(MAX_SHARE, |rate| (rate * SHARE_SECONDS) as u32);
    lasting.clamp(least, MAX_SHARE)
}

/// How many envelopes before and after one are looked at for a series of doubt: as many as may be on their way at a time.
pub(super) const DOUBT_WINDOW: u32 = 256;

/// How many of the envelopes that were settled last, whoever sent them, are in doubt one after another.
pub(super) fn count_doubtful_in_a_row(envelopes: &[EnvelopeRecord]) -> u32 {
    let mut settled: Vec<_> = envelopes
        .iter()
        .filter_map(|envelope| envelope.settled.as_ref().map(|(at, outcomes)| (*at, envelope.envelope, outcomes)))
        // What never left says nothing of the gateway.
        .filter(|(.., outcomes)| !outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::NotSent { .. })))
        .collect();
    settled.sort_by_key(|(at, envelope, _)| (*at, *envelope));
    let is_doubtful = |outcomes: &[OperationOutcome]| {
        outcomes.iter().all(|outcome| matches!(outcome, OperationOutcome::InDoubt { .. }))
    };
    let series = settled.iter().rev().take_while(|(.., outcomes)| is_doubtful(outcomes)).count();
    u32::try_from(series).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::OperationKind;

    fn envelope(envelope: u32, at: Option<i64>, outcome: OperationOutcome) -> EnvelopeRecord {
        let settled = at.map(|at| (Timestamp::from_second(at).unwrap(), vec![outcome]));
        let begun_at = Timestamp::UNIX_EPOCH;
        EnvelopeRecord { envelope, kind: OperationKind::Sms, begun_at, rows: Vec::new(), costs: Vec::new(), settled }
    }

    #[test]
    fn share_lasts_seconds_and_fills_an_envelope() {
        let sizes = [(None, 100), (Some(2_000.0), 100), (Some(100.0), 50), (Some(0.5), 50), (Some(1e9), 1_000_000)];
        assert_eq!(sizes.map(|(rate, batch)| share_size(rate, batch)), [5_000, 4_000, 200, 50, 5_000]);
    }

    #[test]
    fn doubt_is_counted_in_order_of_settlement() {
        let doubt = || OperationOutcome::InDoubt { reason: "silence".into() };
        let (taken, held) = (
            OperationOutcome::Queued { request_id: "7".into() },
            OperationOutcome::NotSent { reason: "called back".into() },
        );
        let records = [
            envelope(1, Some(10), doubt()),
            envelope(2, Some(30), doubt()),
            envelope(3, Some(20), taken.clone()),
            envelope(4, None, doubt()),
            envelope(5, Some(40), held),
            envelope(6, Some(50), doubt()),
        ];
        assert_eq!(count_doubtful_in_a_row(&records), 2);
        assert_eq!(count_doubtful_in_a_row(&records[..3]), 1);
        assert_eq!(count_doubtful_in_a_row(&[envelope(1, Some(1), taken)]), 0);
    }
}
