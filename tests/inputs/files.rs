//! List file formats: valid lists in `corpus/files`, and unreadable files in `corpus/malformed`.
//!
//! Each file has its expectation in NAME.yaml: for a list, its form, header, and rows by number; for a rejected
//! file, the rule and words of the finding. `corpus/make.py` writes the files; the expectations in it are written by
//! hand.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use campaign_content::audience::{Chunk, ListSettings, RecipientReader, decode};
use campaign_core::domain::{Delimiter, ListFormat};
use campaign_core::finding::Finding;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Deserialize;

use crate::support::note_on_failure;

/// The content read from a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct ListContent {
    description: Option<String>,
    warnings: Vec<String>,
    header: Vec<String>,
    rows: BTreeMap<u32, Vec<String>>,
}

/// The expected content of a file, or why it is rejected.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    about: String,
    encoding: Option<String>,
    delimiter: Option<String>,
    sheet: Option<String>,
    header_row: Option<u32>,
    #[serde(default)]
    columns: BTreeMap<String, String>,
    told: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    header: Vec<String>,
    #[serde(default)]
    rows: BTreeMap<u32, Vec<String>>,
    rule: Option<String>,
    #[serde(default)]
    says: Vec<String>,
}

impl Expected {
    /// Reads the expectation next to a file.
    fn read(file: &Path) -> Self {
        let mut name = file.as_os_str().to_owned();
        name.push(".yaml");
        let text = fs::read_to_string(PathBuf::from(name)).expect("an expectation");
        let expected: Self = serde_yaml::from_str(&text).expect("an expectation");
        assert!(!expected.about.is_empty());
        expected
    }

    fn list_format(&self) -> ListFormat {
        let encoding = self.encoding.as_ref().map(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
        ListFormat {
            encoding: encoding.map(|encoding| encoding.expect("an encoding")),
            delimiter: self.delimiter.as_ref().map(|name| Delimiter::from_name(name).expect("a delimiter")),
            sheet: self.sheet.clone(),
            header_row: self.header_row,
        }
    }
}

fn corpus(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/corpus").join(folder);
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_none_or(|end| end != "yaml")).collect();
    files.sort();
    files
}

/// Reads a complete file, as a campaign does.
fn read_list(bytes: Vec<u8>, expected: &Expected) -> Result<ListContent, Vec<Finding>> {
    let (file, region) = (Path::new("list"), "UA".parse().ok());
    let to_list = |finding: Box<Finding>| vec![*finding];
    let decoded = decode(Cursor::new(bytes), file, &expected.list_format(), region).map_err(to_list)?;
    let format = decoded.format().clone();
    let columns = expected.columns.clone().into_iter().collect();
    let mut reader =
        RecipientReader::open(decoded, file, &ListSettings { columns, region, ..ListSettings::default() })?;
    let (mut chunk, mut rows) = (Chunk::new(), BTreeMap::new());
    while reader.read_chunk(&mut chunk).map_err(to_list)? {
        rows.extend(chunk.iter().map(|row| (row.row.get(), row.fields.iter().map(str::to_owned).collect())));
    }
    let warnings = format.warnings().iter().map(|finding| finding.message.clone()).collect();
    let header = reader.header().headers().to_vec();
    Ok(ListContent { description: format.describe(reader.delimiter()), warnings, header, rows })
}

#[test]
fn list_is_read_as_its_author_sees_it() {
    let files = corpus("files");
    assert!(files.len() >= 80, "{} files", files.len());
    for file in files {
        let _case = note_on_failure(format!("case: {}", file.display()));
        let expected = Expected::read(&file);
        let found = read_list(fs::read(&file).expect("a file"), &expected);
        let found = found.unwrap_or_else(|findings| panic!("{findings:#?}"));
        assert_eq!((&found.description, &found.warnings), (&expected.told, &expected.warnings));
        assert_eq!(found.header, expected.header);
        // The expected result for a long list contains only the first and the last row.
        assert!(found.rows.len() == expected.rows.len() || expected.rows.len() == 2 && found.rows.len() > 100);
        assert_eq!(found.rows.keys().last(), expected.rows.keys().last());
        for (row, cells) in &expected.rows {
            assert_eq!(found.rows.get(row), Some(cells), "row {row}");
        }
    }
}

#[test]
fn malformed_file_is_refused_with_a_reason_and_help() {
    let files = corpus("malformed");
    assert!(files.len() >= 60, "{} files", files.len());
    for file in files {
        let _case = note_on_failure(format!("case: {}", file.display()));
        let expected = Expected::read(&file);
        let findings = read_list(fs::read(&file).expect("a file"), &expected).expect_err("no list");
        let finding = &findings[0];
        assert_eq!(Some(finding.rule.id), expected.rule.as_deref(), "{finding:#?}");
        let text = format!("{}; {}", finding.message, finding.help.as_deref().unwrap_or_default());
        assert!(finding.help.is_some(), "{text}: no help");
        for words in &expected.says {
            assert!(text.contains(words), "no `{words}` in `{text}`");
        }
    }
}

/// A file with changed, deleted or duplicated bytes, or with another file's end.
fn mutate(random: &mut StdRng, bytes: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..6) {
        if bytes.is_empty() {
            return other.to_vec();
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..64_usize)).min(bytes.len());
        match random.random_range(0..6) {
            0 => bytes[at] = random.random(),
            1 => bytes[at] ^= 1 << random.random_range(0..8_u32),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copied = bytes[at..end].to_vec();
                bytes.splice(at..at, copied);
            }
            4 => bytes[at..end].fill(*[0, 0xff, b'"', b',', b'\n'].get(random.random_range(0..5_usize)).unwrap_or(&0)),
            _ => {
                bytes.truncate(at);
                let from = random.random_range(0..other.len().max(1));
                bytes.extend_from_slice(other.get(from..).unwrap_or_default());
            }
        }
    }
    bytes
}

/// Reads randomly changed files. `MUTATED` sets the number of files, such as `MUTATED=100000`, and `SEED` the seed.
#[test]
fn reader_does_not_panic_on_mutated_files() {
    let number =
        |name: &str, default: u64| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, seed) = (number("MUTATED", 3_000), number("SEED", 14));
    let files: Vec<PathBuf> = corpus("files").into_iter().chain(corpus("malformed")).collect();
    let read_file = |file: &PathBuf| (Expected::read(file), fs::read(file).expect("a file"));
    let files: Vec<(Expected, Vec<u8>)> =
        files.iter().map(read_file).filter(|(_, bytes)| bytes.len() < 40_000).collect();
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..count {
        let (expected, bytes) = &files[random.random_range(0..files.len())];
        let (_, other) = &files[random.random_range(0..files.len())];
        let _ = read_list(mutate(&mut random, bytes, other), expected);
    }
}
