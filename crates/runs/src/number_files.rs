//! Files of phone numbers that are maintained outside the ledger: suppression files and consent files.

use campaign_content::audience::{DecodedText, NumberColumns, PhoneProblem, decode_table};
use campaign_core::domain::{Phone, Region, Row};
use campaign_core::finding::{Finding, rules};
use campaign_manifest::{CampaignPath, describe_file_open_error};

/// The header of the phone column, if there are no cells that reveal it.
const DEFAULT_HEADER: &str = "phone";

/// The maximum number of rows that a finding names.
const MAX_NAMED_ROWS: usize = 5;

/// A file of phone numbers, in any format of a list of recipients.
pub(super) struct NumberFile<'f> {
    pub(super) file: &'f CampaignPath,
    /// The header of the phone column, if it is specified.
    pub(super) phone: Option<&'f str>,
    /// The region of national numbers.
    pub(super) region: Option<Region>,
}

/// The rows of a file without a usable phone number.
pub(super) struct UnreadRows(Vec<(Row, PhoneProblem)>);

impl NumberFile<'_> {
    fn open(&self) -> Result<DecodedText, Finding> {
        let path = self.file.path();
        let opened = self.file.open_file().map_err(|error| describe_file_open_error("it", path, &error))?;
        decode_table(opened, path, self.region).map_err(|finding| *finding)
    }

    /// The header of the phone column, if the cells do not reveal it.
    pub(super) fn header(&self) -> &str {
        self.phone.unwrap_or(DEFAULT_HEADER)
    }

    /// Finds the phone columns. `None` if there are none. `is_other` returns whether a header belongs to a column with
    /// other content. A file without rows is valid.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn find_columns(&self, is_other: impl Fn(&str) -> bool) -> Result<Option<NumberColumns>, Finding> {
        let path = self.file.path();
        if self.phone.is_none() {
            match NumberColumns::detect(self.open()?, path, self.region, is_other) {
                Err(finding) if finding.rule == &rules::RECIPIENTS_EMPTY => {}
                detected => return detected.map_err(|finding| *finding),
            }
        }
        NumberColumns::with_header(self.open()?, path, self.header()).map_err(|finding| *finding)
    }

    /// Passes the phone numbers to `add`, together with their rows and the cells under `other_headers`. Returns the
    /// labels of the columns that contain phone numbers, and the rows without a usable number.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn read_numbers<const N: usize>(
        &self,
        columns: &NumberColumns,
        other_headers: [Option<&str>; N],
        mut add: impl FnMut(Row, Phone, [&str; N]),
    ) -> Result<(Vec<String>, UnreadRows), Finding> {
        let (has_names, mut unread) = (other_headers.iter().any(Option::is_some), Vec::new());
        let add_row = |row: Row, number: Result<Phone, PhoneProblem>, cells: [&str; N]| match number {
            // Only a file that contains nothing but numbers can have a number in place of its header.
            _ if row == Row::HEADER && has_names => {}
            Ok(phone) => add(row, phone, cells),
            Err(PhoneProblem::Empty) => {}
            Err(_) if unread.last().is_some_and(|(last, _)| *last == row) => {}
            Err(problem) => unread.push((row, problem)),
        };
        let labels = columns
            .read_numbers(self.open()?, self.file.path(), self.region, other_headers, add_row)
            .map_err(|finding| *finding)?;
        Ok((labels, UnreadRows(unread)))
    }
}

impl UnreadRows {
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Whether a number has no country code, and the region of national numbers is unknown.
    pub(super) fn has_national_number(&self) -> bool {
        self.0.iter().any(|(_, problem)| *problem == PhoneProblem::National)
    }

    /// Names the first rows with their problems.
    pub(super) fn describe(&self) -> String {
        name_first_rows(self.0.iter().map(|(row, problem)| format!("row {row} ({problem})")))
    }
}

/// Joins the names of the first rows, and adds the number of the others.
pub(super) fn name_first_rows(mut rows: impl ExactSizeIterator<Item = String>) -> String {
    let named: Vec<String> = rows.by_ref().take(MAX_NAMED_ROWS).collect();
    let more = if rows.len() > 0 { format!(" and {} more", rows.len()) } else { String::new() };
    named.join(", ") + &more
}
