//! The text of a template: typed, or in a file.

use crate::cli::args::TextArgs;
use crate::cli::failure::Failure;
use crate::manifest::text_of;

/// The text that the arguments give, which is never blank.
pub(super) fn text(args: &TextArgs) -> Result<String, Failure> {
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => text_of(file).map_err(Failure::wrong)?,
        (None, None) => String::new(),
    };
    if text.trim().is_empty() { Err(Failure::wrong("the template text is empty")) } else { Ok(text) }
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
