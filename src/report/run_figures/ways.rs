//! On which channels messages were tried, one after another, and in which of them each ended. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::{Allotment, Channel, OperationKind, Phone};
use crate::ledger::StateCounts;
use crate::manifest::Brief;

/// The channels of a message in the order in which they are tried.
pub type Way = Vec<Channel>;

/// The ways that messages of a campaign can take.
#[derive(Debug)]
pub(super) struct Ways {
    allotment: Allotment,
    /// Of each variant what its operation is, and its channels.
    arms: Vec<(OperationKind, Way)>,
}

/// What became of the messages of a way, by the place of the channel that was told last; nothing where none was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayFigure {
    /// Messages by the place of their channel on the way, from 0.
    pub places: BTreeMap<Option<u8>, StateCounts>,
}

impl Ways {
    /// Those of a campaign.
    pub(super) fn of(brief: &Brief) -> Self {
        let arms = brief.arms();
        let way = |content: &crate::domain::Content<_>| content.stages.iter().map(|stage| stage.channel()).collect();
        Self {
            allotment: brief.allotment(),
            arms: arms.iter().map(|arm| (arm.content.kind, way(arm.content))).collect(),
        }
    }

    /// The way of a message whose kind does not name its channels; nothing where nobody can tell it any more.
    pub(super) fn way(&self, kind: OperationKind, phone: Option<Phone>) -> Option<&[Channel]> {
        let mut fitting = self.arms.iter().filter(|(of, _)| *of == kind).map(|(_, way)| way);
        let first = fitting.next()?;
        if fitting.all(|way| way == first) {
            return Some(first);
        }
        let (of, way) = self.arms.get(self.allotment.variant(phone?))?;
        (*of == kind).then_some(way)
    }
}

impl WayFigure {
    /// How many messages were tried at a place or behind it, of those whose channel was told.
    #[must_use]
    pub fn reached(&self, place: u8) -> u64 {
        let behind = self.places.iter().filter(|(at, _)| at.is_some_and(|at| at >= place));
        behind.map(|(_, counts)| counts.total()).sum()
    }

    /// The messages whose channel nobody told.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.places.get(&None).map_or(0, StateCounts::total)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ledger::State;

    proptest! {
        #[test]
        fn what_reached_a_place_ended_there_or_fell_on(
            told in proptest::collection::vec((proptest::option::of(0..4_u8), 0..900_u64), 0..12),
        ) {
            let mut figure = WayFigure::default();
            for (place, rows) in &told {
                figure.places.entry(*place).or_default().add(State::Delivered, *rows);
            }
            for place in 0..4 {
                let ended = figure.places.get(&Some(place)).map_or(0, StateCounts::total);
                prop_assert_eq!(figure.reached(place), ended + figure.reached(place + 1));
            }
            prop_assert_eq!(figure.reached(0) + figure.untold(), told.iter().map(|(_, rows)| rows).sum::<u64>());
        }
    }
}
