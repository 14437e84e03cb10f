//! Where an API key is kept, and reading it from there.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::regular_file;

/// The most bytes that a key may have.
const MAX_BYTES: u64 = 4096;

/// Where an API key is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// In an environment variable of that name.
    Env(String),
    /// In a file that only its owner can read.
    File(PathBuf),
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretSource::Env(name) => write!(f, "the environment variable `{name}`"),
            SecretSource::File(path) => write!(f, "the file `{}`", path.display()),
        }
    }
}

impl SecretSource {
    /// The same from whatever folder it is read: a server may notify of a run that another process left.
    pub(in crate::manifest) fn with_absolute_path(self) -> Self {
        match self {
            Self::File(path) => Self::File(std::path::absolute(&path).unwrap_or(path)),
            variable @ Self::Env(_) => variable,
        }
    }

    /// Reads the key, which people know as `what`; `env` looks a variable up. White space around the key is dropped.
    ///
    /// # Errors
    /// Why there is no key, and what to do; never any part of the key.
    pub fn read_secret(&self, what: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<SecretString, String> {
        let (text, place) = match self {
            SecretSource::Env(name) => {
                let missing = || format!("the environment variable `{name}` is not set; set it to {what}");
                (env(name).ok_or_else(missing)?, format!("the environment variable `{name}`"))
            }
            SecretSource::File(path) => (read_secret_file(path, what)?, format!("`{}`", path.display())),
        };
        let key = text.trim_start_matches('\u{feff}').trim();
        if key.is_empty() {
            return Err(format!("{place} is empty; store {what} there"));
        }
        if key.chars().any(char::is_control) {
            return Err(format!("{place} contains more than one line; store only {what} there"));
        }
        Ok(SecretString::from(key))
    }
}

fn read_secret_file(path: &Path, what: &str) -> Result<String, String> {
    let name = path.display();
    let unreadable = |error: std::io::Error| {
        format!("cannot read the file `{name}`, which should contain {what}: {error}; check its path in the profile")
    };
    let file = regular_file::open(path).map_err(unreadable)?;
    if is_open_to_others(&file.metadata().map_err(unreadable)?) {
        return Err(format!("other users can read the file `{name}`, which contains {what}; run `chmod 600 {name}`"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!(
            "the file `{name}`, which should contain only {what}, is larger than {MAX_BYTES} bytes; \
            remove everything else from it"
        ));
    }
    Ok(text)
}

#[cfg(unix)]
fn is_open_to_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn key_from_environment_is_trimmed() {
        let env = |name: &str| (name == "KEY").then(|| " s3cret\n".to_owned());
        let key = SecretSource::Env("KEY".into()).read_secret("the API key", &env).unwrap();
        assert_eq!(key.expose_secret(), "s3cret");
        assert!(
            SecretSource::Env("OTHER".into())
                .read_secret("the API key", &env)
                .unwrap_err()
                .contains("`OTHER` is not set")
        );
        let empty = |_: &str| Some(" ".to_owned());
        assert!(SecretSource::Env("KEY".into()).read_secret("the API key", &empty).unwrap_err().contains("is empty"));
    }

    #[cfg(unix)]
    #[test]
    fn key_file_must_be_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gateway.key");
        fs::write(&path, "s3cret\n").unwrap();
        let read = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            SecretSource::File(path.clone()).read_secret("the API key", &|_| None)
        };
        assert_eq!(read(0o600).unwrap().expose_secret(), "s3cret");
        for mode in [0o640, 0o604, 0o660] {
            assert!(read(mode).unwrap_err().contains("chmod 600"), "{mode:o}");
        }
        fs::write(&path, "s3cret\nmore").unwrap();
        let error = read(0o600).unwrap_err();
        assert!(error.contains("more than one line") && !error.contains("s3cret"));
    }
}
