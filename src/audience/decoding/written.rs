//! How a file was found to be written.

use std::sync::OnceLock;

use encoding_rs::Encoding;

use crate::domain::Delimiter;
use crate::finding::Finding;

/// How a file is written; where it says nothing, as ordinary text in UTF-8.
#[derive(Debug, Default)]
pub struct DetectedFormat {
    /// How it is packed.
    pub(super) packed: Option<&'static str>,
    /// The encoding of its text; known once a character was met that is not the same in all.
    pub(super) encoding: OnceLock<&'static Encoding>,
    /// The sheet that it is.
    pub(super) sheet: Option<SheetInfo>,
    /// Its header row, if specified.
    pub(super) header_row: Option<u32>,
}

/// The sheet of a workbook.
#[derive(Debug, Default)]
pub struct SheetInfo {
    /// Its name.
    pub name: String,
    /// How many others the workbook has, hidden ones too.
    pub others: usize,
    /// The names of the others that are visible.
    pub visible_others: Vec<String>,
    /// What is worth knowing of it.
    pub warnings: Vec<Finding>,
}

impl DetectedFormat {
    /// How it is written in words, and what stands between its cells; nothing of a CSV file in UTF-8 with
    /// commas or semicolons.
    #[must_use]
    pub fn describe(&self, delimiter: u8) -> Option<String> {
        let mut told = Vec::new();
        told.extend(self.packed.map(|packed| format!("compressed with {packed}")));
        told.extend(self.encoding.get().map(|encoding| format!("encoding {}", encoding_name(encoding))));
        match &self.sheet {
            Some(SheetInfo { name, others: 0, .. }) => told.push(format!("sheet `{name}`")),
            Some(SheetInfo { name, others, .. }) => told.push(format!("sheet `{name}`, one of {}", others + 1)),
            // Half of the world's spreadsheets write semicolons.
            None if delimiter == Delimiter::COMMA.to_byte() || told.is_empty() && delimiter == b';' => {}
            None => {
                let name = Delimiter::new(delimiter).unwrap_or(Delimiter::COMMA).name();
                told.push(format!("delimiter {name}"));
            }
        }
        told.extend(self.header_row.filter(|row| *row > 1).map(|row| format!("header in row {row}")));
        (!told.is_empty()).then(|| told.join(", "))
    }

    /// The name of the sheet that was read. `None` if the file is not a workbook.
    #[must_use]
    pub fn sheet_name(&self) -> Option<&str> {
        self.sheet.as_ref().map(|sheet| sheet.name.as_str())
    }

    /// The names of the workbook's other visible sheets; empty if it is not a workbook.
    #[must_use]
    pub fn other_sheets(&self) -> &[String] {
        self.sheet.as_ref().map_or(&[], |sheet| &sheet.visible_others)
    }

    /// What is worth knowing of the sheet.
    #[must_use]
    pub fn warnings(&self) -> &[Finding] {
        self.sheet.as_ref().map_or(&[], |sheet| &sheet.warnings)
    }
}

/// The name of an encoding as people write it.
pub(in crate::audience) fn encoding_name(encoding: &'static Encoding) -> String {
    let name = encoding.name();
    if name.starts_with("windows") { format!("W{}", &name[1..]) } else { name.to_owned() }
}
