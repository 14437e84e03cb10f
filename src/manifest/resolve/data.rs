//! The tables under `data`.

use super::Resolver;
use crate::finding::{Finding, rules};
use crate::manifest::day::is_dated;
use crate::manifest::keys::DATA_KEYS;
use crate::manifest::section::Section;
use crate::manifest::table_file::TableFile;
use crate::manifest::yaml::Entry;

impl Resolver<'_> {
    /// The tables, unread; one that is wrong is left out, which was told.
    pub(super) fn data(&mut self, root: Section<'_>, vars: &[(String, String)]) -> Vec<TableFile> {
        let entries = root.value("data").and_then(|node| node.entries()).unwrap_or_default();
        let columns = self.columns.clone();
        let taken = |name: &str| columns.iter().chain(vars).any(|(other, _)| other == name);
        entries.iter().filter_map(|entry| self.table(entry, taken(&entry.key))).collect()
    }

    fn table(&mut self, entry: &Entry, taken: bool) -> Option<TableFile> {
        self.variable(&entry.key, &entry.key_span);
        if taken {
            let message = format!("`{}` is the name of a table, and also of a column or constant", entry.key);
            let finding = Finding::new(&rules::NAME_CLASH, message).help("rename one of them");
            self.report.at(&entry.key_span, finding);
        }
        let section = Section::new(Some(&entry.value), DATA_KEYS);
        let (file, span) = section.typed("file")?;
        if is_dated(file) {
            let finding =
                Finding::new(&rules::FILE_NAME, format!("`{file}` cannot be the file name of a lookup table"));
            self.report.at(span, finding.help("remove the braces; a table's file name cannot contain the date"));
            return None;
        }
        let (key, _) = section.typed("key")?;
        Some(TableFile { name: entry.key.clone(), file: self.path(file, span)?, key: key.to_owned() })
    }
}
