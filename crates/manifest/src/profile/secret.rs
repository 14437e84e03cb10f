//! Secrets of gateway profiles: where they are stored, reading them, and concealing them in findings.
//!
//! Every concealed byte is replaced by one byte, so that locations stay valid.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::is_environment_name;
use campaign_core::regular_file;

/// The maximum size of a key, in bytes.
const MAX_BYTES: u64 = 4096;

/// The location of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SecretSource {
    /// In the environment variable with this name.
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
    /// Makes the path absolute, because a server can send notifications about a run of another process.
    pub(crate) fn with_absolute_path(self) -> Self {
        match self {
            Self::File(path) => Self::File(std::path::absolute(&path).unwrap_or(path)),
            variable @ Self::Env(_) => variable,
        }
    }

    /// Reads the secret, called `noun` in messages; `env` looks up a variable. White space around the secret is
    /// trimmed.
    ///
    /// # Errors
    /// The problem and its remedy; never a part of the secret.
    pub fn read_secret(&self, noun: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<SecretString, String> {
        let (text, place) = match self {
            SecretSource::Env(name) => {
                let missing = || format!("the environment variable `{name}` is not set; set it to {noun}");
                (env(name).ok_or_else(missing)?, format!("the environment variable `{name}`"))
            }
            SecretSource::File(path) => (read_secret_file(path, noun)?, format!("`{}`", path.display())),
        };
        let key = text.trim_start_matches('\u{feff}').trim();
        if key.is_empty() {
            return Err(format!("{place} is empty; store {noun} there"));
        }
        if key.chars().any(char::is_control) {
            return Err(format!("{place} contains more than one line; store only {noun} there"));
        }
        Ok(SecretString::from(key))
    }
}

fn read_secret_file(path: &Path, noun: &str) -> Result<String, String> {
    let name = path.display();
    let explain_error = |error: std::io::Error| {
        format!("cannot read the file `{name}`, which should contain {noun}: {error}; check its path in the profile")
    };
    let file = regular_file::open(path).map_err(explain_error)?;
    if is_open_to_others(&file.metadata().map_err(explain_error)?) {
        return Err(format!("other users can read the file `{name}`, which contains {noun}; run `chmod 600 {name}`"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(explain_error)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!(
            "the file `{name}`, which should contain only {noun}, is larger than {MAX_BYTES} bytes; \
            remove everything else from it"
        ));
    }
    Ok(text)
}

/// Whether other users can access the file of a secret. A file owned by root may be readable by its group, so that a
/// server and its operators can share it.
#[cfg(unix)]
fn is_open_to_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    is_mode_open(metadata.mode(), metadata.uid())
}

#[cfg(unix)]
fn is_mode_open(mode: u32, owner: u32) -> bool {
    const SUPERUSER: u32 = 0;
    let forbidden_mode = if owner == SUPERUSER { 0o037 } else { 0o077 };
    mode & forbidden_mode != 0
}

#[cfg(not(unix))]
fn is_open_to_others(_: &fs::Metadata) -> bool {
    false
}

/// The prefix of an approver's private key, which people might write instead of the public key.
const PRIVATE_KEY_PREFIX: &str = "ed25519-private:";

/// Replaces everything after `api_key` and `secret` in the text of gateways.yaml, except references with `env` or
/// `file`. An approver's private key is replaced anywhere.
pub(crate) fn conceal_keys(text: &str) -> String {
    conceal_lines(text, find_key)
}

/// Replaces every address under `notify` in the text of a campaign file.
pub(crate) fn conceal_addresses(text: &str) -> String {
    let mut is_in_notify = false;
    conceal_lines(text, |line| {
        let is_continued = is_in_notify && line.starts_with([' ', '\t', '}', '\r', '\n']);
        is_in_notify = is_continued || line.contains("notify");
        if is_in_notify { find_address(line) } else { None }
    })
}

/// Replaces the rest of each line in which `find_start` finds the start of a secret. If that rest is empty, replaces
/// the next non-empty line instead. A reference to a secret is kept.
fn conceal_lines(text: &str, mut find_start: impl FnMut(&str) -> Option<usize>) -> String {
    let mut concealed = String::with_capacity(text.len());
    let mut expects_secret = false;
    for line in text.split_inclusive('\n') {
        let (prefix, rest) = match find_start(line) {
            Some(at) => line.split_at(at),
            None if expects_secret && !line.trim().is_empty() => ("", line),
            None => {
                concealed.push_str(line);
                continue;
            }
        };
        let value = rest.trim_start_matches(['"', '\'', ' ', ':', '\t']);
        expects_secret = value.trim().is_empty();
        let (gap, value) = rest.split_at(rest.len() - value.len());
        concealed.push_str(prefix);
        concealed.push_str(gap);
        if is_reference(value) {
            concealed.push_str(value);
        } else {
            concealed.extend(value.bytes().map(|byte| if byte.is_ascii_whitespace() { char::from(byte) } else { '*' }));
        }
    }
    concealed
}

/// The end of `api_key`, `secret` or the prefix of a private key in a line, whichever comes first; `None` in a comment.
fn find_key(line: &str) -> Option<usize> {
    let ends = [find_end("api_key", line), find_key_end("secret", line), find_end(PRIVATE_KEY_PREFIX, line)];
    ends.into_iter().flatten().min().filter(|_| !line.trim_start().starts_with('#'))
}

/// The end of `url:` or of `://` in a line, whichever comes first.
fn find_address(line: &str) -> Option<usize> {
    [find_end("://", line), find_key_end("url", line)].into_iter().flatten().min()
}

fn find_end(word: &str, line: &str) -> Option<usize> {
    line.find(word).map(|at| at + word.len())
}

/// The end of `word` in a line, if a `:` after it makes it the name of a key.
fn find_key_end(word: &str, line: &str) -> Option<usize> {
    find_end(word, line).filter(|at| line[*at..].trim_start_matches(['"', '\'', ' ']).starts_with(':'))
}

/// Whether the value is `env: NAME` or `file: PATH`, as a flow map or as the first key of a block.
fn is_reference(value: &str) -> bool {
    let inner = value.trim().trim_start_matches('{').trim_start();
    match inner.strip_prefix("env:") {
        Some(name) => is_environment_name(name.split(['}', '#']).next().unwrap_or("").trim()),
        None => inner.is_empty() || inner.starts_with("file:") && !inner.contains("://"),
    }
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
    fn only_a_key_owned_by_root_can_be_group_readable() {
        let (root, olena) = (0, 1000);
        for (mode, owner, open) in [
            (0o100_600, olena, false),
            (0o100_640, olena, true),
            (0o100_600, root, false),
            (0o100_640, root, false),
            (0o100_660, root, true),
            (0o100_644, root, true),
        ] {
            assert_eq!(is_mode_open(mode, owner), open, "{mode:o} {owner}");
        }
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
        for mode in [0o604, 0o644, 0o660] {
            assert!(read(mode).unwrap_err().contains("chmod 600"), "{mode:o}");
        }
        fs::write(&path, "s3cret\nmore").unwrap();
        let error = read(0o600).unwrap_err();
        assert!(error.contains("more than one line") && !error.contains("s3cret"));
    }
}

#[cfg(test)]
mod conceal_tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn literal_key_is_concealed() {
        let cases = [
            ("  api_key: s3cret\n", "  api_key: ******\n"),
            ("  api_key: \"s3cret\" # x\n", "  api_key: \"******* * *\n"),
            ("  api_key: { env: KEY }\n", "  api_key: { env: KEY }\n"),
            ("  api_key: { env: s3-cret }\n", "  api_key: * **** ******* *\n"),
            ("  api_key s3cret\n", "  api_key ******\n"),
            ("  hook: { secret: s3cret }\n", "  hook: { secret: ****** *\n"),
            ("  api_key: { file: secrets/a.key }\n", "  api_key: { file: secrets/a.key }\n"),
            ("  api_key:\n    env: KEY\n", "  api_key:\n    env: KEY\n"),
            ("  api_key:\n    s3cret\n  rate: 1/s\n", "  api_key:\n    ******\n  rate: 1/s\n"),
            ("a: { api_key: {s3cret} }\n", "a: { api_key: ******** *\n"),
            ("  by: { O: ed25519-private:s3cret }\n", "  by: { O: ed25519-private:****** *\n"),
        ];
        for (text, expected) in cases {
            assert_eq!(conceal_keys(text), expected, "{text}");
        }
    }

    #[test]
    fn literal_notify_address_is_concealed() {
        let cases = [
            ("notify: { url: https://s3cret }\n", "notify: { url: ************** *\n"),
            ("notify:\n  url: s3cret\n  local: true\n", "notify:\n  url: ******\n  local: true\n"),
            ("notify:\n\n  url:\n    s3cret\nname: x\n", "notify:\n\n  url:\n    ******\nname: x\n"),
            ("notify: https://s3cret\n", "notify: https://******\n"),
            ("notify:\n  ulr: 'https://s3cret'\n", "notify:\n  ulr: 'https://*******\n"),
            ("notify: { url: { file: https://s3cret } }\n", "notify: { url: * ***** ************** * *\n"),
            ("notify: { url: { env: URL } }\n", "notify: { url: { env: URL } }\n"),
            (
                "notify: { local: true }\nlink: https://a.example\n",
                "notify: { local: true }\nlink: https://a.example\n",
            ),
            (
                "channels:\n  - sms: { message: \"url: https://a\" }\n",
                "channels:\n  - sms: { message: \"url: https://a\" }\n",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(conceal_addresses(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn concealing_secrets_preserves_positions(text: String) {
            let text = text.replace("a", "api_key: ").replace("b", "notify: { url: ");
            prop_assert_eq!(conceal_keys(&text).len(), text.len());
            prop_assert_eq!(conceal_addresses(&text).len(), text.len());
        }
    }
}
