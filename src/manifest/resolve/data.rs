//! The tables under `data`.

use super::Resolver;
use crate::finding::{Finding, rules};
use crate::manifest::day::has_placeholder;
use crate::manifest::keys::DATA_KEYS;
use crate::manifest::section::ConfigSection;
use crate::manifest::table_file::TableFile;
use crate::manifest::yaml::MapEntry;

impl Resolver<'_> {
    /// The tables, unread; one that is wrong is left out, which was told.
    pub(super) fn resolve_tables(&mut self, root: ConfigSection<'_>, vars: &[(String, String)]) -> Vec<TableFile> {
        let entries = root.find_value("data").and_then(|node| node.as_entries()).unwrap_or_default();
        let columns = self.columns.clone();
        let taken = |name: &str| columns.iter().chain(vars).any(|(other, _)| other == name);
        entries.iter().filter_map(|entry| self.resolve_table(entry, taken(&entry.key))).collect()
    }

    fn resolve_table(&mut self, entry: &MapEntry, taken: bool) -> Option<TableFile> {
        self.check_variable_name(&entry.key, &entry.key_span);
        if taken {
            let message = format!("`{}` is the name of a table, and also of a column or constant", entry.key);
            let finding = Finding::new(&rules::NAME_CLASH, message).help("rename one of them");
            self.report.add(&entry.key_span, finding);
        }
        let section = ConfigSection::new(Some(&entry.value), DATA_KEYS);
        let (file, span) = section.typed_text("file")?;
        if has_placeholder(file) {
            let finding =
                Finding::new(&rules::FILE_NAME, format!("`{file}` cannot be the file name of a lookup table"));
            self.report.add(span, finding.help("remove the braces; a table's file name cannot contain the date"));
            return None;
        }
        let (key, _) = section.typed_text("key")?;
        Some(TableFile { name: entry.key.clone(), file: self.resolve_path(file, span)?, key: key.to_owned() })
    }
}
