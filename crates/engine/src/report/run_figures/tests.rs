//! Tests that figures add up for any outcomes of rows, and do not change when they are stored.

use proptest::prelude::*;

use super::stored::StoredFigures;
use super::{RunCost, RunFigures};
use crate::delivery::Snapshot;
use campaign_core::domain::{Amount, OperationOutcome, Spending};
use campaign_ledger::{EnvelopeReader, RowState, StateCounts};
use campaign_testing::{build_run, row_case};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn sum(counts: &StateCounts, states: &[RowState]) -> u64 {
    states.iter().map(|state| counts.get(*state)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rows_are_counted_once_and_all_figures_agree(
        cases in proptest::collection::vec(row_case("[a-c]{0,2}"), 0..24), owned in any::<bool>(),
    ) {
        let (figures, snapshot, unsent) = block_on(async {
            let (ledger, run) = build_run(&cases).await;
            let figures = RunFigures::load(&ledger, &run, owned).await.unwrap();
            let (mut unsent, mut envelopes) = (0, EnvelopeReader::new(&ledger, run.key));
            while let Some(envelope) = envelopes.next_envelope().await.unwrap() {
                let outcomes = envelope.settled.map(|(_, outcomes)| outcomes).unwrap_or_default();
                unsent += outcomes.iter().filter(|outcome| matches!(outcome, OperationOutcome::NotSent { .. })).count();
            }
            (figures, Snapshot::load(&ledger, &run, owned).await.unwrap(), unsent as u64)
        });
        let counts = &figures.counts;
        prop_assert_eq!(counts, &snapshot.counts);
        prop_assert_eq!(counts.total(), cases.len() as u64);
        prop_assert_eq!(figures.requests.parts, snapshot.parts);
        prop_assert_eq!(figures.left_out.count_rows(), sum(counts, &[RowState::Skipped, RowState::Invalid]));
        prop_assert_eq!(figures.failures.count_rows(), sum(counts, &[RowState::Failed, RowState::Rejected, RowState::NotSent]));
        let arrived: u64 = figures.arrivals.sum_by_kind().iter().map(|(_, count)| count).sum();
        prop_assert_eq!(arrived, counts.count_delivered());
        let channels = || figures.channels.iter().map(|(_, figure)| figure);
        prop_assert_eq!(channels().map(|figure| figure.counts.count_delivered()).sum::<u64>(), counts.count_delivered());
        prop_assert_eq!(channels().map(|figure| figure.read).sum::<u64>(), counts.get(RowState::Read));
        let timed = channels().map(|figure| figure.times.count_timed() + figure.times.count_uncertain());
        prop_assert_eq!(timed.sum::<u64>(), counts.count_delivered(), "every delivered message has a time or an uncertain one");
        prop_assert!(channels().all(|figure| figure.in_part <= figure.counts.get(RowState::Delivered)));
        let accepted = sum(counts, &super::ACCEPTED_STATES);
        prop_assert_eq!(figures.channels.iter().map(|(_, figure)| figure.counts.total()).sum::<u64>(), accepted);
        let chain_counts = figures.chains.values().map(|chain| chain.count_reached(0) + chain.count_unknown());
        prop_assert_eq!(chain_counts.sum::<u64>(), accepted);
        let doubtful = sum(counts, &[RowState::InDoubt, RowState::Unresolved]);
        prop_assert_eq!(figures.doubts.rows.len() as u64, doubtful.min(20));
        prop_assert_eq!(figures.doubts.since.is_some(), doubtful > 0);
        let requests = &figures.requests;
        prop_assert_eq!(requests.sent.sum_by_kind().iter().map(|(_, count)| count).sum::<u64>(), requests.messages);
        // An attempt that certainly was not sent neither uses the budget nor returns anything, unless a receipt proves
        // the opposite.
        let price = |messages| Amount::saturating_mul("0.8".parse().unwrap(), messages);
        let counted_price = requests.used.cost.saturating_add(requests.given_back);
        prop_assert!(counted_price <= price(requests.messages) && counted_price >= price(requests.messages - unsent));
        prop_assert!(requests.cost().is_none_or(|cost| cost.unpriced == 0));
    }

    #[test]
    fn stored_figures_round_trip_and_damaged_data_is_rejected(
        cases in proptest::collection::vec(row_case("[a-c]{0,2}"), 0..16),
        cut in any::<usize>(),
        noise in any::<Vec<u8>>(),
    ) {
        let figures = block_on(async {
            let (ledger, run) = build_run(&cases).await;
            RunFigures::load(&ledger, &run, false).await.unwrap()
        });
        let written = StoredFigures::from_figures(&figures, 7).encode().unwrap();
        let restored = StoredFigures::decode(&written).unwrap();
        prop_assert!(restored.is_current(&figures.counts, 7) && !restored.is_current(&figures.counts, 8));
        let restored = restored.into_figures().unwrap();
        prop_assert_eq!(restored.to_json(), figures.to_json());
        prop_assert_eq!(restored.channels.to_json(), figures.channels.to_json());
        prop_assert_eq!(restored.arrivals.sum_by_kind(), figures.arrivals.sum_by_kind());
        // Truncated data is rejected, and random data does not cause a panic.
        prop_assert!(StoredFigures::decode(&written[..cut % written.len()]).is_none());
        let _ = StoredFigures::decode(&noise).and_then(StoredFigures::into_figures);
    }
}

#[test]
fn earlier_stored_figures_state_no_cost_without_all_prices() {
    let mut figures = RunFigures::default();
    let used = Spending { recipients: 3, cost: "1.6".parse().unwrap() };
    (figures.requests.requests, figures.requests.used, figures.requests.unpriced) = (1, used, 1);
    figures.requests.has_prices = true;
    let restore = |written: &[u8]| StoredFigures::decode(written).and_then(StoredFigures::into_figures).unwrap();
    let written = StoredFigures::from_figures(&figures, 0).encode().unwrap();
    assert_eq!(restore(&written).requests.cost(), Some(RunCost { used: used.cost, unpriced: 1 }));
    // Version 4 stored only whether all prices were known.
    figures.requests.has_prices = false;
    let mut earlier = StoredFigures::from_figures(&figures, 0).encode().unwrap();
    earlier[0] = 4;
    earlier.pop();
    let purged = restore(&earlier).requests;
    assert_eq!((purged.cost(), purged.unpriced()), (None, 3));
    let current = StoredFigures::decode_current(&earlier).unwrap();
    assert!(current.into_figures().is_none(), "they are calculated again");
}
