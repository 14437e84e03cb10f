//! Reasons to skip a recipient in a survey: earlier messages, opt-outs, missing consent, cancelled rows, caps and
//! countries. This module does no I/O.
//!
//! With `duplicates: allow`, rows of the current list are compared with those of earlier runs by number and text.

use std::ops::Range;

use roaring::RoaringBitmap;

use campaign_core::calendar::SentByDay;
use campaign_core::domain::{ConsentVerdict, CountrySet, Phone, Region, Row};
use campaign_ledger::{CANCELLED_EARLIER, CAPPED, COUNTRY, ExcludedRows, NumberSet, OPTED_OUT};

/// The skip reason if the number already has a message.
pub const ALREADY_SENT: &str = "already sent";
/// The skip reason if the number has a message but, with `duplicates: allow`, it is unknown for which row.
pub const MIGHT_BE_SENT: &str = "might be sent already";
/// The skip reason if an earlier row has the same number.
pub const DUPLICATE: &str = "duplicate number";

/// The skip reason if an earlier message excludes the recipient.
pub const EXCLUDED: &str = "excluded";

/// The skip reason if the recipient is in the control group.
pub const HOLDOUT: &str = "holdout";

/// The skip reason if the unfinished run does not send the row again, although no message was sent.
pub const REJECTED_IN_RUN: &str = "rejected or not sent in the unfinished run";

/// The recipients that a survey skips, by number.
#[derive(Clone, Debug, Default)]
pub struct SurveyExclusions {
    /// Recipients who already have a message of this campaign and edition.
    pub already_sent: NumberSet,
    /// The rows of these recipients that have the message or were cancelled, with `duplicates: allow`. `None` stands
    /// for all their rows.
    pub rows: Option<SentRows>,
    /// Recipients who opted out of the campaign's messages.
    pub opted_out: NumberSet,
    /// Recipients whom `stop --for-good` cancelled in an earlier run of this edition.
    pub cancelled: NumberSet,
    /// Recipients who reached the cap of recent messages.
    pub capped: CappedNumbers,
    /// Recipients whom an earlier message excludes.
    pub excluded: NumberSet,
    /// The countries that messages may reach. `None` for all.
    pub countries: Option<CountrySet>,
    /// The messages of the edition that count towards `per_day`.
    pub sent_by_day: SentByDay,
    /// The rows that a resumed run does not send, with their reasons. Empty for a new run.
    pub settled: ExcludedRows,
}

/// The numbers that reach a message cap, by the number of messages of the campaign that they already get.
#[derive(Clone, Debug, Default)]
pub struct CappedNumbers {
    /// The numbers that get no further message after 0, 1, 2… messages of the campaign.
    reached: Vec<NumberSet>,
    /// The maximum number of messages that a number can get. `None` without caps.
    cap: Option<u32>,
}

impl CappedNumbers {
    /// Creates the set from the numbers that get no further message after 0, 1, 2… messages, and the maximum number of
    /// messages for any number.
    pub fn new(reached: Vec<NumberSet>, cap: u32) -> Self {
        Self { reached, cap: Some(cap) }
    }

    /// Whether there is no cap.
    pub fn is_empty(&self) -> bool {
        self.cap.is_none()
    }

    /// Whether a number that already has this many planned messages must get no more.
    pub fn excludes(&self, phone: Phone, planned: u32) -> bool {
        let reached = self.reached.get(planned as usize).or(self.reached.last());
        self.cap.is_some_and(|cap| planned >= cap) || reached.is_some_and(|numbers| numbers.contains(phone))
    }
}

impl SurveyExclusions {
    /// Whether messages may reach a country. An unknown country is allowed only if all countries are allowed.
    pub fn allows_country(&self, country: Option<Region>) -> bool {
        self.countries.as_ref().is_none_or(|countries| countries.contains(country))
    }

    /// Finds the first reason to skip a row. The reason depends on its phone number, its country, its consent, and the
    /// number of messages that its number already gets. Without `row`, finds the first reason in a new round, in which
    /// earlier runs of the edition do not count.
    pub fn find_skip_reason(
        &self,
        row: Option<Row>,
        phone: Phone,
        country: Option<Region>,
        consent: ConsentVerdict,
        planned: u32,
    ) -> Option<&'static str> {
        let has_message = |row| match &self.rows {
            None => Some(ALREADY_SENT),
            Some(rows) => rows.find_skip_reason(row),
        };
        let is_cancelled = |row| self.rows.as_ref().is_none_or(|rows| rows.is_cancelled(row));
        match row.filter(|_| self.already_sent.contains(phone)).and_then(has_message) {
            Some(reason) => Some(reason),
            None if self.opted_out.contains(phone) => Some(OPTED_OUT),
            None if consent != ConsentVerdict::Given => consent.skip_reason(),
            None if self.cancelled.contains(phone) && row.is_some_and(is_cancelled) => Some(CANCELLED_EARLIER),
            None if self.excluded.contains(phone) => Some(EXCLUDED),
            None if self.capped.excludes(phone, planned) => Some(CAPPED),
            None if !self.allows_country(country) => Some(COUNTRY),
            None => None,
        }
    }
}

/// The hash of the operation of a row, without its identifier.
pub type TextHash = [u8; 8];

/// The outcome of a row in an earlier run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierOutcome {
    /// The row has a message, or might have one.
    Sent,
    /// `stop --for-good` cancelled the row.
    Cancelled,
    /// No message was sent to the row.
    NotSent,
}

/// A row of the list of an earlier run.
#[derive(Clone, Copy, Debug)]
pub struct EarlierRow {
    /// The recipient's number.
    pub phone: Phone,
    /// The text of the message. `None` if it cannot be rendered now.
    pub text: Option<TextHash>,
    /// The outcome of the message.
    pub outcome: EarlierOutcome,
}

/// A row of the current list.
#[derive(Clone, Copy, Debug)]
pub struct CurrentRow {
    /// The recipient's number.
    pub phone: Phone,
    /// The text that the earlier run would have for the row. `None` if it cannot be rendered.
    pub text: Option<TextHash>,
    /// The row, which the comparison can record as sent, cancelled or unclear.
    pub row: Row,
}

/// The known facts about an earlier run.
#[derive(Debug, Default)]
pub struct EarlierRun {
    /// The readable rows of its list.
    pub rows: Vec<EarlierRow>,
    /// The numbers that have, or might have, a message of this run.
    pub sent: NumberSet,
    /// The numbers that `stop --for-good` cancelled in this run.
    pub cancelled: NumberSet,
}

/// The rows of a list that have a message of an earlier run.
#[derive(Clone, Debug, Default)]
pub struct SentRows {
    /// The SHA-256 of the compared list, in hexadecimal.
    pub sha256: String,
    /// All rows that were compared.
    compared: RoaringBitmap,
    sent: RoaringBitmap,
    unclear: RoaringBitmap,
    cancelled: RoaringBitmap,
}

impl SentRows {
    /// Creates an empty comparison for the list with this SHA-256.
    pub fn for_list(sha256: String) -> Self {
        Self { sha256, ..Self::default() }
    }

    /// The reason to skip a row whose phone number already has a message. `None` if the message was not for this row.
    pub(super) fn find_skip_reason(&self, row: Row) -> Option<&'static str> {
        let row = row.get();
        if self.sent.contains(row) {
            return Some(ALREADY_SENT);
        }
        (self.unclear.contains(row) || !self.compared.contains(row)).then_some(MIGHT_BE_SENT)
    }

    /// Whether a row counts as cancelled: `stop --for-good` cancelled it, or it was never compared with an earlier run.
    pub(super) fn is_cancelled(&self, row: Row) -> bool {
        self.cancelled.contains(row.get()) || !self.compared.contains(row.get())
    }

    /// Compares the rows of a list with the rows of an earlier run. Sorts both sets of rows.
    pub fn compare_run(&mut self, mut run: EarlierRun, listed: &mut [CurrentRow]) {
        listed.sort_unstable_by_key(|listed| (listed.phone, listed.text));
        run.rows.sort_unstable_by_key(|earlier| (earlier.phone, earlier.text));
        for number_rows in listed.chunk_by(|row, next| row.phone == next.phone) {
            let Some(phone) = number_rows.first().map(|listed| listed.phone) else { continue };
            let earlier = &run.rows[find_equal_range(&run.rows, |earlier| earlier.phone.cmp(&phone))];
            let has = |outcome| earlier.iter().any(|earlier| earlier.outcome == outcome);
            // The rows of these messages are unknown: the run was purged, or its copies are damaged.
            let unlisted = UnlistedMessages {
                sent: run.sent.contains(phone) && !has(EarlierOutcome::Sent),
                cancelled: run.cancelled.contains(phone) && !has(EarlierOutcome::Cancelled),
            };
            self.compare_number(earlier, number_rows, unlisted);
        }
    }

    /// Compares the listed rows of one phone number with an earlier run's rows of this number.
    fn compare_number(&mut self, earlier: &[EarlierRow], listed: &[CurrentRow], unlisted: UnlistedMessages) {
        let count_listed_rows = |text: TextHash| find_equal_range(listed, |listed| listed.text.cmp(&Some(text))).len();
        let texts: Vec<&[EarlierRow]> = earlier.chunk_by(|row, next| row.text == next.text).collect();
        // An earlier row without a counterpart in the list was removed or changed. A changed row can be any listed row
        // without a counterpart.
        let is_gone = |outcome| {
            let is_missing =
                |rows: &&&[EarlierRow]| rows[0].text.is_none_or(|text| rows.len() > count_listed_rows(text));
            texts.iter().filter(is_missing).any(|rows| rows.iter().any(|earlier| earlier.outcome == outcome))
        };
        let unclear = unlisted.sent || is_gone(EarlierOutcome::Sent);
        let cancelled = unlisted.cancelled || is_gone(EarlierOutcome::Cancelled);
        for rows in listed.chunk_by(|row, next| row.text == next.text) {
            let text = rows.first().and_then(|listed| listed.text);
            let same_text = text
                .map_or(&[][..], |text| &earlier[find_equal_range(earlier, |earlier| earlier.text.cmp(&Some(text)))]);
            let has = |outcome| same_text.iter().any(|earlier| earlier.outcome == outcome);
            // If more rows than before have this text, one of them can be a changed row.
            let is_known = !same_text.is_empty() && rows.len() <= same_text.len();
            let row_numbers = || rows.iter().map(|listed| listed.row.get());
            self.compared.extend(row_numbers());
            let is_accounted_for = is_known && !unlisted.sent && !unlisted.cancelled;
            if has(EarlierOutcome::Sent) {
                self.sent.extend(row_numbers());
            } else if has(EarlierOutcome::Cancelled) {
                self.cancelled.extend(row_numbers());
            } else if !is_accounted_for && unclear {
                self.unclear.extend(row_numbers());
            } else if !is_accounted_for && cancelled {
                self.cancelled.extend(row_numbers());
            }
        }
    }
}

/// Whether an earlier run has a message for a number, or cancelled it, without a row in its list that shows it.
#[derive(Clone, Copy)]
struct UnlistedMessages {
    sent: bool,
    cancelled: bool,
}

/// The range of the elements in a sorted slice for which `compare` returns `Equal`.
pub fn find_equal_range<T>(sorted: &[T], compare: impl Fn(&T) -> std::cmp::Ordering) -> Range<usize> {
    let start = sorted.partition_point(|element| compare(element).is_lt());
    start..start + sorted[start..].partition_point(|element| compare(element).is_eq())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phone(last: u64) -> Phone {
        Phone::new(380_501_234_560 + last).unwrap()
    }

    fn text(letter: char) -> TextHash {
        [letter as u8; 8]
    }

    /// An earlier run with rows of one number: an upper-case letter is a row that was sent, and `-` precedes a
    /// cancelled row.
    fn run(rows: &str) -> EarlierRun {
        let (mut earlier, mut cancelled) = (EarlierRun::default(), false);
        for letter in rows.chars() {
            if letter == '-' {
                cancelled = true;
                continue;
            }
            let outcome = match (std::mem::take(&mut cancelled), letter.is_ascii_uppercase()) {
                (true, _) => EarlierOutcome::Cancelled,
                (false, true) => EarlierOutcome::Sent,
                (false, false) => EarlierOutcome::NotSent,
            };
            // `Z` is a sent row whose text can no longer be rendered.
            let text = (letter != 'Z').then(|| text(letter.to_ascii_lowercase()));
            earlier.rows.push(EarlierRow { phone: phone(1), text, outcome });
        }
        let set = |has: bool| NumberSet::new(has.then_some(phone(1).to_u64()).into_iter().collect(), None);
        let has = |outcome| earlier.rows.iter().any(|earlier| earlier.outcome == outcome);
        (earlier.sent, earlier.cancelled) = (set(has(EarlierOutcome::Sent)), set(has(EarlierOutcome::Cancelled)));
        earlier
    }

    /// The verdict on each row of one number: sent (`s`), might be sent (`?`), cancelled (`c`) or to be sent (`+`).
    fn verdicts(runs: Vec<EarlierRun>, list: &str) -> String {
        let mut sent = SentRows::default();
        for run in runs {
            let listed = list.chars().zip(2..).map(|(letter, row)| CurrentRow {
                phone: phone(1),
                text: (letter != '!').then(|| text(letter)),
                row: Row::new(row),
            });
            sent.compare_run(run, &mut listed.collect::<Vec<_>>());
        }
        let verdict = |row| match (sent.find_skip_reason(Row::new(row)), sent.is_cancelled(Row::new(row))) {
            (Some(ALREADY_SENT), _) => 's',
            (Some(_), _) => '?',
            (None, true) => 'c',
            (None, false) => '+',
        };
        (2..).take(list.len()).map(verdict).collect()
    }

    #[test]
    fn row_is_matched_by_text_and_unclear_rows_are_skipped() {
        for (earlier, list, expected) in [
            // Added, in any order.
            ("AB", "abc", "ss+"),
            ("AB", "cba", "+ss"),
            // Not sent before, regardless of the other rows.
            ("Ab", "ab", "s+"),
            ("Ab", "b", "+"),
            ("Ab", "bc", "+?"),
            // Changed, or removed and another added.
            ("AB", "ax", "s?"),
            ("A", "x", "?"),
            ("A", "xy", "??"),
            // The same text is not sent twice.
            ("A", "aa", "ss"),
            ("AA", "ab", "s?"),
            ("AA", "aab", "ss+"),
            ("Aa", "aa", "ss"),
            ("Ab", "abb", "s++"),
            ("AB", "abb", "sss"),
            ("Abc", "bb", "??"),
            // A text cannot be rendered: `!` in the list, or `Z` in the earlier run.
            ("A", "a!", "s+"),
            ("A", "!", "?"),
            ("AZ", "ab", "s?"),
            ("AZ", "a!", "s?"),
            // Cancelled rows stay cancelled, and new rows with the same number are sent.
            ("A-b", "abc", "sc+"),
            ("A-b", "ax", "sc"),
            ("-a", "x", "c"),
        ] {
            assert_eq!(verdicts(vec![run(earlier)], list), expected, "{earlier} then {list}");
        }
    }

    #[test]
    fn cap_counts_the_planned_messages_of_a_number() {
        let numbers = |last: &[u64]| NumberSet::new(last.iter().map(|last| phone(*last).to_u64()).collect(), None);
        let capped = CappedNumbers::new(vec![numbers(&[1]), numbers(&[1, 2])], 3);
        let limit = |last| (0..9).find(|planned| capped.excludes(phone(last), *planned));
        assert_eq!([1, 2, 3].map(limit), [Some(0), Some(1), Some(3)]);
        let without_ledger = CappedNumbers::new(Vec::new(), 2);
        assert!(!without_ledger.excludes(phone(1), 1) && without_ledger.excludes(phone(1), 2));
        assert!(CappedNumbers::default().is_empty() && !CappedNumbers::default().excludes(phone(1), 9));
    }

    #[test]
    fn each_earlier_run_can_exclude_a_row() {
        assert_eq!(verdicts(vec![run("Ab"), run("aB")], "abc"), "ss+");
        assert_eq!(verdicts(vec![run("A"), run("aB")], "acb"), "s+s");
        assert_eq!(verdicts(vec![run("A"), run("aB")], "ac"), "s?");
        // Proof in one run outweighs doubt in another.
        assert_eq!(verdicts(vec![run("X"), run("xA")], "a"), "s");
    }

    #[test]
    fn number_with_an_unmatched_earlier_message_is_skipped() {
        let lost = || EarlierRun { rows: Vec::new(), ..run("A") };
        assert_eq!(verdicts(vec![lost()], "ab"), "??");
        assert_eq!(verdicts(vec![EarlierRun { rows: run("bc").rows, ..run("A") }], "bc"), "??");
        assert_eq!(verdicts(vec![EarlierRun { rows: Vec::new(), ..run("-a") }], "ab"), "cc");
        let mut sent = SentRows::default();
        sent.compare_run(run("A"), &mut []);
        assert_eq!(sent.find_skip_reason(Row::new(2)), Some(MIGHT_BE_SENT), "a row that was not compared is not sent");
    }

    #[test]
    fn rows_of_other_numbers_do_not_count() {
        let mut sent = SentRows::default();
        let listed =
            |last, letter, row| CurrentRow { phone: phone(last), text: Some(text(letter)), row: Row::new(row) };
        sent.compare_run(run("A"), &mut [listed(2, 'a', 2), listed(1, 'a', 3), listed(2, 'b', 4)]);
        assert_eq!([2, 3, 4].map(|row| sent.find_skip_reason(Row::new(row))), [None, Some(ALREADY_SENT), None]);
    }
}
