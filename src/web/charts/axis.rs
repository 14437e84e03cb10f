//! Axes: round numbers upwards, and times along the clock of a zone.

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan as _, Unit, Zoned, ZonedRound};
use serde::Serialize;

use super::Length;

/// A mark of an axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Tick {
    /// Where it is, from the beginning.
    pub(super) at: Length,
    /// Which edge of the chart is so near that its words end there: `begins`, `ends` or none.
    edge: &'static str,
    /// What stands there.
    pub(super) label: String,
}

impl Tick {
    fn new(at: Length, label: String) -> Self {
        let edge = match at.0 {
            0..50 => "begins",
            951.. => "ends",
            _ => "",
        };
        Self { at, edge, label }
    }
}

/// The highest number of an axis that shows up to this, and where round numbers are on it.
pub(super) fn number_axis(most: u64, write: impl Fn(u64) -> String) -> (u64, Vec<Tick>) {
    let step = round_step(most.max(1).div_ceil(4));
    let top = most.max(1).div_ceil(step).saturating_mul(step);
    let steps = top / step;
    let tick = |number: u64| Tick::new(Length::from_share(number, steps), write(number.saturating_mul(step)));
    (top, (0..=steps).map(tick).collect())
}

/// The smallest of 1, 2, 5, 10, 20, 50 … that is not less.
fn round_step(least: u64) -> u64 {
    let mut ten = 1_u64;
    loop {
        for digit in [1, 2, 5] {
            let step = ten.saturating_mul(digit);
            if step >= least {
                return step;
            }
        }
        ten = ten.saturating_mul(10);
    }
}

/// Steps from one mark to the next: how long about, in seconds, and how they are on the clock of a zone.
const STEPS: [(i64, i64, Unit); 17] = [
    (1, 1, Unit::Second),
    (5, 5, Unit::Second),
    (15, 15, Unit::Second),
    (60, 1, Unit::Minute),
    (300, 5, Unit::Minute),
    (600, 10, Unit::Minute),
    (1_800, 30, Unit::Minute),
    (3_600, 1, Unit::Hour),
    (7_200, 2, Unit::Hour),
    (14_400, 4, Unit::Hour),
    (21_600, 6, Unit::Hour),
    (43_200, 12, Unit::Hour),
    (86_400, 1, Unit::Day),
    (172_800, 2, Unit::Day),
    (604_800, 7, Unit::Day),
    (2_592_000, 30, Unit::Day),
    (31_536_000, 365, Unit::Day),
];
/// Marks, at most, so that their words do not meet on a small screen.
const MAX_MARKS: i64 = 5;

/// Where the clock of a zone shows round times between two moments.
pub(super) fn time_axis(from: Timestamp, to: Timestamp, zone: &TimeZone) -> Vec<Tick> {
    let seconds = to.as_second().saturating_sub(from.as_second()).max(1);
    let fitting = STEPS.into_iter().find(|(step, ..)| seconds / step < MAX_MARKS);
    let Some((_, count, unit)) = fitting else { return Vec::new() };
    let whole_days = unit == Unit::Day;
    let form = if whole_days {
        "%d.%m"
    } else if matches!(unit, Unit::Second) {
        "%H:%M:%S"
    } else {
        "%H:%M"
    };
    let (mut marks, mut next) = (Vec::new(), first_mark(from.to_zoned(zone.clone()), count, unit));
    while let Some(mark) = next.filter(|mark| mark.timestamp() <= to && marks.len() < 12) {
        let after = mark.timestamp().as_second() - from.as_second();
        if after >= 0 {
            let at = Length::from_share(u64::try_from(after).unwrap_or_default(), u64::try_from(seconds).unwrap_or(1));
            marks.push(Tick::new(at, mark.strftime(form).to_string()));
        }
        next = mark.checked_add(step_span(count, unit)).ok().filter(|later| later.timestamp() > mark.timestamp());
    }
    marks
}

/// The last round time that is not after a moment; that of days is a midnight.
fn first_mark(at: Zoned, count: i64, unit: Unit) -> Option<Zoned> {
    if unit == Unit::Day {
        return at.start_of_day().ok();
    }
    at.round(ZonedRound::new().smallest(unit).increment(count).mode(jiff::RoundMode::Floor)).ok()
}

fn step_span(count: i64, unit: Unit) -> Span {
    match unit {
        Unit::Second => count.seconds(),
        Unit::Minute => count.minutes(),
        Unit::Hour => count.hours(),
        _ => count.days(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn axis_covers_its_numbers_in_round_steps(most in prop_oneof![0..20_000_u64, any::<u64>()]) {
            let (top, ticks) = number_axis(most, |number| number.to_string());
            prop_assert!(top >= most && (2..=6).contains(&ticks.len()), "{top} {ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
            prop_assert_eq!((ticks[0].at, ticks[ticks.len() - 1].at), (Length(0), Length(1_000)));
        }

        #[test]
        fn time_marks_are_few_and_ordered(
            from in 0..4_000_000_000_i64, seconds in prop_oneof![0..1_000_i64, 0..100_000_000_i64],
        ) {
            let [from, to] = [from, from + seconds].map(|second| Timestamp::from_second(second).unwrap());
            let marks = time_axis(from, to, &TimeZone::get("Europe/Kyiv").unwrap());
            prop_assert!(marks.len() <= 8, "{marks:?}");
            prop_assert!(marks.iter().all(|mark| mark.at <= Length(1_000)));
            prop_assert!(marks.windows(2).all(|pair| pair[0].at <= pair[1].at));
        }
    }

    #[test]
    fn marks_follow_the_time_zone_across_clock_changes() {
        let kyiv = TimeZone::get("Europe/Kyiv").unwrap();
        let marks = |from: &str, to: &str| -> Vec<String> {
            time_axis(from.parse().unwrap(), to.parse().unwrap(), &kyiv).into_iter().map(|mark| mark.label).collect()
        };
        assert_eq!(
            marks("2026-11-21T07:00:00Z", "2026-11-21T07:20:00Z"),
            ["09:00", "09:05", "09:10", "09:15", "09:20"]
        );
        assert_eq!(marks("2026-10-24T20:30:00Z", "2026-10-27T10:00:00Z"), ["25.10", "26.10", "27.10"]);
    }
}
