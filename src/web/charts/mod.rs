//! The geometry of charts: numbers become places, and a template draws them.
//!
//! A chart has no colour and no words of its own: shapes have classes, which the stylesheet colours for light, dark and paper,
//! and every number in words beside it comes from whoever knows it. Nothing here rounds a number that is read: only places on the
//! screen are rounded. A length is told in thousandths of the whole, so a chart fits any screen without a script.

mod axis;
mod bars;
mod calendar;
mod cascade;
mod stack;

pub use bars::{Bar, BarSegment, scale_bars};
pub use calendar::{CalendarDay, CalendarView, build_calendar};
pub use cascade::{Cascade, CascadeStep, draw_cascade};
pub use stack::{LayerInput, Series, StackChart, StackInput, draw_stack};

use serde::{Serialize, Serializer};

/// A length in thousandths of a chart, which a page writes as `37.5%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Length(u32);

impl Serialize for Length {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}.{}%", self.0 / 10, self.0 % 10))
    }
}

impl Length {
    /// A share of a whole, rounded; something that is more than nothing is at least a thousandth.
    fn from_share(part: u64, whole: u64) -> Self {
        if part == 0 || whole == 0 {
            return Self(0);
        }
        let share = (u128::from(part.min(whole)) * 1_000 + u128::from(whole) / 2) / u128::from(whole);
        Self(u32::try_from(share).unwrap_or(1_000).max(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn length_is_zero_only_for_an_empty_share(part in any::<u64>(), whole in any::<u64>()) {
            let Length(share) = Length::from_share(part, whole);
            prop_assert!(share <= 1_000);
            prop_assert_eq!(share == 0, part == 0 || whole == 0);
        }
    }
}
