//! Suggestions for dates that are not in the order year, month, day.

use jiff::civil::{Date, Time};

/// The correction for a date such as `05.12.2031 10:00` or `12/5/2031`.
///
/// With slashes, the month can come first. If both readings are possible, it shows both.
#[must_use]
pub fn suggest_date_order(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let (date, clock) = (words.next()?, words.next());
    if words.next().is_some() {
        return None;
    }
    // Times of campaigns have no seconds.
    let time = match clock {
        Some(clock) => {
            let minutes = clock.match_indices(':').nth(1).map_or(clock, |(seconds, _)| &clock[..seconds]);
            Some(Time::strptime("%H:%M", minutes).ok()?)
        }
        None => None,
    };
    let separator = date.chars().find(|c| !c.is_ascii_digit()).filter(|c| "./-".contains(*c))?;
    let parts: Vec<&str> = date.split(separator).collect();
    let [first, second, third] = parts.as_slice() else { return None };
    let number = |part: &str| part.parse::<i8>().ok();
    let day_of = |year: &str, month: &str, day: &str| {
        (year.len() == 4).then_some(())?;
        Date::new(year.parse().ok()?, number(month)?, number(day)?).ok()
    };
    let written = |date: Date| match time {
        Some(time) => format!("`{date} {}`", time.strftime("%H:%M")),
        None => format!("`{date}`"),
    };
    let by_day = day_of(third, second, first);
    let by_month = day_of(third, first, second).filter(|date| separator != '.' && Some(*date) != by_day);
    let by_year = day_of(first, second, third).filter(|_| separator != '-');
    match (by_day.or(by_year), by_month) {
        (Some(by_day), Some(by_month)) => Some(format!(
            "write {} for {}, or {} for {}; the order is year, month, day",
            written(by_day),
            by_day.strftime("%-d %B"),
            written(by_month),
            by_month.strftime("%-d %B"),
        )),
        (Some(date), None) | (None, Some(date)) => {
            Some(format!("write {}; the order is year, month, day", written(date)))
        }
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misordered_date_is_shown_in_the_order_that_is_read() {
        let order = "; the order is year, month, day";
        for (text, expected) in [
            ("05.12.2031 10:00", "write `2031-12-05 10:00`"),
            ("5.12.2031 9:05:00", "write `2031-12-05 09:05`"),
            ("25.12.2031", "write `2031-12-25`"),
            ("25/12/2031", "write `2031-12-25`"),
            ("12/25/2031 20:00", "write `2031-12-25 20:00`"),
            ("2031/12/25 20:00", "write `2031-12-25 20:00`"),
            ("7/12/2031 20:00", "write `2031-12-07 20:00` for 7 December, or `2031-07-12 20:00` for 12 July"),
            ("07-12-2031", "write `2031-12-07` for 7 December, or `2031-07-12` for 12 July"),
            ("7/7/2031", "write `2031-07-07`"),
        ] {
            assert_eq!(suggest_date_order(text), Some(format!("{expected}{order}")), "{text}");
        }
        for other in [
            "",
            "2031-12-25",
            "2031-02-30",
            "tomorrow",
            "10:00",
            "32.12.2031",
            "1.13.2031",
            "5.12.31",
            "5.12.2031 25:00",
            "1.2.3.2031",
            "5.12.2031 10:00 EET",
            "5.12/2031",
            "٥.12.2031",
        ] {
            assert_eq!(suggest_date_order(other), None, "{other}");
        }
    }
}
