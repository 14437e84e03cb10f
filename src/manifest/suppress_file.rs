//! Files of numbers that nothing is sent to.

use std::ops::Range;

use super::CampaignPath;
use super::keys::SUPPRESS_FILE;
use super::section::ConfigSection;
use super::yaml::Node;
use crate::domain::Region;

/// A list of people who opted out, kept by somebody else than the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppressionFile {
    /// The file: any that can be a list of recipients.
    pub file: CampaignPath,
    /// The header of the column with the numbers, where it is said.
    pub phone: Option<String>,
    /// The region of its national numbers; nothing for that of the recipients.
    pub region: Option<Region>,
    /// Where it is named, such as `recipients.suppress[0]`.
    pub key: String,
}

/// The files under the `suppress` of a map, which stands at the path `above`; `path` makes a path of a name, `region` reads
/// the region of a map.
pub(super) fn read_suppression_files(
    map: ConfigSection<'_>,
    above: &str,
    mut path: impl FnMut(&str, &Range<usize>) -> Option<CampaignPath>,
    mut region: impl FnMut(ConfigSection<'_>) -> Option<Region>,
) -> Vec<SuppressionFile> {
    let items = map.find_value("suppress").and_then(Node::as_items).unwrap_or_default();
    let file = |(index, item): (usize, &Node)| {
        let section = ConfigSection::new(Some(item), SUPPRESS_FILE);
        let (name, span) = match item.as_scalar() {
            Some(scalar) => (scalar.text.trim(), &item.span),
            None => section.typed_text("file")?,
        };
        Some(SuppressionFile {
            file: path(name, span)?,
            phone: section.typed_text("phone").map(|(header, _)| header.to_owned()),
            region: region(section),
            key: format!("{above}.suppress[{index}]"),
        })
    };
    items.iter().enumerate().filter_map(file).collect()
}
