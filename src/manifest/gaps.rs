//! Gaps of a campaign whose file has errors: the parts that are stand-ins for wrong parts of the file.

use std::collections::BTreeSet;

use super::keys::VARIANT_KEYS;
use super::section::ConfigSection;
use super::yaml::Node;

/// The parts of a campaign that are stand-ins. A campaign with gaps is only searched for more mistakes and never sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Whether anything is a stand-in.
    pub any: bool,
    /// Whether the list or its form is unknown.
    pub list: bool,
    /// Whether something under `recipients` is wrong, which might be why a list has no phone column.
    pub recipients: bool,
    /// Names that texts may use and that the file does not define properly.
    names: BTreeSet<String>,
    /// Whether it cannot be known which names the file was meant to define.
    any_name: bool,
}

impl Gaps {
    /// Whether the file might have been meant to define this name for texts.
    #[must_use]
    pub fn may_define(&self, name: &str) -> bool {
        self.any_name || self.names.contains(name)
    }

    /// Collects the names that wrong parts of the file might be meant to define.
    pub(super) fn note_names(&mut self, root: ConfigSection<'_>) {
        let recipients = root.subsection("recipients");
        let variants = root.find_value("variants").and_then(Node::as_entries).unwrap_or_default();
        let variants = variants.iter().map(|entry| ConfigSection::new(Some(&entry.value), VARIANT_KEYS));
        let sections: Vec<ConfigSection<'_>> = [root, recipients].into_iter().chain(variants).collect();
        for section in &sections {
            for entry in section.unknown_entries() {
                self.names.insert(entry.key.clone());
                self.names.extend(entry.value.as_entries().unwrap_or_default().iter().map(|inner| inner.key.clone()));
            }
            for map in ["vars", "columns", "data"].into_iter().filter_map(|key| section.find_value(key)) {
                match map.as_entries() {
                    Some(entries) => self.names.extend(entries.iter().map(|entry| entry.key.clone())),
                    None => self.any_name = true,
                }
            }
        }
    }
}
