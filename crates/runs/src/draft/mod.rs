//! Drafts of new campaigns, for an existing list, a sample list or an example, and of gateway profiles.
//!
//! A draft never overwrites a file; all files are written or none. A profile is appended to the existing ones.

mod campaign;
mod gateway;

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use campaign_core::finding::Finding;

pub use campaign::{
    DraftFile, DraftList, EXAMPLES, ExampleCampaign, InvalidRows, draft_campaign, draft_example, find_example,
};

pub use gateway::{GatewayLine, KeyFile, ProfileDraft, find_campaigns};

/// Why no draft was written.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// The file name of the list is not valid in a campaign file.
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
    /// The profile is not valid.
    #[error("cannot add this profile; nothing was written")]
    ProfileRefused(Vec<Finding>),
    /// The existing profiles cannot be read.
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

/// Writes all files or none. Existing files that campaigns share are kept.
///
/// # Errors
/// If another one of them exists, or one cannot be written.
pub fn write_drafts(drafts: &[DraftFile]) -> Result<(), DraftError> {
    let is_there = |draft: &DraftFile| Path::new(&draft.path).symlink_metadata().is_ok();
    if let Some(draft) = drafts.iter().find(|draft| !draft.shared && is_there(draft)) {
        return Err(DraftError::AlreadyExists(draft.path.clone()));
    }
    let missing: Vec<&DraftFile> = drafts.iter().filter(|draft| !draft.shared || !is_there(draft)).collect();
    for (index, draft) in missing.iter().enumerate() {
        if let Err(error) = create_file(draft) {
            for written in &missing[..index] {
                // The first error is reported.
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
        // A partial file is useless.
        let _ = fs::remove_file(path);
    })
}
