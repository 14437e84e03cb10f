//! Effect of a campaign: purchases by recipients after a message, from a shop's export, compared with a holdout group.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use roaring::RoaringTreemap;

use super::listing::Listing;
use super::row_records::RowRecord;
use super::{ResultsError, RunResults, is_owned};
use crate::check::HOLDOUT;
use campaign_content::audience::{DecodedText, decode_table, parse_phone_number, read_columns, suggest_columns};
use campaign_core::calendar::EARLIEST_YEAR;
use campaign_core::domain::{Amount, Phone, Region, Row, format_count};
use campaign_core::finding::{Finding, join_names, rules};
use campaign_core::regular_file;
use campaign_ledger::{Ledger, RowState, Run};

/// The purchases of one group of recipients.
#[derive(Clone, Debug, Default)]
pub struct ArmFigures {
    /// The recipients of the group, and how many of them bought something in time.
    pub buyers: Proportion,
    /// The number of their purchases.
    pub purchases: u64,
    /// The total amount.
    pub amount: Amount,
}

/// The conclusion from comparing recipients with the holdout group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectVerdict {
    /// The share of buyers is higher among recipients of a message than in the holdout group.
    More,
    /// The share of buyers is lower among recipients of a message than in the holdout group.
    Fewer,
    /// The difference can be chance.
    Unproven,
    /// A group is too small for a conclusion.
    TooFew,
}

/// The smallest group whose share is meaningful.
const MIN_GROUP_SIZE: u64 = 30;

/// The purchases after the messages of an edition, by variant and for the holdout group.
#[derive(Clone, Debug, Default)]
pub struct CampaignEffect {
    /// The recipients who got a message, by variant; `None` without variants.
    pub sent: BTreeMap<Option<String>, ArmFigures>,
    /// The holdout group, if there is one.
    pub holdout: Option<ArmFigures>,
    /// Recipients whose message is not sent yet.
    pub waiting: u64,
}

impl ArmFigures {
    /// Adds a recipient with the purchases that were, or might have been, made within a period after `since`.
    fn add_recipient(&mut self, phone: Phone, since: Timestamp, purchases: &Purchases, within: SignedDuration) {
        let counted = purchases.find_by_phone(phone).iter().filter(|purchase| purchase.time.can_follow(since, within));
        let purchases_before = self.purchases;
        for purchase in counted {
            self.purchases += 1;
            self.amount = self.amount.saturating_add(purchase.amount);
        }
        self.buyers.total += 1;
        self.buyers.successes += u64::from(self.purchases > purchases_before);
    }
}

impl EffectVerdict {
    /// Compares recipients of a message with the holdout group.
    pub fn from_proportions(sent: Proportion, holdout: Proportion) -> Self {
        let difference = sent.difference_interval(holdout);
        match sent.total.min(holdout.total) {
            ..MIN_GROUP_SIZE => Self::TooFew,
            _ if difference.contains_zero() => Self::Unproven,
            _ if difference.low > 0.0 => Self::More,
            _ => Self::Fewer,
        }
    }

    /// The verdict's name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Fewer => "fewer",
            Self::Unproven => "unproven",
            Self::TooFew => "too_few",
        }
    }
}

impl CampaignEffect {
    /// Counts purchases within a period after the message, over the runs of an edition, oldest run first. For the
    /// holdout group, the period starts with the run.
    ///
    /// A recipient counts as soon as a message was sent, whether or not it was delivered. For the holdout group, it is
    /// unknown whose messages would have arrived.
    ///
    /// # Errors
    /// If the ledger or the frozen inputs of a run cannot be read.
    pub async fn measure(
        ledger: &dyn Ledger,
        runs: &[Run],
        purchases: &Purchases,
        within: SignedDuration,
    ) -> Result<Self, ResultsError> {
        let mut effect = Self::default();
        let (mut sent, mut held_out) = (RoaringTreemap::new(), BTreeMap::new());
        for run in runs {
            let results = RunResults::open(ledger, run, is_owned(ledger, run).await?).await?;
            for listing in results.open_listings().await? {
                let began_at = run.began_at;
                let visit = |recipient: ObservedRecipient<'_>| match recipient.decision {
                    RunDecision::Sent(at) if sent.insert(recipient.phone.to_u64()) => {
                        let arm = effect.sent.entry(recipient.variant.map(str::to_owned)).or_default();
                        arm.add_recipient(recipient.phone, at, purchases, within);
                    }
                    RunDecision::Sent(_) => {}
                    RunDecision::HeldOut => {
                        held_out.entry(recipient.phone).or_insert(began_at);
                    }
                    RunDecision::Waiting => effect.waiting += 1,
                };
                for_each_recipient(listing, visit).await?;
            }
        }
        for (phone, since) in held_out {
            if !sent.contains(phone.to_u64()) {
                effect.holdout.get_or_insert_default().add_recipient(phone, since, purchases, within);
            }
        }
        Ok(effect)
    }
}

/// A recipient and the run's decision.
struct ObservedRecipient<'a> {
    phone: Phone,
    variant: Option<&'a str>,
    decision: RunDecision,
}

/// The decision of a run about a recipient.
enum RunDecision {
    /// A message was sent, most recently at this time.
    Sent(Timestamp),
    /// A message is planned but not sent yet.
    Waiting,
    /// The recipient is in the holdout group.
    HeldOut,
}

async fn for_each_recipient(
    listing: Listing<'_>,
    mut visit: impl FnMut(ObservedRecipient<'_>),
) -> Result<(), ResultsError> {
    let (region, activity) = (listing.brief.region, listing.activity());
    let (allocation, arms) = (listing.brief.variant_allocation(), listing.brief.list_arms());
    let reader = listing.open_reader()?;
    let columns = reader.header().phones().clone();
    // The effect counts only this run's messages.
    let mut rows = Listing { earlier: None, ..listing }.into_rows(reader)?;
    while let Some((chunk, facts)) = rows.next_chunk().await? {
        for (recipient, facts) in chunk.iter().zip(&facts) {
            let held_out = facts.exclusion.as_ref().is_some_and(|exclusion| exclusion.reason == HOLDOUT);
            let decision = match (&facts.record, facts.state(activity)) {
                (Some(record), _) if let Some(at) = find_sending_time(record) => RunDecision::Sent(at),
                (None, RowState::Skipped) if held_out => RunDecision::HeldOut,
                (_, RowState::Planned) => RunDecision::Waiting,
                _ => continue,
            };
            if let Some(phone) = facts.phone(recipient.fields, &columns, region) {
                visit(ObservedRecipient {
                    phone,
                    variant: arms.get(allocation.assign_variant(phone)).and_then(|arm| arm.name),
                    decision,
                });
            }
        }
    }
    rows.finish().await.map(drop)
}

/// The time when the message of a row was sent last. `None` if it was certainly not sent.
fn find_sending_time(record: &RowRecord) -> Option<Timestamp> {
    let is_last_sent = match record.state {
        // The message is to be sent again but was not sent yet, so the previous attempt counts.
        RowState::Planned | RowState::Skipped => {
            record.settled.as_ref().is_some_and(|(_, outcome)| RowState::from_outcome(outcome).is_guarded())
        }
        state => state.is_guarded(),
    };
    // The last attempt can be a rejected retry of an accepted message.
    if is_last_sent { Some(record.begun_at) } else { record.last_accepted_at }
}

/// The 97.5 % quantile of the normal distribution, for two-sided 95 % intervals.
const Z: f64 = 1.959_963_984_540_054;

/// A group, and the number of its members that succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proportion {
    /// The size of the group.
    pub total: u64,
    /// The number of members who succeeded; at most `total`.
    pub successes: u64,
}

/// A 95 % confidence interval: of a share from 0 to 1, or of a difference from -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Proportion {
    /// The share of successes, 0 to 1; 0 for an empty group.
    pub fn share(self) -> f64 {
        if self.total == 0 { 0.0 } else { self.successes as f64 / self.total as f64 }
    }

    /// The score interval of E. B. Wilson (1927), which also holds for small groups and for shares near 0 and 1.
    pub fn wilson_interval(self) -> Interval {
        if self.total == 0 {
            return Interval { low: 0.0, high: 1.0 };
        }
        let (n, p) = (self.total as f64, self.share());
        let scale = 1.0 + Z * Z / n;
        let middle = (p + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        // Rounding can put a bound on the wrong side of a share of 0 or 1.
        Interval { low: (middle - half).max(0.0).min(p), high: (middle + half).min(1.0).max(p) }
    }

    /// The confidence interval of this share minus the other share (R. G. Newcombe 1998, method 10), computed from both
    /// Wilson intervals.
    pub fn difference_interval(self, other: Self) -> Interval {
        let (first, second) = (self.wilson_interval(), other.wilson_interval());
        let (p, q) = (self.share(), other.share());
        let low = (p - q) - ((p - first.low).powi(2) + (second.high - q).powi(2)).sqrt();
        let high = (p - q) + ((first.high - p).powi(2) + (q - second.low).powi(2)).sqrt();
        Interval { low: low.max(-1.0), high: high.min(1.0) }
    }
}

impl Interval {
    /// Whether the interval contains zero, which means that no difference is proven.
    pub fn contains_zero(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

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
    /// Unusable rows by reason: their number, and the first row.
    pub unusable: BTreeMap<&'static str, (u64, Row)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Purchase {
    phone: Phone,
    pub(super) time: PurchaseTime,
    pub(super) amount: Amount,
}

impl Purchases {
    /// Reads a file of purchases.
    ///
    /// # Errors
    /// If the file cannot be read or lacks a column, or if none of its rows can be used.
    pub fn read_file(file: &PurchaseFile) -> Result<Self, Vec<Finding>> {
        let path = file.path.as_path();
        let open = || open_table(path, file.region);
        let table = open()?;
        let reopened = table.reopen();
        let suggestion = suggest_columns(table, path).map_err(|finding| vec![*finding])?;
        if let (None, Some(first)) =
            (&file.phone, suggestion.phone.as_deref().filter(|_| !suggestion.other_phones.is_empty()))
        {
            let columns = [first].into_iter().chain(suggestion.other_phones.iter().map(String::as_str));
            let problem = format!("phone numbers are in the columns {}", join_names(columns));
            return Err(unusable_purchases(path, &problem, "name the column of the buyers with `--phone COLUMN`"));
        }
        let phone = file.phone.clone().or(suggestion.phone);
        let phone = phone.ok_or_else(|| {
            unusable_purchases(path, "no column contains phone numbers", "name the column with `--phone COLUMN`")
        })?;
        let region = file.region.or(suggestion.region);
        let amounts = file.amount.as_deref();
        let mut purchases = Self::default();
        let headers = [phone.as_str(), file.at.as_str(), amounts.unwrap_or(&file.at)];
        let table = reopened.map_or_else(open, Ok)?;
        let are_found = read_columns(table, path, headers, |row, cells| {
            match parse_purchase(cells, region, amounts.is_some(), &file.zone) {
                Ok(purchase) => purchases.list.push(purchase),
                Err(reason) => purchases.unusable.entry(reason).or_insert((0, row)).0 += 1,
            }
        });
        let are_found = are_found.map_err(|finding| vec![*finding])?;
        if let Some((header, _)) = headers.iter().zip(are_found).find(|(_, is_found)| !is_found) {
            return Err(unusable_purchases(
                path,
                &format!("no column `{header}`"),
                "write the header exactly as in the file",
            ));
        }
        if purchases.list.is_empty() {
            let reasons = purchases.unusable.iter();
            let reasons: Vec<String> = reasons
                .map(|(reason, (rows, first))| {
                    format!("{} with {reason} (first in row {first})", format_count(*rows, "row"))
                })
                .collect();
            return Err(unusable_purchases(
                path,
                &format!("no usable rows: {}", reasons.join("; ")),
                "use another file or another column",
            ));
        }
        purchases.list.sort_by_key(|purchase| purchase.phone);
        Ok(purchases)
    }

    /// The number of usable purchases.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether no purchase is usable.
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

/// Parses the cells of the phone, time and amount columns. Returns the reason if the row cannot be used.
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
        unusable_purchases(path, &format!("cannot be read: {error}"), "check the path of the purchases file")
    })?;
    decode_table(file, path, region).map_err(|finding| vec![*finding])
}

fn unusable_purchases(path: &Path, problem: &str, help: &str) -> Vec<Finding> {
    vec![Finding::new(&rules::PURCHASES_UNUSABLE, format!("`{}`: {problem}", path.display())).help(help)]
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
    /// Parses RFC 3339, or a local date in `zone`, with or without a time: `2026-12-01 10:00`, `01.12.2026`. A
    /// date without a time covers the whole day. Returns `None` if the time is invalid or before 1990.
    pub(super) fn parse(cell: &str, zone: &TimeZone) -> Option<Self> {
        Self::parse_any(cell.trim(), zone).filter(|time| time.first.to_zoned(zone.clone()).year() >= EARLIEST_YEAR)
    }

    /// Parses a time in any year.
    fn parse_any(cell: &str, zone: &TimeZone) -> Option<Self> {
        if let Ok(at) = cell.parse::<Timestamp>() {
            return Some(Self { first: at, last: at });
        }
        let spaced = cell.replacen('T', " ", 1);
        // Fractions of a second make no difference here.
        let spaced = spaced
            .split_once('.')
            .filter(|(before, _)| before.contains(':'))
            .map_or(spaced.as_str(), |(before, _)| before);
        let local = DATE_TIME_FORMATS.iter().find_map(|form| DateTime::strptime(form, spaced).ok());
        if let Some(local) = local {
            let at = zone.to_ambiguous_timestamp(local).compatible().ok()?;
            return Some(Self { first: at, last: at });
        }
        let day = DATE_FORMATS.iter().find_map(|form| Date::strptime(form, cell).ok())?;
        let find_day_start = |day: Date| Some(day.to_zoned(zone.clone()).ok()?.timestamp());
        Some(Self {
            first: find_day_start(day)?,
            last: find_day_start(day.checked_add(1.day()).ok()?)? - 1.nanosecond(),
        })
    }

    /// Whether the purchase was, or might have been, made after a message sent at `at` and before `within` had passed.
    pub(super) fn can_follow(self, at: Timestamp, within: jiff::SignedDuration) -> bool {
        self.last >= at && at.checked_add(within).is_ok_and(|end| self.first < end)
    }
}

/// Parses an amount with any separators, and with a currency before or after it. `(5.00)` is negative, and `.50` is a
/// half.
///
/// A single separator before exactly three digits is a thousands separator.
pub(super) fn parse_amount(cell: &str) -> Option<Amount> {
    let first = cell.find(|c: char| c.is_ascii_digit())?;
    let last = cell.rfind(|c: char| c.is_ascii_digit())? + 1;
    let (before, digits, after) = (&cell[..first], &cell[first..last], &cell[last..]);
    // Accounting programs write a negative amount in parentheses.
    let is_negative = before.contains(['-', '\u{2212}']) || before.contains('(') && after.contains(')');
    if after.contains(['-', '\u{2212}']) {
        return None;
    }
    // The point in `.50` is a decimal point, unlike the point in `Rs.50`.
    let begins_with_point = before.strip_suffix(['.', ',']).is_some_and(|rest| !rest.ends_with(char::is_alphabetic));
    let sign = if is_negative { "-" } else { "" };
    let zero = if begins_with_point { "0." } else { "" };
    let number = format!("{sign}{zero}{digits}");
    let number: String = number.chars().filter(|c| !c.is_whitespace() && *c != '\'').collect();
    let decimal = number.rfind(['.', ',']).filter(|at| is_decimal_separator(&number, *at));
    let (integer, fraction) = decimal.map_or((number.as_str(), ""), |at| (&number[..at], &number[at + 1..]));
    let mut groups = integer.split(['.', ',']);
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
fn is_decimal_separator(number: &str, at: usize) -> bool {
    let (before, after) = (number[..at].trim_start_matches('-'), &number[at + 1..]);
    let is_only_separator = !before.contains(['.', ',']);
    let is_repeated = before.contains(&number[at..=at]);
    !is_repeated && (after.len() != 3 || before == "0" || !is_only_separator)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_close(found: f64, known: f64) -> bool {
        (found - known).abs() < 0.000_05
    }

    #[test]
    fn intervals_match_published_examples() {
        // Newcombe 1998, Statistics in Medicine 17: the Wilson intervals (pp. 857–872), and the intervals of
        // differences (pp. 873–890).
        for (successes, total, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let Interval { low: l, high: h } = Proportion { total, successes }.wilson_interval();
            assert!(is_close(l, low) && is_close(h, high), "{successes} of {total}: {l} to {h}");
        }
        for (one, other, low, high) in
            [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((10, 10), (0, 10), 0.6075, 1.0)]
        {
            let [one, other] = [one, other].map(|(successes, total)| Proportion { total, successes });
            let Interval { low: l, high: h } = one.difference_interval(other);
            assert!(is_close(l, low) && is_close(h, high), "{one:?} above {other:?}: {l} to {h}");
        }
    }

    proptest! {
        #[test]
        fn interval_contains_the_share_and_narrows_with_sample_size(total in 1_u64..5_000, part in 0.0_f64..=1.0) {
            let successes = (total as f64 * part) as u64;
            let few = Proportion { total, successes };
            let many = Proportion { total: total * 10, successes: successes * 10 };
            let (wide, narrow) = (few.wilson_interval(), many.wilson_interval());
            prop_assert!(0.0 <= wide.low && wide.low <= few.share() && few.share() <= wide.high && wide.high <= 1.0);
            prop_assert!(narrow.high - narrow.low < wide.high - wide.low);
            prop_assert!(few.difference_interval(few).contains_zero());
        }
    }
}

#[cfg(test)]
mod purchases_tests {
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
        for cell in ["", "12/01/2026", "01.12.26", "01.12.26 10:00", "soon", "2026-13-01", "45000", "10:00"] {
            assert_eq!(PurchaseTime::parse(cell, &kyiv()), None, "{cell:?}");
        }
    }

    #[test]
    fn purchase_counts_from_the_send_time_to_the_end_of_the_window() {
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
            assert_eq!(PurchaseTime::parse(cell, &kyiv()).unwrap().can_follow(sent, week), counts, "{cell}");
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
            ("(5.00)", "-5.00"),
            ("\u{2212}5.00", "-5.00"),
            (".50", "0.50"),
            ("$.99", "0.99"),
            ("Rs.50", "50"),
            ("100 грн.", "100"),
        ] {
            assert_eq!(parse_amount(cell).map(Amount::to_json_digits).as_deref(), Some(digits), "{cell:?}");
        }
        for cell in ["", "free", "1.2.3,4,5", "--", "1-2", "5.00-"] {
            assert_eq!(parse_amount(cell).map(Amount::to_json_digits), None, "{cell:?}");
        }
    }
}
