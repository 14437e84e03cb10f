//! Gaps of a campaign whose file has errors: the parts that are stand-ins for wrong parts of the file.

use std::collections::BTreeSet;

use super::keys::VARIANT_KEYS;
use super::section::Section;
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
    pub(super) fn note_names(&mut self, root: Section<'_>) {
        let recipients = root.section("recipients");
        let variants = root.value("variants").and_then(Node::entries).unwrap_or_default();
        let variants = variants.iter().map(|entry| Section::new(Some(&entry.value), VARIANT_KEYS));
        let sections: Vec<Section<'_>> = [root, recipients].into_iter().chain(variants).collect();
        for section in &sections {
            for entry in section.unknown() {
                self.names.insert(entry.key.clone());
                self.names.extend(entry.value.entries().unwrap_or_default().iter().map(|inner| inner.key.clone()));
            }
            for map in ["vars", "columns", "data"].into_iter().filter_map(|key| section.value(key)) {
                match map.entries() {
                    Some(entries) => self.names.extend(entries.iter().map(|entry| entry.key.clone())),
                    None => self.any_name = true,
                }
            }
        }
    }
}
