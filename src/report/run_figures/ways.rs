//! On which channels messages were tried, one after another, and in which of them each ended. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::Channel;
use crate::ledger::StateCounts;

/// The channels of a message in the order in which they are tried.
pub type FallbackChain = Vec<Channel>;

/// What became of the messages of a way, by the place of the channel that was told last; nothing where none was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FallbackChainFigure {
    /// Messages by the place of their channel on the way, from 0.
    pub places: BTreeMap<Option<u8>, StateCounts>,
}

impl FallbackChainFigure {
    /// How many messages were tried at a place or behind it, of those whose channel was told.
    #[must_use]
    pub fn count_reached(&self, place: u8) -> u64 {
        let behind = self.places.iter().filter(|(at, _)| at.is_some_and(|at| at >= place));
        behind.map(|(_, counts)| counts.total()).sum()
    }

    /// The messages whose channel nobody told.
    #[must_use]
    pub fn count_unknown(&self) -> u64 {
        self.places.get(&None).map_or(0, StateCounts::total)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::RowState;

    proptest! {
        #[test]
        fn reached_messages_ended_there_or_fell_back(
            told in proptest::collection::vec((proptest::option::of(0..4_u8), 0..900_u64), 0..12),
        ) {
            let mut figure = FallbackChainFigure::default();
            for (place, rows) in &told {
                figure.places.entry(*place).or_default().add(RowState::Delivered, *rows);
            }
            for place in 0..4 {
                let ended = figure.places.get(&Some(place)).map_or(0, StateCounts::total);
                prop_assert_eq!(figure.count_reached(place), ended + figure.count_reached(place + 1));
            }
            prop_assert_eq!(figure.count_reached(0) + figure.count_unknown(), told.iter().map(|(_, rows)| rows).sum::<u64>());
        }
    }
}
