//! Paths that a campaign or a profile names: the one place where they are resolved and opened.
//!
//! A path is relative to the file that names it. Its [`Reach`] says how far it leads: a person's command opens any
//! file, the connector of assistants opens files of its folder alone. A path that leads out is refused before the file
//! or its metadata is looked at, so the refusal is the same whether the file exists or not.
//!
//! A hard link and a mounted folder are files of the folder: whoever can make one can read the file without us.

#[cfg(unix)]
mod walk;
#[cfg(not(unix))]
#[path = "walk_by_path.rs"]
mod walk;

use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Component, Display, Path, PathBuf};
use std::sync::Arc;

use crate::finding::{Finding, rules};
use crate::regular_file;

/// How far the paths of a campaign lead.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathScope {
    /// To any file, for the command of a person.
    #[default]
    Anywhere,
    /// To files of this folder, which is absolute and has no links in it.
    Within(Arc<Path>),
}

/// A path that a campaign or a profile names, with its reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CampaignPath {
    path: PathBuf,
    reach: PathScope,
}

/// The paths that one file names.
#[derive(Clone, Debug)]
pub struct CampaignPaths {
    file: CampaignPath,
}

/// A folder in which text files are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextFolder {
    /// The folder as people know it.
    pub(super) shown: PathBuf,
    /// The folder itself; nothing if it does not exist.
    folder: Option<CampaignPath>,
}

/// A folder that is held open: its files stay in it, even if something else replaces the folder in the meantime.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    /// The open handle.
    _handle: Option<File>,
}

/// A path leads out of the folder that it is confined to.
#[derive(Debug)]
struct OutsidePathError;

impl PathScope {
    /// The files of a folder.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn within(folder: &Path) -> io::Result<Self> {
        Ok(Self::Within(folder.canonicalize()?.into()))
    }
}

impl CampaignPaths {
    /// The paths in a file, with this reach.
    #[must_use]
    pub fn new(file: &Path, reach: PathScope) -> Self {
        Self { file: CampaignPath { path: file.to_owned(), reach } }
    }

    /// The file that names them.
    #[must_use]
    pub fn file(&self) -> &CampaignPath {
        &self.file
    }

    /// The path that a name means.
    ///
    /// # Errors
    /// When it leads out of what the reach allows.
    pub fn resolve_path(&self, name: &str) -> Result<CampaignPath, Box<Finding>> {
        let path = self.file.join_sibling(name);
        match path.leaves_folder() {
            false => Ok(path),
            true => Err(Box::new(outside_finding(name))),
        }
    }

    /// The program that a word means: a path is relative to the file, a bare name is looked up by the system.
    ///
    /// It has no reach: a program is started for a person, never for an assistant.
    pub(super) fn resolve_program(&self, word: &str) -> String {
        if !word.contains('/') {
            return word.to_owned();
        }
        let path = self.file_folder().join(word);
        std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The folder of the file, from the root.
    pub(super) fn absolute_folder(&self) -> PathBuf {
        let folder = match self.file_folder() {
            folder if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
    }

    /// The folders of text files in the order of looking: beside the file, `templates/` there, and `templates/` of the folder
    /// above, which belongs to people and not to who writes campaigns.
    pub(super) fn text_folders(&self) -> Vec<TextFolder> {
        let folder = self.file_folder();
        let own = [folder.to_owned(), folder.join("templates")];
        let own = own.map(|shown| match &self.file.reach {
            PathScope::Anywhere => TextFolder::from_path(shown),
            reach => TextFolder { folder: Some(CampaignPath { path: shown.clone(), reach: reach.clone() }), shown },
        });
        own.into_iter().chain([TextFolder::from_path(parent_folder(folder).join("templates"))]).collect()
    }

    fn file_folder(&self) -> &Path {
        self.file.path.parent().unwrap_or(Path::new(""))
    }
}

impl CampaignPath {
    /// A path that a person names.
    #[must_use]
    pub fn anywhere(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), reach: PathScope::Anywhere }
    }

    /// A file of a folder by its name; the folder is absolute and has no links in it.
    #[must_use]
    pub fn within(folder: &Arc<Path>, name: impl AsRef<Path>) -> Self {
        Self { path: folder.join(name), reach: PathScope::Within(Arc::clone(folder)) }
    }

    /// The path as it is shown. What stands there is opened by [`Self::open`] alone.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for a message.
    #[must_use]
    pub fn display(&self) -> Display<'_> {
        self.path.display()
    }

    /// Another path that is named, with the reach of this one.
    #[must_use]
    pub fn with_path(&self, path: &Path) -> Self {
        Self { path: path.to_owned(), reach: self.reach.clone() }
    }

    /// A path from the folder of this one, with its reach.
    #[must_use]
    pub fn join_sibling(&self, name: impl AsRef<Path>) -> Self {
        Self { path: self.path.parent().unwrap_or(Path::new("")).join(name), reach: self.reach.clone() }
    }

    /// Opens the regular file there. Links are followed as far as the reach goes, whatever they were a moment ago.
    ///
    /// # Errors
    /// When it cannot be opened, is no regular file, or leads out.
    pub fn open_file(&self) -> io::Result<File> {
        match &self.reach {
            PathScope::Anywhere => regular_file::open(&self.path),
            PathScope::Within(folder) => {
                let file =
                    walk::open_below(folder, self.relative_path(folder)?).map_err(regular_file::note_missing_handle)?;
                regular_file::require_regular(file)
            }
        }
    }

    /// Whether something stands there.
    #[must_use]
    pub fn is_present(&self) -> bool {
        match &self.reach {
            PathScope::Anywhere => self.path.exists(),
            PathScope::Within(folder) => {
                self.relative_path(folder).is_ok_and(|below| walk::exists_below(folder, below))
            }
        }
    }

    /// Whether it leads out of its folder. Nothing outside is looked at to tell.
    #[must_use]
    pub fn leaves_folder(&self) -> bool {
        let PathScope::Within(folder) = &self.reach else { return false };
        self.relative_path(folder)
            .and_then(|below| walk::check_path(folder, below))
            .is_err_and(|error| is_outside(&error))
    }

    /// Why a program must not write there for an assistant, in words; nothing where a person names the path.
    #[must_use]
    pub fn refuse_writing(&self) -> Option<&'static str> {
        let PathScope::Within(folder) = &self.reach else { return None };
        if self.leaves_folder() {
            return Some("outside the campaigns folder");
        }
        let is_link = self.relative_path(folder).is_ok_and(|below| walk::is_link_below(folder, below));
        is_link.then_some("a symbolic link")
    }

    /// Whether an assistant can have named it, so that it is confined to a folder.
    #[must_use]
    pub fn is_confined(&self) -> bool {
        matches!(self.reach, PathScope::Within(_))
    }

    /// Holds the folder in which a confined file is written, and creates it if requested. `None` if a person named the
    /// path.
    ///
    /// # Errors
    /// When it leads outside, or cannot be opened or created.
    pub fn hold_folder(&self, create: bool) -> io::Result<Option<HeldFolder>> {
        let PathScope::Within(folder) = &self.reach else { return Ok(None) };
        let below = self.relative_path(folder)?.parent().unwrap_or(Path::new(""));
        walk::hold_folder(folder, below, create).map(Some)
    }

    /// The path below the folder that it is confined to.
    fn relative_path(&self, folder: &Path) -> io::Result<&Path> {
        let below = self.path.strip_prefix(folder).map_err(|_| new_outside_error())?;
        let mut depth = 0_usize;
        for part in below.components() {
            depth = match part {
                Component::Normal(_) => depth + 1,
                Component::CurDir => depth,
                Component::ParentDir => depth.checked_sub(1).ok_or_else(new_outside_error)?,
                Component::RootDir | Component::Prefix(_) => return Err(new_outside_error()),
            };
        }
        Ok(below)
    }
}

impl HeldFolder {
    /// The path of the file with that name in the folder.
    #[must_use]
    pub fn file_path(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    /// The current path of the folder.
    #[must_use]
    pub fn current_path(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }
}

impl TextFolder {
    /// The folder at a path, wherever it is. What it is a link to is followed, links inside of it are not followed out.
    fn from_path(shown: PathBuf) -> Self {
        let base = if shown.as_os_str().is_empty() { Path::new(".") } else { &shown };
        let folder = base.canonicalize().ok().map(Arc::<Path>::from);
        let folder = folder.map(|folder| CampaignPath { path: folder.to_path_buf(), reach: PathScope::Within(folder) });
        Self { shown, folder }
    }

    /// Opens a text of the folder; nothing if there is none of that name.
    pub(super) fn open_text(&self, name: &str) -> Option<io::Result<File>> {
        let text =
            self.folder.as_ref().map(|folder| CampaignPath { path: folder.path.join(name), ..folder.clone() })?;
        match text.open_file() {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened),
        }
    }

    /// The names of its files, for suggestions; a folder that cannot be read has none.
    pub(super) fn list_names(&self) -> Vec<String> {
        let Some(CampaignPath { path, reach: PathScope::Within(folder) }) = &self.folder else { return Vec::new() };
        path.strip_prefix(folder).map(|below| walk::list_names(folder, below)).unwrap_or_default()
    }
}

/// The folder above; the path need not be absolute.
pub(super) fn parent_folder(folder: &Path) -> PathBuf {
    match folder.components().next_back() {
        Some(Component::Normal(_)) => folder.parent().unwrap_or(Path::new("")).to_owned(),
        _ => folder.join(".."),
    }
}

/// The finding about a name that leads out.
fn outside_finding(name: &str) -> Finding {
    let message = format!("`{name}` is outside the campaigns folder");
    Finding::new(&rules::PATH_OUTSIDE, message).help(
        "move the file into that folder and use its new path, or have a person run the campaign from the command line",
    )
}

/// Whether an error says that a path leads out.
#[must_use]
pub(super) fn is_outside(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<OutsidePathError>)
}

fn new_outside_error() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, OutsidePathError)
}

/// That the last part of a path is a link whose target does not exist.
fn dangling_link_error() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is a symbolic link to a file that does not exist")
}

/// Whether a name is only the folder itself or the one above it.
fn is_dots(name: &OsStr) -> bool {
    name == "." || name == ".."
}

impl fmt::Display for OutsidePathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path leads outside the allowed folder")
    }
}

impl Error for OutsidePathError {}

#[cfg(test)]
mod tests;
