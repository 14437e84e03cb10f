//! Lists with quotes around each line, which merge all columns into one.

use super::cells::split_cells;
use super::chunk::Chunk;
use super::records::HeaderLine;
use super::trouble::{self, FileExcerpt, mask_numbers};
use crate::domain::Delimiter;
use crate::finding::Finding;

/// The finding about a list in which each line is one quoted cell with delimiters inside.
pub(super) fn find_quoted_lines(line: &HeaderLine, sample: &Chunk) -> Option<Finding> {
    let [header] = line.headers.as_slice() else { return None };
    let spot = line.spot();
    let rows = || sample.iter().map(|record| record.fields.get(0)).filter(|row| !row.is_empty());
    let width = |text: &str, delimiter: Delimiter| split_cells(text.as_bytes(), delimiter.to_byte()).count();
    let is_list = |delimiter: Delimiter| {
        let columns = width(header, delimiter);
        let alike = rows().filter(|row| width(row, delimiter) == columns).count();
        columns > 1 && alike * 2 > rows().count()
    };
    if !line.has_quoted_lines || !Delimiter::COMMON.into_iter().any(is_list) {
        return None;
    }
    // If the header was deleted, the first line is a recipient, whose data must not be shown.
    let is_recipient = mask_numbers(header) != *header;
    let shown = if is_recipient { FileExcerpt { raw: b"", ..spot } } else { spot };
    Some(trouble::quoted_lines_finding(shown))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::audience::{ListSettings, RecipientReader, suggest_columns};
    use crate::finding::{Finding, render_findings};

    const LIST: &str =
        "\"phone,name,city\"\n\"+380501000001,\"\"Koval, Olena\"\",Kyiv\"\n\"+380671000002,Taras,\"\"Lviv\"\"\"\n";

    fn open_findings(text: &str) -> Vec<Finding> {
        let settings =
            ListSettings { columns: vec![("phone".to_owned(), "tel".to_owned())], ..ListSettings::default() };
        let opened = RecipientReader::open(text.as_bytes(), Path::new("list.csv"), &settings).err().unwrap_or_default();
        opened
            .into_iter()
            .chain(suggest_columns(text.as_bytes(), Path::new("list.csv")).err().map(|finding| *finding))
            .collect()
    }

    #[test]
    fn quoted_lines_are_reported_without_personal_data() {
        let without_header = LIST.split_once('\n').unwrap().1;
        for text in [LIST, &LIST.replace(',', ";"), &format!("\u{feff}{LIST}"), without_header] {
            let findings = open_findings(text);
            assert_eq!(findings.len(), 2, "{text}");
            for finding in findings {
                assert_eq!(finding.rule, "recipients-quoted-lines", "{text}");
                let shown = render_findings(&[finding], false);
                assert!(!shown.contains("1000001") && !shown.contains("Olena"), "{shown}");
            }
        }
    }

    #[test]
    fn quoted_cells_are_not_quoted_lines() {
        for text in [
            "\"phone\",\"name\"\n\"+380501000001\",\"Koval, Olena\"\n",
            "\"phone\"\n\"+380501000001\"\n",
            "\"sep=;\"\nphone;name\n+380501000001;Olena\n",
            "\"Clients; spring\"\nphone;name\n+380501000001;Olena\n",
            "\"Clients, all of them\"\n\"Olena\"\n\"Taras\"\n",
            "phone,name\n\"+380501000001,Olena\",x\n",
        ] {
            let rules: Vec<&str> = open_findings(text).iter().map(|finding| finding.rule.id).collect();
            assert!(!rules.contains(&"recipients-quoted-lines"), "{text}: {rules:?}");
        }
    }

    #[test]
    fn row_with_a_number_is_never_quoted_as_a_title() {
        for text in ["+380501000001 Olena,\nb,c\nd,e\n", "\"Olena +380501000001\"\na;b\nc;d\n"] {
            for finding in open_findings(text) {
                assert!(!format!("{finding:?}").contains("380501000001"), "{finding:?}");
            }
        }
    }
}
