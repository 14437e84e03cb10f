//! Drafts of gateway profiles and of new campaigns. A campaign is drafted for an existing list, a sample list or an
//! example.
//!
//! A draft never overwrites a file, and either all of its files are written or none. A new profile is added to an
//! existing gateway file, and a `gateway` line to an existing campaign file. The rest of these files stays unchanged.

mod campaign;

pub use campaign::{
    DraftFile, DraftList, EXAMPLES, ExampleCampaign, InvalidRows, draft_campaign, draft_example, find_example,
};

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use campaign_core::finding::Finding;
use campaign_core::{private, regular_file};
use campaign_manifest::{NewProfile, Profile, append_profile};
use secrecy::{ExposeSecret as _, SecretString};
use serde_yaml::{Mapping, Value};

/// The reason no draft was written.
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
        /// The I/O error.
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
        /// The file of the profiles.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// A file already exists.
    #[error("`{0}` already exists; nothing was written; move the file, or choose another name")]
    AlreadyExists(String),
    /// A file cannot be written.
    #[error("cannot write `{path}`: {error}; nothing was written")]
    CannotWrite {
        /// The file.
        path: String,
        /// The I/O error.
        error: io::Error,
    },
}

/// Writes all files or none. Existing files that campaigns share are kept.
///
/// # Errors
/// If a file that is not shared already exists, or a file cannot be written.
pub fn write_drafts(drafts: &[DraftFile]) -> Result<(), DraftError> {
    let exists = |draft: &DraftFile| Path::new(&draft.path).symlink_metadata().is_ok();
    if let Some(draft) = drafts.iter().find(|draft| !draft.shared && exists(draft)) {
        return Err(DraftError::AlreadyExists(draft.path.clone()));
    }
    let missing: Vec<&DraftFile> = drafts.iter().filter(|draft| !draft.shared || !exists(draft)).collect();
    for (index, draft) in missing.iter().enumerate() {
        if let Err(error) = create_file(draft) {
            for written in &missing[..index] {
                // The first error is reported, so a failure to remove the file is ignored.
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

/// The maximum size of a profiles file or a campaign file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// A profiles file with a new profile that is not written yet.
#[derive(Debug)]
pub struct ProfileDraft {
    /// The new profile.
    pub profile: Profile,
    file: PathBuf,
    text: String,
}

impl ProfileDraft {
    /// Prepares to add the profile to a file, which might not exist yet.
    ///
    /// # Errors
    /// If the file cannot be read or is larger than 1 MiB, or the profile is invalid.
    pub fn prepare(file: &Path, new: &NewProfile) -> Result<Self, DraftError> {
        let unreadable = |error| DraftError::ProfilesUnreadable { path: file.to_owned(), error };
        let mut text = String::new();
        match regular_file::open(file) {
            Ok(existing) => drop(existing.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(error)),
        }
        // Writing only a part of the file back would delete the profiles in the rest.
        if text.len() as u64 > MAX_BYTES {
            return Err(unreadable(io::Error::other("the file is larger than 1 MiB")));
        }
        let (text, profile) = append_profile(file, &text, new).map_err(DraftError::ProfileRefused)?;
        Ok(Self { profile, file: file.to_owned(), text })
    }

    /// Creates the file, or replaces it atomically and keeps its mode. A symbolic link is followed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self) -> Result<(), DraftError> {
        let unwritten = |error| DraftError::CannotWrite { path: self.file.display().to_string(), error };
        let target = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        replace_file(&target, self.text.as_bytes()).map_err(unwritten)
    }
}

/// Writes these bytes to a file atomically. An existing file is replaced by one with the same mode.
fn replace_file(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary_name = target.file_name().unwrap_or_default().to_owned();
    temporary_name.push(".new");
    let temporary = target.with_file_name(temporary_name);
    let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| fs::metadata(target).map_or(Ok(()), |before| file.set_permissions(before.permissions())))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, target))
        .and_then(|()| private::sync_entry(target));
    written.inspect_err(|_| {
        // The first error is reported, so a failure to remove the file is ignored.
        let _ = fs::remove_file(&temporary);
    })
}

/// The file that keeps a folder with keys out of git.
const GITIGNORE: &str = ".gitignore";

/// A new key file that only its owner can read. If it is dropped before `keep`, the file and its new folder are
/// removed.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    /// The folder that was created for the file.
    folder: Option<PathBuf>,
    is_kept: bool,
}

impl KeyFile {
    /// Writes a key into a new file. A folder that is created for the file is excluded from git.
    ///
    /// # Errors
    /// If the file exists or cannot be written.
    pub fn write(path: &Path, key: &SecretString) -> Result<Self, DraftError> {
        let failed = |error: io::Error| match error.kind() {
            ErrorKind::AlreadyExists => DraftError::AlreadyExists(path.display().to_string()),
            _ => DraftError::CannotWrite { path: path.display().to_string(), error },
        };
        let new_folder = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
        if let Some(folder) = new_folder {
            private::create_folder(folder).and_then(|()| fs::write(folder.join(GITIGNORE), "*\n")).map_err(failed)?;
        }
        if path.symlink_metadata().is_ok() {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let mut file = private::open_file(path, private::ExistingFile::Keep).map_err(failed)?;
        // In a shared folder, the group might be able to read new files, and such a key file is rejected.
        private::restrict_to_owner(&file).map_err(failed)?;
        let key_file = Self { path: path.to_owned(), folder: new_folder.map(Path::to_owned), is_kept: false };
        let line = [key.expose_secret().as_bytes(), b"\n"];
        line.iter().try_for_each(|bytes| file.write_all(bytes)).and_then(|()| file.sync_all()).map_err(failed)?;
        private::sync_entry(path).map_err(failed)?;
        Ok(key_file)
    }

    /// Keeps the file, which would otherwise be removed on drop.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // The file is no longer needed, and an error here cannot be reported.
            let _ = fs::remove_file(&self.path);
            if let Some(folder) = &self.folder {
                let _ = fs::remove_file(folder.join(GITIGNORE)).and_then(|()| fs::remove_dir(folder));
            }
        }
    }
}

/// The key of a campaign file that names the gateway profile.
const GATEWAY_KEY: &str = "gateway";
/// A key that only campaign files have.
const CHANNELS_KEY: &str = "channels";

/// A `gateway` line for a campaign file: the text of the file before and after the line is added.
#[derive(Debug)]
pub struct GatewayLine {
    file: PathBuf,
    before: String,
    text: String,
}

impl GatewayLine {
    /// Prepares to add a `gateway` line to a campaign file. `None` if the file is not a campaign, already names a
    /// gateway, or cannot be extended by one line.
    pub fn prepare(file: &Path, gateway: &str) -> Option<Self> {
        let before = read_campaign_text(file)?;
        let text = insert_gateway(&before, gateway)?;
        Some(Self { file: file.to_owned(), before, text })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If the file cannot be written, or has changed since it was read.
    pub fn write(&self) -> Result<(), DraftError> {
        let unwritten = |error| DraftError::CannotWrite { path: self.file.display().to_string(), error };
        if read_campaign_text(&self.file).as_ref() != Some(&self.before) {
            return Err(unwritten(io::Error::other(
                "the file has changed in the meantime; run the same command again",
            )));
        }
        let target = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        replace_file(&target, self.text.as_bytes()).map_err(unwritten)
    }
}

/// The campaign files of a folder.
pub fn find_campaigns(folder: &Path) -> Vec<PathBuf> {
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let read_keys = |path: &PathBuf| serde_yaml::from_str::<Mapping>(&read_campaign_text(path)?).ok();
    let is_campaign = |path: &PathBuf| read_keys(path).is_some_and(|keys| keys.contains_key(CHANNELS_KEY));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_yaml(path) && is_campaign(path)).collect()
}

/// Reads a file. `None` if the file cannot be read, or is larger than a campaign file can be.
fn read_campaign_text(file: &Path) -> Option<String> {
    let mut text = String::new();
    let read = regular_file::open(file).ok()?.take(MAX_BYTES + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= MAX_BYTES).then_some(text)
}

/// Inserts a `gateway` line after a commented-out `gateway` line, or else at the end of the file. `None` if the text is
/// not a campaign, already names a gateway, or would not parse as expected with the line.
fn insert_gateway(before: &str, gateway: &str) -> Option<String> {
    let mut expected: Mapping = serde_yaml::from_str(before).ok()?;
    if expected.contains_key(GATEWAY_KEY) || !expected.contains_key(CHANNELS_KEY) {
        return None;
    }
    expected.insert(GATEWAY_KEY.into(), gateway.into());
    let line_break = if before.contains("\r\n") { "\r\n" } else { "\n" };
    let is_comment = |line: &&str| line.strip_prefix('#').is_some_and(|line| line.trim_start().starts_with("gateway:"));
    let mut lines: Vec<&str> = before.split_inclusive('\n').collect();
    let at = lines.iter().rposition(is_comment).map_or(lines.len(), |comment| comment + 1);
    // The last line of a file might lack its line break.
    let lacks_line_break = at > 0 && !lines[at - 1].ends_with('\n');
    let line = format!("{}{GATEWAY_KEY}: {gateway}{line_break}", if lacks_line_break { line_break } else { "" });
    lines.insert(at, &line);
    let text = lines.concat();
    // The line must not end up after `...`, after a flow mapping, or inside a quoted string.
    let is_as_expected = serde_yaml::from_str::<Value>(&text).is_ok_and(|parsed| parsed == Value::Mapping(expected));
    is_as_expected.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_manifest::{EndpointUrl, SecretSource};

    fn new_profile() -> NewProfile {
        NewProfile {
            name: "production".into(),
            base_url: EndpointUrl::parse("https://gateway.example").unwrap(),
            async_url: None,
            api_key: SecretSource::Env("KEY".into()),
            rate: Some("10/s".into()),
            home: None,
        }
    }

    #[test]
    fn profile_is_not_added_to_a_file_that_is_too_large() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let large = format!("{}\n", "#".repeat(1024 * 1024));
        fs::write(&file, &large).unwrap();
        let error = ProfileDraft::prepare(file.path(), &new_profile()).unwrap_err().to_string();
        assert!(error.contains("larger than 1 MiB; nothing was written"), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), large);
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
        assert_eq!(fs::read_to_string(&path).unwrap(), "s3cret\n", "the existing key file is unchanged");
    }
}

#[cfg(test)]
mod gateway_line_tests {
    use super::*;

    const CAMPAIGN: &str = "channels: [sms: { message: hi }]\n";

    #[test]
    fn changed_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sale.yaml");
        fs::write(&file, CAMPAIGN).unwrap();
        let line = GatewayLine::prepare(&file, "main").unwrap();
        let edited = format!("{CAMPAIGN}# edited\n");
        fs::write(&file, &edited).unwrap();
        assert!(line.write().is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), edited);
        GatewayLine::prepare(&file, "main").unwrap().write().unwrap();
        assert!(fs::read_to_string(&file).unwrap().ends_with("gateway: main\n"));
    }

    #[test]
    fn file_above_the_size_limit_is_not_extended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sale.yaml");
        fs::write(&file, format!("{CAMPAIGN}{}", "# filler\n".repeat(130_000))).unwrap();
        assert!(GatewayLine::prepare(&file, "main").is_none());
    }

    #[test]
    fn inserted_line_is_below_its_comment_and_changes_no_other_line() {
        let before =
            "# Sale\nchannels: [sms: { message: hi }] # one\n\n# gateway: production   # to send it for real\n# end\n";
        let after = "# Sale\nchannels: [sms: { message: hi }] # one\n\n# gateway: production   # to send it for real\n\
                     gateway: main\n# end\n";
        assert_eq!(insert_gateway(before, "main").as_deref(), Some(after));
    }

    #[test]
    fn line_is_appended_with_the_line_endings_of_the_file() {
        for (before, after) in [
            ("channels: []\n", "channels: []\ngateway: main\n"),
            ("channels: []", "channels: []\ngateway: main\n"),
            ("name: x\r\nchannels: []\r\n", "name: x\r\nchannels: []\r\ngateway: main\r\n"),
        ] {
            assert_eq!(insert_gateway(before, "main").as_deref(), Some(after));
        }
    }

    #[test]
    fn campaign_files_are_distinguished_from_other_yaml() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("a.yaml", "channels: []\n"), ("gateways.yaml", "x: {}\n"), ("b.txt", "channels: []\n")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        assert_eq!(find_campaigns(folder.path()), [folder.path().join("a.yaml")]);
        assert!(find_campaigns(Path::new("does-not-exist")).is_empty());
    }

    #[test]
    fn gateway_line_is_not_added_to_unsuitable_files() {
        for before in [
            "channels: []\ngateway: sandbox\n",
            "production:\n  base_url: https://gateway.example\n",
            "{ channels: [] }\n",
            "channels: []\n...\n",
            "channels: [\n",
            "",
            "phone,name\n",
        ] {
            assert_eq!(insert_gateway(before, "main"), None, "{before}");
        }
    }
}
