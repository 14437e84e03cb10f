//! A profile for a gateway: the file of its key, and its place behind the profiles that there are.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::DraftError;
use crate::manifest::{NewProfile, Profile, append_profile};
use crate::{private, regular_file};

/// The most bytes of a file with profiles.
const MAX_BYTES: u64 = 1024 * 1024;

/// A file of profiles with a new one, not written yet.
#[derive(Debug)]
pub struct ProfileDraft {
    /// The new profile, as it will be read.
    pub profile: Profile,
    file: PathBuf,
    text: String,
}

impl ProfileDraft {
    /// Draws up the profile for a file, which may not be there yet.
    ///
    /// # Errors
    /// When the file cannot be read, or the profile cannot stand in it.
    pub fn prepare(file: &Path, new: &NewProfile) -> Result<Self, DraftError> {
        let unreadable = |error| DraftError::ProfilesUnreadable { path: file.to_owned(), error };
        let mut text = String::new();
        match regular_file::open(file) {
            Ok(there) => drop(there.take(MAX_BYTES).read_to_string(&mut text).map_err(unreadable)?),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(error)),
        }
        let (text, profile) = append_profile(file, &text, new).map_err(DraftError::ProfileRefused)?;
        Ok(Self { profile, file: file.to_owned(), text })
    }

    /// Puts the file in its place whole, with the mode that it had; behind a link, where the link leads.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self) -> Result<(), DraftError> {
        let unwritten = |error| DraftError::CannotWrite { path: self.file.display().to_string(), error };
        let place = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        replace_file(&place, self.text.as_bytes()).map_err(unwritten)
    }
}

/// Replaces a file by one with these bytes and the same mode.
pub(super) fn replace_file(place: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = place.file_name().unwrap_or_default().to_owned();
    beside.push(".new");
    let temporary = place.with_file_name(beside);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| fs::metadata(place).map_or(Ok(()), |before| file.set_permissions(before.permissions())))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, place))
        .and_then(|()| private::sync_entry(place));
    written.inspect_err(|_| {
        // The reason that is reported is the first one.
        let _ = fs::remove_file(&temporary);
    })
}

/// What keeps a folder with keys out of git.
const GITIGNORE: &str = ".gitignore";

/// A key in a file of its own, that only its owner can read; dropped before it is kept, the file and its new folder go.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// The folder that was made for it.
    folder: Option<PathBuf>,
    kept: bool,
}

impl KeyFile {
    /// Writes a key into a new file. A folder that is made for it keeps what lies in it out of git.
    ///
    /// # Errors
    /// When there is such a file, or it cannot be written.
    pub fn write(path: &Path, key: &SecretString) -> Result<Self, DraftError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists => DraftError::AlreadyExists(path.display().to_string()),
            _ => DraftError::CannotWrite { path: path.display().to_string(), error },
        };
        let new = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
        if let Some(folder) = new {
            private::create_folder(folder).and_then(|()| fs::write(folder.join(GITIGNORE), "*\n")).map_err(failed)?;
        }
        if path.symlink_metadata().is_ok() {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let mut file = private::open_file(path, private::ExistingFile::Keep).map_err(failed)?;
        let written = Self { path: path.to_owned(), folder: new.map(Path::to_owned), kept: false };
        let line = [key.expose_secret().as_bytes(), b"\n"];
        line.iter().try_for_each(|bytes| file.write_all(bytes)).and_then(|()| file.sync_all()).map_err(failed)?;
        private::sync_entry(path).map_err(failed)?;
        Ok(written)
    }

    /// Lets the file stay.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        if !self.kept {
            // Nobody needs it, and nobody can be told.
            let _ = fs::remove_file(&self.path);
            if let Some(folder) = &self.folder {
                let _ = fs::remove_file(folder.join(GITIGNORE)).and_then(|()| fs::remove_dir(folder));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{EndpointUrl, SecretSource};

    fn new_profile() -> NewProfile {
        NewProfile {
            name: "production".into(),
            base_url: EndpointUrl::parse("https://gateway.example").unwrap(),
            async_url: None,
            api_key: SecretSource::Env("KEY".into()),
            rate: Some("10/s".into()),
        }
    }

    #[cfg(unix)]
    #[test]
    fn profiles_file_keeps_its_mode_and_symlink() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.yaml"), folder.path().join("gateways.yaml"));
        fs::write(&real, "# ours\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real.yaml", &link).unwrap();
        ProfileDraft::prepare(&link, &new_profile()).unwrap().write().unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::read_to_string(&real).unwrap().starts_with("# ours\n\nproduction:\n"));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    }

    #[cfg(unix)]
    #[test]
    fn key_file_is_private_and_removed_unless_kept() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secrets/production.key");
        let key = SecretString::from("s3cret");
        drop(KeyFile::write(&path, &key).unwrap());
        assert!(!path.exists());
        KeyFile::write(&path, &key).unwrap().keep();
        assert_eq!(fs::read_to_string(&path).unwrap(), "s3cret\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_to_string(path.with_file_name(".gitignore")).unwrap(), "*\n");
        assert!(matches!(KeyFile::write(&path, &key), Err(DraftError::AlreadyExists(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "s3cret\n", "the one that is there stays");
    }
}
