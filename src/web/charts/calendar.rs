//! A calendar: days from one on, week by week, each with what is due on it.

use std::collections::BTreeMap;

use jiff::ToSpan as _;
use jiff::civil::{Date, Weekday};
use serde::Serialize;

/// A calendar.
#[derive(Clone, Debug, Serialize)]
pub struct CalendarView {
    /// The days of the week, by their numbers from 1, which is Monday.
    pub days: [String; 7],
    /// The weeks, each from Monday to Sunday; nothing on days outside of it.
    pub weeks: Vec<Vec<Option<CalendarDay>>>,
}

/// A day of a calendar.
#[derive(Clone, Debug, Serialize)]
pub struct CalendarDay {
    /// The day of the month.
    pub day: i8,
    /// The day of the week, by its number from 1, which is Monday.
    pub weekday: String,
    /// Its month, by which it is named.
    pub month: String,
    /// As programs write it.
    pub date: String,
    /// Whether its month is said with it: it is the first day that is shown, or the first of its month.
    pub named: bool,
    /// What is due on it, in its order.
    pub due: Vec<String>,
}

/// A calendar of so many days; `due` has what is due on each.
#[must_use]
pub fn build_calendar(from: Date, days: u16, due: &BTreeMap<Date, Vec<String>>) -> CalendarView {
    let blank = usize::try_from(from.weekday().since(Weekday::Monday)).unwrap_or_default();
    let mut cells: Vec<Option<CalendarDay>> = (0..blank).map(|_| None).collect();
    for after in 0..i64::from(days) {
        let Ok(date) = from.checked_add(after.days()) else { break };
        cells.push(Some(CalendarDay {
            day: date.day(),
            weekday: date.weekday().to_monday_one_offset().to_string(),
            month: date.month().to_string(),
            date: date.to_string(),
            named: after == 0 || date.day() == 1,
            due: due.get(&date).cloned().unwrap_or_default(),
        }));
    }
    cells.resize_with(cells.len().next_multiple_of(7), || None);
    let days = [1, 2, 3, 4, 5, 6, 7].map(|day: u8| day.to_string());
    CalendarView { days, weeks: cells.chunks(7).map(<[_]>::to_vec).collect() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_day_appears_once_under_its_weekday(from in 0..20_000_i64, days in 1..80_u16) {
            let from = Date::constant(2000, 1, 1) + from.days();
            let due = BTreeMap::from([(from, vec!["<b>".to_owned()])]);
            let view = build_calendar(from, days, &due);
            prop_assert!(view.weeks.iter().all(|week| week.len() == 7));
            let mut shown = 0;
            for (place, day) in view.weeks.iter().flat_map(|week| week.iter().enumerate()) {
                let Some(day) = day else { continue };
                let date: Date = day.date.parse().unwrap();
                prop_assert_eq!(date, from + i64::from(shown).days());
                prop_assert_eq!(i8::try_from(place).unwrap() + 1, date.weekday().to_monday_one_offset());
                prop_assert_eq!(day.due.len(), usize::from(shown == 0));
                shown += 1;
            }
            prop_assert_eq!(shown, days);
        }
    }
}
