//! Whatever became of a run's rows, its figures add up, and are the same once they were kept.

use proptest::prelude::*;

use super::kept::KeptFigures;
use super::scenes::{fate, scene};
use super::{Arrived, RunFigures};
use crate::delivery::Snapshot;
use crate::ledger::{State, StateCounts};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn sum(counts: &StateCounts, states: &[State]) -> u64 {
    states.iter().map(|state| counts.get(*state)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_row_is_counted_once_and_every_part_says_the_same(
        fates in proptest::collection::vec(fate("[a-c]{0,2}"), 0..24), owned in any::<bool>(),
    ) {
        let (figures, snapshot) = block_on(async {
            let (ledger, run) = scene(&fates).await;
            let figures = RunFigures::read(&ledger, &run, owned).await.unwrap();
            (figures, Snapshot::read(&ledger, &run, owned).await.unwrap())
        });
        let counts = &figures.counts;
        prop_assert_eq!(counts, &snapshot.counts);
        prop_assert_eq!(counts.total(), fates.len() as u64);
        prop_assert_eq!(figures.requests.parts, snapshot.parts);
        prop_assert_eq!(figures.left_out.rows(), sum(counts, &[State::Skipped, State::Invalid]));
        prop_assert_eq!(figures.failures.rows(), sum(counts, &[State::Failed, State::Rejected, State::NotSent]));
        let arrived: u64 = figures.arrived.kinds().iter().map(|(_, count)| count).sum();
        prop_assert_eq!(arrived, counts.delivered());
        let channels = || figures.channels.iter().map(|(_, figure)| figure);
        prop_assert_eq!(channels().map(|figure| figure.counts.delivered()).sum::<u64>(), counts.delivered());
        prop_assert_eq!(channels().map(|figure| figure.read).sum::<u64>(), counts.get(State::Read));
        let timed = channels().map(|figure| figure.times.messages() + figure.times.uncertain());
        prop_assert_eq!(timed.sum::<u64>(), counts.delivered(), "every delivered message has a time or an uncertain one");
        prop_assert!(channels().all(|figure| figure.in_part <= figure.counts.get(State::Delivered)));
        let taken = sum(counts, &super::TAKEN);
        prop_assert_eq!(figures.channels.iter().map(|(_, figure)| figure.counts.total()).sum::<u64>(), taken);
        prop_assert_eq!(figures.ways.values().map(|way| way.reached(0) + way.untold()).sum::<u64>(), taken);
        let doubtful = sum(counts, &[State::InDoubt, State::Unresolved]);
        prop_assert_eq!(figures.doubts.rows.len() as u64, doubtful.min(20));
        prop_assert_eq!(figures.doubts.since.is_some(), doubtful > 0);
        let requests = &figures.requests;
        prop_assert_eq!(requests.sent.kinds().iter().map(|(_, count)| count).sum::<u64>(), requests.messages);
        let all = crate::domain::Amount::times("0.8".parse().unwrap(), requests.messages);
        prop_assert_eq!(requests.used.cost.plus(requests.given_back), all);
    }

    #[test]
    fn figures_that_were_kept_are_the_same_and_nothing_else_is_read_as_figures(
        fates in proptest::collection::vec(fate("[a-c]{0,2}"), 0..16), cut in any::<usize>(), noise in any::<Vec<u8>>(),
    ) {
        let figures = block_on(async {
            let (ledger, run) = scene(&fates).await;
            RunFigures::read(&ledger, &run, false).await.unwrap()
        });
        let written = KeptFigures::of(&figures, 7).written().unwrap();
        let kept = KeptFigures::read(&written).unwrap();
        prop_assert!(kept.is_of(&figures.counts, 7) && !kept.is_of(&figures.counts, 8));
        let kept = kept.figures().unwrap();
        prop_assert_eq!(kept.json(), figures.json());
        prop_assert_eq!(kept.channels.json(), figures.channels.json());
        let by = |arrived: &[(Arrived, u64)]| arrived.to_vec();
        prop_assert_eq!(by(&kept.arrived.kinds()), by(&figures.arrived.kinds()));
        // What is broken off, or something else, is nothing; it never is a panic.
        prop_assert!(KeptFigures::read(&written[..cut % written.len()]).is_none());
        let _ = KeptFigures::read(&noise).and_then(KeptFigures::figures);
    }
}
