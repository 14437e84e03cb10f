//! The file of further words by which people opt out.

use std::ops::Range;

use crate::domain::{MAX_OPT_OUT_WORDS, OptOutWords};
use crate::finding::{Finding, rules};
use crate::manifest::file::read_source;
use crate::manifest::report::{FindingCollector, LoadedFile};
use crate::manifest::section::ConfigSection;
use crate::manifest::{CampaignPath, CampaignPaths};

/// The words of the file that `opt_out_words` names; none where it names none.
pub(super) fn read_opt_out_words(
    section: ConfigSection<'_>,
    paths: &CampaignPaths,
    report: &mut FindingCollector,
) -> Option<Vec<String>> {
    let Some((name, span)) = section.typed_text("opt_out_words") else { return Some(Vec::new()) };
    let LoadedFile { value, findings, .. } = load_words(&paths.resolve_path(name).ok()?);
    for finding in findings {
        match finding.place {
            Some(_) => report.findings.push(finding),
            None => report.add(span, finding),
        }
    }
    value
}

/// The words of the file at `path`: one in a line, or two or three that belong together; a line that begins with `#` says nothing.
fn load_words(path: &CampaignPath) -> LoadedFile<Vec<String>> {
    let source = match read_source(path, "the opt-out words file") {
        Ok(source) => source,
        Err(finding) => return LoadedFile::new(None, vec![*finding]),
    };
    let mut report = FindingCollector::new(&source);
    let (mut known, mut words) = (OptOutWords::default(), Vec::new());
    for (word, span) in split_lines(source.text()) {
        match OptOutWords::count_words(word) {
            0 => {
                let finding =
                    Finding::new(&rules::OPT_OUT_WORDS, format!("`{word}` contains neither a letter nor a digit"));
                report.add(&span, finding.help("write a word, or start the line with `#` to make it a comment"));
            }
            count if count > MAX_OPT_OUT_WORDS => {
                let what =
                    format!("`{word}` has {count} words, but an opt-out phrase can have at most {MAX_OPT_OUT_WORDS}");
                let help = "write only the first words; the rest of a short reply is ignored";
                report.add(&span, Finding::new(&rules::OPT_OUT_WORDS, what).help(help));
            }
            _ => match known.find_covering_word(word) {
                Some(same) => {
                    let what = if same == word {
                        "is already a built-in word".to_owned()
                    } else {
                        format!("is the same as `{same}`")
                    };
                    let finding = Finding::new(&rules::OPT_OUT_WORDS, format!("`{word}` {what}")).as_warning();
                    report.add(&span, finding.help("remove this line; case and look-alike letters are ignored"));
                }
                None => {
                    known = known.with_words([word.to_owned()]);
                    words.push(word.to_owned());
                }
            },
        }
    }
    if words.is_empty() && report.findings.is_empty() {
        let finding = Finding::new(&rules::OPT_OUT_WORDS, "the file contains no words");
        report.add(
            &(0..0),
            finding.help("write one word per line, or remove `opt_out_words` to use only the built-in words"),
        );
    }
    LoadedFile::new(Some(words), report.into_findings())
}

/// The words of a text, and where they stand.
fn split_lines(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut next = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        let word = line.trim_matches(|character: char| character.is_whitespace() || character == '\u{feff}');
        let at = start + line.find(word).unwrap_or(0);
        (word, at..at + word.len())
    });
    lines.filter(|(word, _)| !word.is_empty() && !word.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and column of what is told, and whether it refuses.
    type ReportedFinding = (usize, usize, bool);

    /// The words of a file, and what is told of it.
    fn read_text(text: &str) -> (Option<Vec<String>>, Vec<ReportedFinding>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words.txt");
        std::fs::write(&file, text).unwrap();
        let LoadedFile { value, findings, .. } = load_words(&CampaignPath::anywhere(file));
        let place = |finding: &Finding| {
            let place = finding.place.clone().unwrap();
            assert!(place.source.path().ends_with("words.txt") && *finding.rule == rules::OPT_OUT_WORDS, "{finding:?}");
            (place.line_number(), place.column_number(), finding.is_error())
        };
        (value, findings.iter().map(place).collect())
    }

    #[test]
    fn each_line_is_a_word_and_errors_have_their_place() {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(read_text("\u{feff}Godi\n\n# Ukrainian\n  не пишіть \r\n"), (words(&["Godi", "не пишіть"]), vec![]));
        assert_eq!(read_text("Godi\n  …\n"), (None, vec![(2, 3, true)]));
        assert_eq!(read_text("please do not write\n"), (None, vec![(1, 1, true)]));
        assert_eq!(
            read_text("Godi\nстоп\nGODI!\nGodi now\n"),
            (words(&["Godi"]), vec![(2, 1, false), (3, 1, false), (4, 1, false)])
        );
        assert_eq!(read_text("# nothing\n\n"), (None, vec![(1, 1, true)]));
        assert_eq!(read_text("Stop\n"), (words(&[]), vec![(1, 1, false)]));
    }

    #[test]
    fn missing_file_is_reported() {
        let told = load_words(&CampaignPath::anywhere("no/words.txt"));
        assert_eq!(told.findings[0].message, "the opt-out words file `no/words.txt` does not exist");
    }
}
