//! Reading a file that a person wrote, within bounds.

use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use super::CampaignPath;
use crate::finding::{Finding, SourceLocation, SourceText, did_you_mean, rules};

/// The most bytes that a campaign file or gateways.yaml may have.
const MAX_BYTES: u64 = 1024 * 1024;

/// The file at `path`, called `what` in findings.
pub(super) fn read_source(file: &CampaignPath, what: &str) -> Result<SourceText, Box<Finding>> {
    let path = file.path();
    let name = path.display();
    let unreadable = |error: std::io::Error| {
        Box::new(match error.kind() {
            ErrorKind::NotFound => Finding::new(&rules::FILE_MISSING, format!("{what} `{name}` does not exist"))
                .help(add_ending(path).unwrap_or_else(|| "check the name and the current folder".to_owned())),
            _ => Finding::new(&rules::FILE_UNREADABLE, format!("cannot read {what} `{name}`: {error}"))
                .help("check the file and its permissions"),
        })
    };
    let mut bytes = Vec::new();
    file.open_file().and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        let finding = Finding::new(&rules::FILE_TOO_LARGE, format!("{what} `{name}` is larger than 1 MiB"));
        return Err(Box::new(finding.help("check that this is the right file; recipients belong in a CSV file")));
    }
    decode_source(path, bytes)
}

/// Says why a list of recipients cannot be opened, and which one was probably meant.
#[must_use]
pub fn describe_unopened_list(path: &Path, error: &io::Error) -> Finding {
    describe_unopened_file(&format!("the list of recipients `{}`", path.display()), path, error)
}

/// Why a file that is read as lists are cannot be opened; `subject` is what is said to be missing.
#[must_use]
pub fn describe_unopened_file(subject: &str, path: &Path, error: &io::Error) -> Finding {
    let missing = error.kind() == ErrorKind::NotFound;
    let why = if missing { "does not exist".to_owned() } else { format!("cannot be opened: {error}") };
    let finding = Finding::new(&rules::RECIPIENTS_MISSING, format!("{subject} {why}"));
    if !missing {
        return finding;
    }
    let meant = find_nearby_lists(path);
    let typed = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match did_you_mean(typed, meant.iter().map(String::as_str)) {
        Some(meant) => finding.help(format!("did you mean `{}`?", path.with_file_name(meant).display())),
        None => finding.help("check the name; the path is relative to the campaign file"),
    }
}

/// The names of the lists in the folder of a file, in their order.
fn find_nearby_lists(path: &Path) -> Vec<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.path()).filter(|path| is_list_name(path));
    let mut names: Vec<String> = names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    names
}

/// Whether a file that is there is a list by its name.
pub(super) fn is_list_name(path: &Path) -> bool {
    const ENDINGS: [&str; 5] = ["csv", "tsv", "xlsx", "xls", "ods"];
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.iter().any(|list| ending.eq_ignore_ascii_case(list)) && path.is_file()
}

/// The file that was probably meant by a name without its ending.
fn add_ending(path: &Path) -> Option<String> {
    let named = ["yaml", "yml"].map(|ending| path.with_added_extension(ending));
    named.iter().find(|path| path.is_file()).map(|path| format!("did you mean `{}`?", path.display()))
}

fn decode_source(path: &Path, bytes: Vec<u8>) -> Result<SourceText, Box<Finding>> {
    let error = match String::from_utf8(bytes) {
        Ok(text) => return Ok(SourceText::new(path, text)),
        Err(error) => error,
    };
    let at = error.utf8_error().valid_up_to();
    let text = String::from_utf8_lossy(error.as_bytes());
    let source = SourceText::new(path, text);
    let finding = Finding::new(&rules::FILE_ENCODING, "the file is not encoded in UTF-8")
        .help("save the file as UTF-8; its current encoding is probably Windows-1251 or UTF-16");
    Err(Box::new(finding.at(SourceLocation::new(&source, at..at + '\u{fffd}'.len_utf8()))))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read_refused(bytes: &[u8]) -> Finding {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, bytes).unwrap();
        *read_source(&CampaignPath::anywhere(path), "the campaign file").unwrap_err()
    }

    #[test]
    fn unreadable_campaign_file_is_rejected() {
        let large = vec![b'#'; 1024 * 1024 + 1];
        assert_eq!(read_refused(&large).rule, "file-too-large");
        let encoding = read_refused(b"name: x\nvars: { a: \xcf\xf0\xe8 }\n");
        assert_eq!(encoding.rule, "file-encoding");
        let place = encoding.place.unwrap();
        assert_eq!((place.line_number(), place.column_number()), (2, 12));
        let missing = read_source(&CampaignPath::anywhere("no/such.yaml"), "the campaign file").unwrap_err();
        assert_eq!(missing.message, "the campaign file `no/such.yaml` does not exist");
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("demo.v2.yaml"), "").unwrap();
        let without_ending =
            read_source(&CampaignPath::anywhere(folder.path().join("demo.v2")), "the campaign file").unwrap_err();
        assert!(without_ending.help.is_some_and(|help| help.ends_with("/demo.v2.yaml`?")));
        assert_eq!(read_source(&CampaignPath::anywhere("/"), "the campaign file").unwrap_err().rule, "file-unreadable");
    }
}
