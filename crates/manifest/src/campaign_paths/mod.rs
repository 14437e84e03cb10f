//! Paths in campaigns and profiles: the only module that resolves and opens them.
//!
//! A path is relative to the file that names it, and is limited by a [`PathScope`]. A command that a person runs can
//! open any file, but the assistants' connector can open only files in its folder. A path that leaves the folder is
//! refused before the file or its metadata is read. The refusal therefore does not reveal whether the file exists.
//!
//! Hard links and mounted folders count as part of the folder: anyone who can create one can read the files anyway.

mod walk;

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::{Component, Display, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use campaign_core::finding::{Finding, rules};
use campaign_core::regular_file;

/// The scope of the files that the paths of a campaign can reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathScope {
    /// Any file, for the command of a person.
    #[default]
    Anywhere,
    /// Files of this folder, which is absolute and contains no links.
    Within(Arc<Path>),
    /// Any file, for an editor, whose unsaved texts take precedence over the files on the disk.
    Editor(UnsavedTexts),
}

/// The texts of files that are open in an editor, which can differ from the files on the disk.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UnsavedTexts(Arc<BTreeMap<PathBuf, Arc<str>>>);

/// The size of a file and the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    bytes: u64,
    changed: Option<SystemTime>,
}

/// A path in a campaign or a profile, with its scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StoredPath", from = "StoredPath")]
pub struct CampaignPath {
    path: PathBuf,
    scope: PathScope,
}

/// The stored form of a path, for other processes. The path is absolute, because these have other working folders.
#[derive(Serialize, Deserialize)]
struct StoredPath {
    path: String,
    /// The folder that the path must not leave. `None` for any file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<String>,
}

/// The paths in one file.
#[derive(Clone, Debug)]
pub struct CampaignPaths {
    file: CampaignPath,
}

/// A folder with text files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TextFolder {
    /// The folder as it is shown.
    pub(super) display_path: PathBuf,
    /// The folder itself; `None` if it does not exist.
    folder: Option<CampaignPath>,
    unsaved: UnsavedTexts,
}

/// A folder that is held open: its files stay in it even if another folder replaces it in the meantime.
#[derive(Debug)]
pub struct HeldFolder {
    path: PathBuf,
    /// The open handle.
    _handle: Option<File>,
}

/// The error for a path that leaves the folder to which it is confined.
#[derive(Debug)]
struct OutsidePathError;

impl PathScope {
    /// A scope that is confined to a folder.
    ///
    /// # Errors
    /// If the folder does not exist.
    pub fn within(folder: &Path) -> io::Result<Self> {
        Ok(Self::Within(folder.canonicalize()?.into()))
    }
}

impl From<CampaignPath> for StoredPath {
    fn from(path: CampaignPath) -> Self {
        let within = match &path.scope {
            PathScope::Within(folder) => Some(folder.display().to_string()),
            PathScope::Anywhere | PathScope::Editor(_) => None,
        };
        Self { path: path.to_absolute().display().to_string(), within }
    }
}

impl From<StoredPath> for CampaignPath {
    fn from(StoredPath { path, within }: StoredPath) -> Self {
        let scope = within.map_or(PathScope::Anywhere, |folder| PathScope::Within(Path::new(&folder).into()));
        Self { path: path.into(), scope }
    }
}

impl UnsavedTexts {
    /// A set of unsaved texts, each with the absolute path of its file.
    pub fn new(texts: impl IntoIterator<Item = (PathBuf, Arc<str>)>) -> Self {
        // A file is found by its path and, if that contains links, by its real path.
        let by_both_paths =
            texts.into_iter().flat_map(|(path, text)| [(real_path(&path), Arc::clone(&text)), (path, text)]);
        Self(Arc::new(by_both_paths.collect()))
    }

    /// The text of a file, if the file is open in the editor.
    pub fn find(&self, path: &Path) -> Option<&Arc<str>> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(path).or_else(|| self.0.get(&real_path(path)))
    }
}

/// Shows only the paths, because the texts can contain secrets.
impl fmt::Debug for UnsavedTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The path with all symbolic links resolved. The file itself need not exist.
fn real_path(path: &Path) -> PathBuf {
    let in_real_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(in_real_folder).unwrap_or_else(|| path.to_owned())
}

impl FileState {
    /// The size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl CampaignPaths {
    /// The paths that a file names, which are resolved within this scope.
    pub fn new(file: &Path, scope: PathScope) -> Self {
        Self { file: CampaignPath { path: file.to_owned(), scope } }
    }

    /// The file that contains these paths.
    pub fn file(&self) -> &CampaignPath {
        &self.file
    }

    /// Resolves a path.
    ///
    /// # Errors
    /// If the path is outside the scope.
    pub fn resolve_path(&self, name: &str) -> Result<CampaignPath, Box<Finding>> {
        let path = self.file.join_sibling(name);
        match path.leaves_folder() {
            false => Ok(path),
            true => Err(Box::new(outside_finding(name))),
        }
    }

    /// Resolves a program: a path is relative to the file, and a bare name is looked up by the system.
    ///
    /// The program is not confined to the scope, because only people start programs, never assistants.
    pub(super) fn resolve_program(&self, word: &str) -> String {
        if !word.contains('/') {
            return word.to_owned();
        }
        let path = self.file_folder().join(word);
        std::path::absolute(&path).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The absolute folder of the file.
    pub(super) fn absolute_folder(&self) -> PathBuf {
        let folder = match self.file_folder() {
            folder if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
    }

    /// The folders with text files, in search order: the campaign file's folder, `templates/` in it, and `templates/`
    /// in the folder above. Authors of confined campaigns cannot change the templates in the folder above.
    pub(super) fn text_folders(&self) -> Vec<TextFolder> {
        let folder = self.file_folder();
        let default_folders = [folder.to_owned(), folder.join("templates")];
        let unsaved = match &self.file.scope {
            PathScope::Editor(unsaved) => unsaved.clone(),
            PathScope::Anywhere | PathScope::Within(_) => UnsavedTexts::default(),
        };
        let at_path = |display_path| TextFolder::at_path(display_path, unsaved.clone());
        let default_folders = default_folders.map(|display_path| match &self.file.scope {
            PathScope::Anywhere | PathScope::Editor(_) => at_path(display_path),
            scope @ PathScope::Within(_) => {
                let folder = CampaignPath { path: display_path.clone(), scope: scope.clone() };
                TextFolder { folder: Some(folder), display_path, unsaved: UnsavedTexts::default() }
            }
        });
        default_folders.into_iter().chain([at_path(parent_folder(folder).join("templates"))]).collect()
    }

    fn file_folder(&self) -> &Path {
        self.file.path.parent().unwrap_or(Path::new(""))
    }
}

impl CampaignPath {
    /// A path that a person named, which is not confined to a folder.
    pub fn anywhere(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), scope: PathScope::Anywhere }
    }

    /// A path that a person opened in an editor with these unsaved texts.
    pub fn in_editor(path: impl Into<PathBuf>, unsaved: &UnsavedTexts) -> Self {
        Self { path: path.into(), scope: PathScope::Editor(unsaved.clone()) }
    }

    /// The path of a file in a folder. The folder's path must be absolute and contain no links.
    pub fn within(folder: &Arc<Path>, name: impl AsRef<Path>) -> Self {
        Self { path: folder.join(name), scope: PathScope::Within(Arc::clone(folder)) }
    }

    /// The path as it is shown. Only [`Self::open_file`] opens it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path for a message.
    pub fn display(&self) -> Display<'_> {
        self.path.display()
    }

    /// Another path with the same scope.
    pub fn with_path(&self, path: &Path) -> Self {
        Self { path: path.to_owned(), scope: self.scope.clone() }
    }

    /// The same path as an absolute path.
    #[must_use]
    pub fn to_absolute(&self) -> Self {
        self.with_path(&std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()))
    }

    /// A path relative to the folder that contains this path, with the same scope.
    pub(crate) fn join_sibling(&self, name: impl AsRef<Path>) -> Self {
        Self { path: self.path.parent().unwrap_or(Path::new("")).join(name), scope: self.scope.clone() }
    }

    /// Opens the regular file at this path. A link is followed only if its target is within the scope, even if the link
    /// is replaced while the path is being resolved.
    ///
    /// # Errors
    /// If the file cannot be opened, is not a regular file, or is outside the scope.
    pub fn open_file(&self) -> io::Result<File> {
        match &self.scope {
            PathScope::Anywhere | PathScope::Editor(_) => regular_file::open(&self.path),
            PathScope::Within(folder) => {
                let file = walk::open_below(folder, self.relative_path(folder)?)
                    .map_err(regular_file::record_handle_exhaustion)?;
                regular_file::require_regular(file)
            }
        }
    }

    /// Opens the text at this path: the unsaved text of an editor, or else the file.
    ///
    /// # Errors
    /// As for [`Self::open_file`].
    pub(super) fn open_text(&self) -> io::Result<Box<dyn Read>> {
        if let PathScope::Editor(unsaved) = &self.scope
            && let Some(text) = unsaved.find(&self.path)
        {
            return Ok(unsaved_reader(text));
        }
        Ok(Box::new(self.open_file()?))
    }

    /// The state of the file on the disk, for detecting changes. `None` if the file cannot be opened.
    pub fn read_state(&self) -> Option<FileState> {
        let metadata = self.open_file().ok()?.metadata().ok()?;
        Some(FileState { bytes: metadata.len(), changed: metadata.modified().ok() })
    }

    /// Whether the path exists.
    pub fn is_present(&self) -> bool {
        match &self.scope {
            PathScope::Anywhere | PathScope::Editor(_) => self.path.exists(),
            PathScope::Within(folder) => {
                self.relative_path(folder).is_ok_and(|relative| walk::exists_below(folder, relative))
            }
        }
    }

    /// Whether the path leaves its folder. The check accesses nothing outside the folder.
    pub(crate) fn leaves_folder(&self) -> bool {
        let PathScope::Within(folder) = &self.scope else { return false };
        self.relative_path(folder)
            .and_then(|relative| walk::check_path(folder, relative))
            .is_err_and(|error| is_outside(&error))
    }

    /// The reason why an assistant must not write to the path; `None` if writing is allowed or a person named the path.
    pub fn find_write_refusal(&self) -> Option<&'static str> {
        let PathScope::Within(folder) = &self.scope else { return None };
        if self.leaves_folder() {
            return Some("outside the campaigns folder");
        }
        let is_link = self.relative_path(folder).is_ok_and(|relative| walk::is_link_below(folder, relative));
        is_link.then_some("a symbolic link")
    }

    /// Whether the path is confined to a folder because an assistant might have named it.
    pub fn is_confined(&self) -> bool {
        matches!(self.scope, PathScope::Within(_))
    }

    /// Opens the folder in which a confined file is written, and creates it if requested. `None` if a person named the
    /// path.
    ///
    /// # Errors
    /// If the path is outside its folder, or the folder cannot be opened or created.
    pub fn hold_folder(&self, create: bool) -> io::Result<Option<HeldFolder>> {
        let PathScope::Within(folder) = &self.scope else { return Ok(None) };
        let relative = self.relative_path(folder)?.parent().unwrap_or(Path::new(""));
        walk::hold_folder(folder, relative, create).map(Some)
    }

    /// The path relative to the folder that it is confined to.
    fn relative_path(&self, folder: &Path) -> io::Result<&Path> {
        let relative = self.path.strip_prefix(folder).map_err(|_| outside_path_error())?;
        let mut depth = 0_usize;
        for part in relative.components() {
            depth = match part {
                Component::Normal(_) => depth + 1,
                Component::CurDir => depth,
                Component::ParentDir => depth.checked_sub(1).ok_or_else(outside_path_error)?,
                Component::RootDir | Component::Prefix(_) => return Err(outside_path_error()),
            };
        }
        Ok(relative)
    }
}

impl HeldFolder {
    /// The path of the file with this name in the folder.
    pub fn file_path(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    /// The current path of the folder.
    pub fn current_path(&self) -> PathBuf {
        self.path.canonicalize().unwrap_or_else(|_| self.path.clone())
    }
}

impl TextFolder {
    /// The folder at a path. A link to the folder is followed, but links in the folder to files outside it are not.
    fn at_path(display_path: PathBuf, unsaved: UnsavedTexts) -> Self {
        let base = if display_path.as_os_str().is_empty() { Path::new(".") } else { &display_path };
        let folder = base.canonicalize().ok().map(Arc::<Path>::from);
        let folder = folder.map(|folder| CampaignPath { path: folder.to_path_buf(), scope: PathScope::Within(folder) });
        Self { display_path, folder, unsaved }
    }

    /// Opens a text in the folder; `None` if the folder contains no text with this name.
    pub(super) fn open_text(&self, name: &str) -> Option<io::Result<Box<dyn Read>>> {
        let text =
            self.folder.as_ref().map(|folder| CampaignPath { path: folder.path.join(name), ..folder.clone() })?;
        if let Some(text) = self.unsaved.find(&text.path) {
            return Some(Ok(unsaved_reader(text)));
        }
        match text.open_file() {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            opened => Some(opened.map(|file| Box::new(file) as Box<dyn Read>)),
        }
    }

    /// The names of the files in the folder, for suggestions; empty if the folder cannot be read.
    pub(super) fn list_names(&self) -> Vec<String> {
        let Some(CampaignPath { path, scope: PathScope::Within(folder) }) = &self.folder else { return Vec::new() };
        path.strip_prefix(folder).map(|relative| walk::list_names(folder, relative)).unwrap_or_default()
    }
}

fn unsaved_reader(text: &Arc<str>) -> Box<dyn Read> {
    Box::new(Cursor::new(text.as_bytes().to_vec()))
}

/// The folder above; the path need not be absolute.
pub(super) fn parent_folder(folder: &Path) -> PathBuf {
    match folder.components().next_back() {
        Some(Component::Normal(_)) => folder.parent().unwrap_or(Path::new("")).to_owned(),
        _ => folder.join(".."),
    }
}

/// The finding about a path outside the folder.
fn outside_finding(name: &str) -> Finding {
    let message = format!("`{name}` is outside the campaigns folder");
    Finding::new(&rules::PATH_OUTSIDE, message).help(
        "move the file into that folder and use its new path, or have a person run the campaign from the command line",
    )
}

/// Whether the error says that a path is outside the folder.
pub(super) fn is_outside(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn Error + Send + Sync>::is::<OutsidePathError>)
}

fn outside_path_error() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, OutsidePathError)
}

/// The error for a path whose last part is a link to a missing target.
fn dangling_link_error() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is a symbolic link to a file that does not exist")
}

/// Whether a name is `.` or `..`.
fn is_dots(name: &OsStr) -> bool {
    name == "." || name == ".."
}

impl fmt::Display for OutsidePathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path points outside the allowed folder")
    }
}

impl Error for OutsidePathError {}

#[cfg(test)]
mod tests;
