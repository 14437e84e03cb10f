//! The first files of a new campaign, drawn up for a list that there is or with one of made-up people; and the profile
//! of a gateway.
//!
//! It never overwrites a file, and writes all of them or none; a profile is put behind those that there are.

mod list;
mod live_gateway;
mod profile;
mod texts;

pub use list::{DraftList, InvalidRows};
pub use live_gateway::{GatewayLine, find_campaigns};
pub use profile::{KeyFile, ProfileDraft};
pub use texts::{DraftFile, draft_campaign};

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::finding::Finding;

/// Why no campaign was drawn up.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The list's name cannot stand in a campaign file.
    #[error("the file name `{}` is not valid UTF-8; rename the file", .0.display())]
    ListName(PathBuf),
    /// The list cannot be opened.
    #[error("cannot open the list `{}`: {error}", path.display())]
    ListUnreadable {
        /// The list.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// No campaign can use the list.
    #[error("cannot create a campaign from this list; nothing was written")]
    ListRefused(Vec<Finding>),
    /// The profile cannot stand in the file.
    #[error("cannot add this profile; nothing was written")]
    ProfileRefused(Vec<Finding>),
    /// The profiles that there are cannot be read.
    #[error("cannot read the gateway profiles in `{}`: {error}; nothing was written", path.display())]
    ProfilesUnreadable {
        /// Their file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A file is there already.
    #[error("`{0}` already exists; nothing was written; move the file, or choose another name")]
    AlreadyExists(String),
    /// A file cannot be written.
    #[error("cannot write `{path}`: {error}; nothing was written")]
    CannotWrite {
        /// The file.
        path: String,
        /// Why not.
        error: io::Error,
    },
}

/// Writes all files or none; one that several campaigns share stays as it is.
///
/// # Errors
/// When another of them is there already, or one cannot be written.
pub fn write_drafts(drafts: &[DraftFile]) -> Result<(), DraftError> {
    let is_there = |draft: &DraftFile| Path::new(&draft.path).symlink_metadata().is_ok();
    if let Some(draft) = drafts.iter().find(|draft| !draft.shared && is_there(draft)) {
        return Err(DraftError::AlreadyExists(draft.path.clone()));
    }
    let missing: Vec<&DraftFile> = drafts.iter().filter(|draft| !draft.shared || !is_there(draft)).collect();
    for (index, draft) in missing.iter().enumerate() {
        if let Err(error) = create_file(draft) {
            for written in &missing[..index] {
                // The reason that is reported is the first one.
                let _ = fs::remove_file(&written.path);
            }
            let path = draft.path.clone();
            return Err(match error.kind() {
                ErrorKind::AlreadyExists => DraftError::AlreadyExists(path),
                _ => DraftError::CannotWrite { path, error },
            });
        }
    }
    Ok(())
}

fn create_file(draft: &DraftFile) -> io::Result<()> {
    let path = Path::new(&draft.path);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(draft.text.as_bytes()).inspect_err(|_| {
        // Half a file helps nobody.
        let _ = fs::remove_file(path);
    })
}
