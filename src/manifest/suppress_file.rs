//! Files of numbers that a campaign sends nothing to.

use std::path::PathBuf;

use crate::domain::Region;

/// A list of people who opted out, kept by somebody else than the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppressFile {
    /// The file: any that can be a list of recipients.
    pub file: PathBuf,
    /// The header of the column with the numbers, where it is said.
    pub phone: Option<String>,
    /// The region of its national numbers.
    pub region: Option<Region>,
    /// Where it is named, such as `recipients.suppress[0]`.
    pub key: String,
}
