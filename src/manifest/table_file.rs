//! Files of small tables that texts look something up in.

use super::CampaignPath;

/// A table of the campaign, not yet read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The name that texts call it by.
    pub name: String,
    /// The file: any that can be a list of recipients.
    pub file: CampaignPath,
    /// The header of the column whose cells say which row is meant.
    pub key: String,
}
