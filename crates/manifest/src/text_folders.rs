//! Text files of a campaign, and the folders that they are read from.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::campaign_paths::{CampaignPaths, TextFolder, is_outside};
use campaign_core::finding::{did_you_mean, join_names};
use campaign_core::regular_file;

/// The maximum size of a text file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The folders of a campaign's text files, in search order: the folder of the campaign file, `templates/` in it, and
/// `templates/` in the folder above. Texts in the campaign file itself come first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFolders {
    folders: Vec<TextFolder>,
    /// Texts of the campaign file that other texts include, by name.
    inline_texts: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct TextFile {
    /// The path as it is shown.
    pub(super) path: PathBuf,
    /// The text without a byte order mark, carriage returns or a final newline.
    pub(super) text: String,
}

/// The reason why a text cannot be read.
#[derive(Debug)]
pub(super) struct TextFileError {
    /// The problem.
    pub(super) message: String,
    /// The remedy.
    pub(super) help: String,
}

impl TextFolders {
    /// The folders for a campaign file.
    pub(super) fn from_paths(paths: &CampaignPaths) -> Self {
        Self { folders: paths.text_folders(), inline_texts: BTreeMap::new() }
    }

    /// Reads the text that another text includes by this name: a text of the campaign file, or else a text file.
    ///
    /// Returns the path and the text. For a text of the campaign file, the path is the name.
    ///
    /// # Errors
    /// The problem and its remedy.
    pub fn read_text(&self, name: &str) -> Result<(PathBuf, String), String> {
        if let Some(text) = self.inline_texts.get(name) {
            return Ok((PathBuf::from(name), text.clone()));
        }
        self.find_text(name)
            .map(|file| (file.path, file.text))
            .map_err(|TextFileError { message, help }| format!("{message}; {help}"))
    }

    /// Adds a text of the campaign file, so that other texts can include it by this name.
    pub fn add_inline_text(&mut self, name: String, text: String) {
        self.inline_texts.insert(name, text);
    }

    /// Reads the text file with this name from the first folder that contains it.
    pub(super) fn find_text(&self, name: &str) -> Result<TextFile, TextFileError> {
        let is_normal = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || name.contains('\0') || !Path::new(name).components().all(is_normal) {
            return Err(TextFileError {
                message: format!("`{name}` is outside the folders for text files"),
                help: "use a file in the campaign file's folder, or in templates/".into(),
            });
        }
        for folder in &self.folders {
            if let Some(opened) = folder.open_text(name) {
                return read_opened_file(opened, folder.display_path.join(name));
            }
        }
        Err(self.missing_text_error(name))
    }

    fn missing_text_error(&self, name: &str) -> TextFileError {
        let names: Vec<String> = self.folders.iter().flat_map(TextFolder::list_names).collect();
        let searched: Vec<String> = self.folders.iter().map(|folder| format_folder(&folder.display_path)).collect();
        let searched = format!("folders searched: {}", join_names(searched.iter().map(String::as_str)));
        let help = match did_you_mean(name, names.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`? {searched}"),
            None => searched,
        };
        TextFileError { message: format!("there is no text file `{name}`"), help }
    }
}

fn format_folder(folder: &Path) -> String {
    if folder.as_os_str().is_empty() { "./".into() } else { format!("{}/", folder.display()) }
}

/// Reads the text of an opened file. Errors refer to the file as `path`.
fn read_opened_file(opened: io::Result<impl Read>, path: PathBuf) -> Result<TextFile, TextFileError> {
    let text = match opened {
        Err(error) if is_outside(&error) => {
            let help = "copy the file into the folder; links to files outside the folder are not followed".to_owned();
            return Err(TextFileError {
                message: format!("`{}` is a link to a file outside its folder", path.display()),
                help,
            });
        }
        opened => read_file_text(opened, &path)?,
    };
    Ok(TextFile { path, text })
}

/// Reads a text file that is not named in a campaign, for example the text of a template at the gateway.
///
/// # Errors
/// The problem and its remedy.
pub fn read_text_file(file: &Path) -> Result<String, String> {
    read_file_text(regular_file::open(file), file)
        .map_err(|TextFileError { message, help }| format!("{message}; {help}"))
}

/// The remedy for a text in another encoding.
const NOT_UTF_8: &str = "open it in an editor with its current encoding (usually Windows-1251 for Cyrillic \
    text), and save it as UTF-8";

/// Reads the text of an opened file. Error messages refer to the file as `display_path`.
fn read_file_text(opened: io::Result<impl Read>, display_path: &Path) -> Result<String, TextFileError> {
    let name = display_path.display();
    let problem = |message: String, help: &str| TextFileError { message, help: help.to_owned() };
    let mut bytes = Vec::new();
    opened
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| problem(format!("cannot read `{name}`: {error}"), "check the file and its permissions"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(problem(
            format!("`{name}` is larger than 64 KiB"),
            "check that this is the right file; messages are short",
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| problem(format!("`{name}` is not encoded in UTF-8"), NOT_UTF_8))?;
    let text = unify_line_breaks(text.trim_start_matches('\u{feff}'));
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// The text with each line break as a line feed.
pub(super) fn unify_line_breaks(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::PathScope;

    fn test_folders() -> (tempfile::TempDir, TextFolders) {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        write("campaigns/beside.txt", b"beside\n");
        write("campaigns/templates/inner.txt", "\u{feff}a\r\nb\r\n".as_bytes());
        write("templates/old.txt", b"a\rb\r\rc\r");
        write("templates/outer.sms.txt", b"outer\n\n");
        write("templates/latin.txt", b"caf\xe9");
        write("templates/large.txt", &[b'x'; 65_537]);
        write("secret.txt", b"secret");
        let paths = CampaignPaths::new(&root.path().join("campaigns/sale.yaml"), PathScope::Anywhere);
        let folders = TextFolders::from_paths(&paths);
        (root, folders)
    }

    #[test]
    fn texts_are_found_in_the_folder_then_in_templates() {
        let (_root, folders) = test_folders();
        let text = |name| folders.read_text(name).unwrap().1;
        assert_eq!(text("beside.txt"), "beside");
        assert_eq!(text("inner.txt"), "a\nb");
        assert_eq!(text("old.txt"), "a\nb\n\nc");
        assert_eq!(text("outer.sms.txt"), "outer\n");
        assert_eq!(text("templates/inner.txt"), "a\nb");
    }

    #[test]
    fn text_path_cannot_leave_its_folder() {
        let (root, folders) = test_folders();
        let absolute = root.path().join("secret.txt").display().to_string();
        for name in ["../secret.txt", "templates/../../secret.txt", absolute.as_str(), "", ".."] {
            assert!(folders.read_text(name).unwrap_err().contains("outside the folders"), "{name}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.path().join("secret.txt"), root.path().join("campaigns/link.txt")).unwrap();
            assert!(folders.read_text("link.txt").unwrap_err().contains("outside its folder"));
        }
    }

    #[test]
    fn unusable_text_file_gives_a_reason() {
        let (_root, folders) = test_folders();
        let cases = [
            ("outer.sms.tx", "did you mean `outer.sms.txt`"),
            ("nothing-alike", "folders searched"),
            ("latin.txt", "not encoded in UTF-8"),
            ("large.txt", "larger than 64 KiB"),
            ("templates", "it is a folder"),
        ];
        for (name, words) in cases {
            let error = folders.read_text(name).unwrap_err();
            assert!(error.contains(words), "{name}: {error}");
        }
    }
}
