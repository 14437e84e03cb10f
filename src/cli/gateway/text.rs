//! The text of a template: typed, or in a file.

use crate::cli::args::TextArgs;
use crate::cli::failure::CommandFailure;
use crate::manifest::read_text_file;

/// The text that the arguments give, which is never blank.
pub(super) fn read_template_text(args: &TextArgs) -> Result<String, CommandFailure> {
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read_text_file(file).map_err(CommandFailure::invalid)?,
        (None, None) => String::new(),
    };
    if text.trim().is_empty() { Err(CommandFailure::invalid("the template text is empty")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::suggested::RepeatedOptions;

    #[test]
    fn template_file_loses_byte_order_mark_and_final_break() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        let of = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            read_template_text(&TextArgs { text: None, file: Some(file.clone()) })
                .map_err(|failure| failure.into_explanation(&RepeatedOptions::default()).message)
        };
        assert_eq!(of("\u{feff}Привіт,\r\n%name%\n".as_bytes()).as_deref(), Ok("Привіт,\n%name%"));
        assert!(of(b"\n").unwrap_err().contains("empty"));
        assert!(of(b"\xcf\xf0").unwrap_err().contains("UTF-8"));
        assert!(of(&vec![b'a'; 65 * 1024]).unwrap_err().contains("64 KiB"));
    }
}
