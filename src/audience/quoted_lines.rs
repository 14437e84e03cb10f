//! Lists with quotes around each line, which merge all columns into one.

use super::cells::cells;
use super::chunk::Chunk;
use super::records::HeaderLine;
use super::trouble::{self, Spot, without_numbers};
use crate::domain::Delimiter;
use crate::finding::Finding;

/// The finding about a list in which each line is one quoted cell with delimiters inside.
pub(super) fn quoted_lines(line: &HeaderLine, sample: &Chunk) -> Option<Finding> {
    let [header] = line.headers.as_slice() else { return None };
    let spot = line.spot();
    let rows = || sample.iter().map(|record| record.fields.get(0)).filter(|row| !row.is_empty());
    let width = |text: &str, delimiter: Delimiter| cells(text.as_bytes(), delimiter.byte()).count();
    let is_list = |delimiter: Delimiter| {
        let columns = width(header, delimiter);
        let alike = rows().filter(|row| width(row, delimiter) == columns).count();
        columns > 1 && alike * 2 > rows().count()
    };
    if !line.has_quoted_lines || !Delimiter::USUAL.into_iter().any(is_list) {
        return None;
    }
    // If the header was deleted, the first line is a recipient, whose data must not be shown.
    let is_recipient = without_numbers(header) != *header;
    let shown = if is_recipient { Spot { raw: b"", ..spot } } else { spot };
    Some(trouble::quoted_lines(shown))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::audience::{Reader, Settings, suggest};
    use crate::finding::{Finding, show};

    const LIST: &str =
        "\"phone,name,city\"\n\"+380501000001,\"\"Koval, Olena\"\",Kyiv\"\n\"+380671000002,Taras,\"\"Lviv\"\"\"\n";

    fn refusals(text: &str) -> Vec<Finding> {
        let settings = Settings { columns: vec![("phone".to_owned(), "tel".to_owned())], ..Settings::default() };
        let opened = Reader::open(text.as_bytes(), Path::new("list.csv"), &settings).err().unwrap_or_default();
        opened
            .into_iter()
            .chain(suggest(text.as_bytes(), Path::new("list.csv")).err().map(|finding| *finding))
            .collect()
    }

    #[test]
    fn quotes_around_each_line_are_told_without_anybodys_data() {
        let without_header = LIST.split_once('\n').unwrap().1;
        for text in [LIST, &LIST.replace(',', ";"), &format!("\u{feff}{LIST}"), without_header] {
            let findings = refusals(text);
            assert_eq!(findings.len(), 2, "{text}");
            for finding in findings {
                assert_eq!(finding.rule, "recipients-quoted-lines", "{text}");
                let shown = show(&[finding], false);
                assert!(!shown.contains("1000001") && !shown.contains("Olena"), "{shown}");
            }
        }
    }

    #[test]
    fn quoted_cells_are_no_quoted_lines() {
        for text in [
            "\"phone\",\"name\"\n\"+380501000001\",\"Koval, Olena\"\n",
            "\"phone\"\n\"+380501000001\"\n",
            "\"sep=;\"\nphone;name\n+380501000001;Olena\n",
            "\"Clients; spring\"\nphone;name\n+380501000001;Olena\n",
            "\"Clients, all of them\"\n\"Olena\"\n\"Taras\"\n",
            "phone,name\n\"+380501000001,Olena\",x\n",
        ] {
            let rules: Vec<&str> = refusals(text).iter().map(|finding| finding.rule.id).collect();
            assert!(!rules.contains(&"recipients-quoted-lines"), "{text}: {rules:?}");
        }
    }

    #[test]
    fn row_with_a_number_is_never_quoted_as_a_title() {
        for text in ["+380501000001 Olena,\nb,c\nd,e\n", "\"Olena +380501000001\"\na;b\nc;d\n"] {
            for finding in refusals(text) {
                assert!(!format!("{finding:?}").contains("380501000001"), "{finding:?}");
            }
        }
    }
}
