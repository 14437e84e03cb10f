//! The text of a template: typed, or in a file.

use std::io::Read as _;
use std::path::Path;

use crate::cli::args::TextArgs;
use crate::cli::failure::Failure;
use crate::regular_file;

/// The most bytes that a file with a text may have.
const LARGEST: u64 = 64 * 1024;

/// The text that the arguments give, which is never blank.
pub(super) fn text(args: &TextArgs) -> Result<String, Failure> {
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => String::new(),
    };
    if text.trim().is_empty() { Err(Failure::wrong("the text of the template is empty")) } else { Ok(text) }
}

/// A text file without byte order mark, carriage returns and its final newline, as everywhere.
fn read(file: &Path) -> Result<String, Failure> {
    let name = file.display();
    let mut bytes = Vec::new();
    regular_file::open(file)
        .and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes))
        .map_err(|error| Failure::wrong(format!("the text file `{name}` cannot be read: {error}; check its name")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::wrong(format!(
            "`{name}` is larger than 64 KiB; a message is short: is it the right file?"
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::wrong(format!("`{name}` is not in UTF-8; save it as UTF-8 in your editor")))?;
    let text = text.trim_start_matches('\u{feff}').replace('\r', "");
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::suggested::Options;

    #[test]
    fn a_file_gives_its_text_without_what_editors_add() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        let of = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            text(&TextArgs { text: None, file: Some(file.clone()) })
                .map_err(|failure| failure.explain(&Options::default()).message)
        };
        assert_eq!(of("\u{feff}Привіт,\r\n%name%\n".as_bytes()).as_deref(), Ok("Привіт,\n%name%"));
        assert!(of(b"\n").unwrap_err().contains("empty"));
        assert!(of(b"\xcf\xf0").unwrap_err().contains("UTF-8"));
        assert!(of(&vec![b'a'; 65 * 1024]).unwrap_err().contains("64 KiB"));
    }
}
