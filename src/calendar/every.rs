//! Times in words become the pattern of a cron line: `weekdays 18:00` is `0 18 * * MON-FRI`.

use jiff::civil::Time;

/// What may be written.
pub(super) const HELP: &str = "write days and a time, as in `Mon 10:00`, `Mon-Fri 10:00`, `day 9:30`, `weekdays \
                               18:00`, `weekend 12:00`, `1st 10:00` or `last day 18:00`; put several days in quotes, \
                               as in `\"Mon, Thu 10:00\"` or `\"1st, 15th 10:00\"`";

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// The pattern of five fields that words mean.
pub(super) fn parse_pattern(text: &str) -> Result<String, String> {
    let lower = text.trim().to_lowercase();
    let (days, time) = lower.rsplit_once(char::is_whitespace).ok_or("needs both days and a time")?;
    let days = days.trim().trim_end_matches(" at").trim();
    let time = Time::strptime("%H:%M", time).map_err(|_| format!("ends with `{time}`, which is not a valid time"))?;
    Ok(format!("{} {} {}", time.minute(), time.hour(), parse_day_fields(days)?))
}

/// The fields of day of the month, month and day of the week.
fn parse_day_fields(days: &str) -> Result<String, String> {
    match days {
        "day" | "days" | "daily" => return Ok("* * *".to_owned()),
        "weekday" | "weekdays" => return Ok("* * MON-FRI".to_owned()),
        "weekend" | "weekends" => return Ok("* * SAT,SUN".to_owned()),
        "last" | "last day" => return Ok("L * *".to_owned()),
        _ => {}
    }
    let items: Vec<&str> = days.split(',').map(str::trim).collect();
    let of_week: Option<Vec<String>> = items.iter().map(|item| parse_weekdays(item)).collect();
    if let Some(of_week) = of_week {
        return Ok(format!("* * {}", of_week.join(",")));
    }
    let of_month: Option<Vec<String>> = items.iter().map(|item| parse_day_of_month(item)).collect();
    match of_month {
        Some(of_month) => Ok(format!("{} * *", of_month.join(","))),
        None => Err(format!("contains unknown days: `{days}`")),
    }
}

/// A day of the week or a range of them, as cron writes it.
fn parse_weekdays(item: &str) -> Option<String> {
    match item.split_once('-') {
        // Cron has no range over the end of the week.
        Some((first, last)) => {
            let (first, last) = (parse_weekday(first.trim())?, parse_weekday(last.trim())?);
            let days = (0..7).map(|step| (first + step) % 7).take((last + 7 - first) % 7 + 1);
            Some(days.map(cron_weekday).collect::<Vec<_>>().join(","))
        }
        None => parse_weekday(item).map(cron_weekday),
    }
}

/// The number of a day of the week by at least three letters of its name, Monday being 0.
fn parse_weekday(name: &str) -> Option<usize> {
    let singular = name.strip_suffix('s').filter(|name| name.ends_with("day")).unwrap_or(name);
    WEEKDAYS.iter().position(|day| singular.len() >= 3 && day.starts_with(singular))
}

fn cron_weekday(day: usize) -> String {
    WEEKDAYS[day][..3].to_uppercase()
}

/// A day of the month: `1st`, `2nd`, `15th`.
fn parse_day_of_month(item: &str) -> Option<String> {
    let digits = item.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
    let number: u8 = digits.parse().ok()?;
    let ending = match (number % 10, number) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    let fits = (1..=31).contains(&number) && !digits.starts_with('+') && item == format!("{number}{ending}");
    fits.then(|| number.to_string())
}
