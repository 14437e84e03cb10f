//! Purchases from a shop's export, which `effect` compares with messages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use campaign_content::audience::{DecodedText, decode_table, parse_phone_number, read_columns, suggest_columns};
use campaign_core::domain::{Amount, Phone, Region, Row};
use campaign_core::finding::{Finding, rules};
use campaign_core::regular_file;

/// A file with one purchase per row, and how to read it.
#[derive(Clone, Debug)]
pub struct PurchaseFile {
    /// The file.
    pub path: PathBuf,
    /// The header of the phone column; `None` to find it by its values.
    pub phone: Option<String>,
    /// The header of the time column.
    pub at: String,
    /// The header of the amount column, if amounts are wanted.
    pub amount: Option<String>,
    /// The region of national numbers.
    pub region: Option<Region>,
    /// The time zone of local times.
    pub zone: TimeZone,
}

/// The purchases of a file.
#[derive(Clone, Debug, Default)]
pub struct Purchases {
    /// Sorted by number.
    list: Vec<Purchase>,
    /// Unusable rows by reason: how many, and the first.
    pub unusable: BTreeMap<&'static str, (u64, Row)>,
}

/// A purchase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purchase {
    phone: Phone,
    pub(super) time: PurchaseTime,
    pub(super) amount: Amount,
}

impl Purchases {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, lacks a column, or none of its rows can be used.
    pub fn read_file(file: &PurchaseFile) -> Result<Self, Vec<Finding>> {
        let path = file.path.as_path();
        let opened = || open_table(path, file.region);
        let table = opened()?;
        let reopened = table.reopen();
        let suggestion = suggest_columns(table, path).map_err(|finding| vec![*finding])?;
        let phone = file.phone.clone().or(suggestion.phone);
        let phone = phone.ok_or_else(|| {
            missing_column(path, "no column contains phone numbers", "name the column with `--phone COLUMN`")
        })?;
        let region = file.region.or(suggestion.region);
        let amounts = file.amount.as_deref();
        let mut purchases = Self::default();
        let headers = [phone.as_str(), file.at.as_str(), amounts.unwrap_or(&file.at)];
        let table = reopened.map_or_else(opened, Ok)?;
        let found = read_columns(table, path, headers, |row, cells| {
            match parse_purchase(cells, region, amounts.is_some(), &file.zone) {
                Ok(purchase) => purchases.list.push(purchase),
                Err(why) => purchases.unusable.entry(why).or_insert((0, row)).0 += 1,
            }
        });
        let found = found.map_err(|finding| vec![*finding])?;
        if let Some((header, _)) = headers.iter().zip(found).find(|(_, found)| !found) {
            return Err(missing_column(
                path,
                &format!("no column `{header}`"),
                "write the header exactly as in the file",
            ));
        }
        if purchases.list.is_empty() {
            let why =
                purchases.unusable.iter().map(|(why, (rows, first))| format!("{rows} × {why} (first in row {first})"));
            let why: Vec<String> = why.collect();
            return Err(missing_column(
                path,
                &format!("no usable rows: {}", why.join("; ")),
                "use another file or another column",
            ));
        }
        purchases.list.sort_by_key(|purchase| purchase.phone);
        Ok(purchases)
    }

    /// The number of usable purchases.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no usable purchases.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The purchases of a recipient.
    pub(super) fn find_by_phone(&self, phone: Phone) -> &[Purchase] {
        let first = self.list.partition_point(|purchase| purchase.phone < phone);
        let count = self.list[first..].partition_point(|purchase| purchase.phone == phone);
        &self.list[first..first + count]
    }
}

fn parse_purchase(
    [phone, at, paid]: [&str; 3],
    region: Option<Region>,
    has_amounts: bool,
    zone: &TimeZone,
) -> Result<Purchase, &'static str> {
    let phone = parse_phone_number(phone, region).map_err(|_| "no valid phone number")?;
    let moment =
        PurchaseTime::parse(at, zone).ok_or("no valid time (valid formats include 2026-12-01 10:00 and 01.12.2026)")?;
    let amount = match has_amounts {
        true => parse_amount(paid).ok_or("no valid amount")?,
        false => Amount::default(),
    };
    Ok(Purchase { phone, time: moment, amount })
}

/// Opens a file in any list format; `region` helps to detect its encoding.
fn open_table(path: &Path, region: Option<Region>) -> Result<DecodedText, Vec<Finding>> {
    let file = regular_file::open(path);
    let file = file.map_err(|error| {
        missing_column(path, &format!("cannot be read: {error}"), "check the path of the purchases file")
    })?;
    decode_table(file, path, region).map_err(|finding| vec![*finding])
}

fn missing_column(path: &Path, what: &str, help: &str) -> Vec<Finding> {
    vec![Finding::new(&rules::PURCHASES_UNUSABLE, format!("`{}`: {what}", path.display())).help(help)]
}

/// Formats of a date with a time, without the zone.
const DATE_TIME_FORMATS: [&str; 6] = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y, %H:%M:%S",
    "%d.%m.%Y, %H:%M",
];
/// Formats of a date without a time.
const DATE_FORMATS: [&str; 2] = ["%Y-%m-%d", "%d.%m.%Y"];

/// The time of a purchase: an instant, or a whole day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PurchaseTime {
    first: Timestamp,
    last: Timestamp,
}

impl PurchaseTime {
    /// Parses RFC 3339, or a local date with or without a time in that zone: `2026-12-01 10:00`, `01.12.2026`.
    pub(super) fn parse(cell: &str, zone: &TimeZone) -> Option<Self> {
        let cell = cell.trim();
        if let Ok(at) = cell.parse::<Timestamp>() {
            return Some(Self { first: at, last: at });
        }
        let spaced = cell.replacen('T', " ", 1);
        // Fractions of a second make no difference here.
        let spaced =
            spaced.split_once('.').filter(|(before, _)| before.contains(':')).map_or(spaced.as_str(), |(b, _)| b);
        let local = DATE_TIME_FORMATS.iter().find_map(|form| DateTime::strptime(form, spaced).ok());
        if let Some(local) = local {
            let at = zone.to_ambiguous_timestamp(local).compatible().ok()?;
            return Some(Self { first: at, last: at });
        }
        let day = DATE_FORMATS.iter().find_map(|form| Date::strptime(form, cell).ok())?;
        let start = |day: Date| Some(day.to_zoned(zone.clone()).ok()?.timestamp());
        Some(Self { first: start(day)?, last: start(day.checked_add(1.day()).ok()?)? - 1.nanosecond() })
    }

    /// Whether the purchase is, or can be, within that time after a message.
    pub(super) fn may_follow(self, at: Timestamp, within: jiff::SignedDuration) -> bool {
        self.last >= at && at.checked_add(within).is_ok_and(|end| self.first < end)
    }
}

/// Parses an amount with any separators, and with a currency before or after it.
///
/// A single separator before exactly three digits is a thousands separator.
pub(super) fn parse_amount(cell: &str) -> Option<Amount> {
    let outer = |c: char| !c.is_ascii_digit() && c != '-';
    let number: String = cell.trim_matches(outer).chars().filter(|c| !c.is_whitespace() && *c != '\'').collect();
    let decimal = number.rfind(['.', ',']).filter(|at| is_decimal(&number, *at));
    let (whole, fraction) = decimal.map_or((number.as_str(), ""), |at| (&number[..at], &number[at + 1..]));
    let mut groups = whole.split(['.', ',']);
    let first = groups.next().unwrap_or_default();
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || first.trim_start_matches('-').len() > 3 {
            return None;
        }
        digits.push_str(group);
    }
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{digits}{point}{fraction}").parse().ok()
}

/// Whether the last separator is a decimal separator.
fn is_decimal(number: &str, at: usize) -> bool {
    let (before, behind) = (number[..at].trim_start_matches('-'), &number[at + 1..]);
    let alone = !before.contains(['.', ',']);
    let repeated = before.contains(&number[at..=at]);
    !repeated && (behind.len() != 3 || before == "0" || !alone)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn kyiv() -> TimeZone {
        TimeZone::get("Europe/Kyiv").unwrap()
    }

    #[test]
    fn common_date_and_time_formats_are_parsed() {
        for cell in [
            "2026-12-01T08:00:00Z",
            "2026-12-01T10:00:00+02:00",
            "2026-12-01 10:00",
            "2026-12-01T10:00:00",
            "2026-12-01 10:00:00.000",
            " 01.12.2026 10:00 ",
            "1.12.2026 10:00:00",
            "01.12.2026, 10:00",
        ] {
            let read = PurchaseTime::parse(cell, &kyiv()).map(|moment| moment.first.to_string());
            assert_eq!(read.as_deref(), Some("2026-12-01T08:00:00Z"), "{cell:?}");
        }
        for cell in ["", "12/01/2026", "soon", "2026-13-01", "45000", "10:00"] {
            assert_eq!(PurchaseTime::parse(cell, &kyiv()), None, "{cell:?}");
        }
    }

    #[test]
    fn date_without_time_may_follow_a_message_of_that_day() {
        let sent: Timestamp = "2026-12-01T08:00:00Z".parse().unwrap();
        let week = SignedDuration::from_hours(7 * 24);
        for (cell, counts) in [
            ("30.11.2026", false),
            ("01.12.2026", true),
            ("2026-12-01 09:59", false),
            ("2026-12-01 10:00", true),
            ("2026-12-08 09:59", true),
            ("2026-12-08 10:00", false),
            ("08.12.2026", true),
            ("09.12.2026", false),
        ] {
            assert_eq!(PurchaseTime::parse(cell, &kyiv()).unwrap().may_follow(sent, week), counts, "{cell}");
        }
    }

    #[test]
    fn amounts_are_parsed_with_any_separators() {
        for (cell, digits) in [
            ("1234.50", "1234.50"),
            ("1234,5", "1234.5"),
            ("1 234,50", "1234.50"),
            ("1\u{a0}234,50 грн", "1234.50"),
            ("1\u{202f}234,50 ₴", "1234.50"),
            ("1,234.50", "1234.50"),
            ("1.234.567,89", "1234567.89"),
            ("1,234", "1234"),
            ("12.345.678", "12345678"),
            ("0,125", "0.125"),
            ("UAH 99", "99"),
            ("-5.00", "-5.00"),
            ("$1'000", "1000"),
        ] {
            assert_eq!(parse_amount(cell).map(Amount::to_json_digits).as_deref(), Some(digits), "{cell:?}");
        }
        for cell in ["", "free", "1.2.3,4,5", "--", "1-2"] {
            assert_eq!(parse_amount(cell).map(Amount::to_json_digits), None, "{cell:?}");
        }
    }
}
