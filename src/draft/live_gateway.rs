//! The line `gateway: NAME` of a campaign file, inserted without a change to anything else in the file.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_yaml::{Mapping, Value};

use super::DraftError;
use super::profile::replace_file;
use crate::regular_file;

/// The key.
const GATEWAY_KEY: &str = "gateway";
/// A key that only campaign files have.
const CHANNELS_KEY: &str = "channels";
/// The most bytes of a campaign file.
const MAX_BYTES: u64 = 1024 * 1024;

/// A campaign file that names no gateway yet, and its text with one.
#[derive(Debug)]
pub struct GatewayLine {
    file: PathBuf,
    before: String,
    text: String,
}

impl GatewayLine {
    /// The line for a campaign file. `None` if the file is not a campaign, names a gateway already, or cannot be extended by
    /// one line.
    #[must_use]
    pub fn prepare(file: &Path, gateway: &str) -> Option<Self> {
        let before = read_campaign_text(file)?;
        let text = insert_gateway(&before, gateway)?;
        Some(Self { file: file.to_owned(), before, text })
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When it cannot be written, or changed since it was read.
    pub fn write(&self) -> Result<(), DraftError> {
        let unwritten = |error| DraftError::CannotWrite { path: self.file.display().to_string(), error };
        if read_campaign_text(&self.file).as_ref() != Some(&self.before) {
            return Err(unwritten(io::Error::other(
                "the file has changed in the meantime; run the same command again",
            )));
        }
        let place = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
        replace_file(&place, self.text.as_bytes()).map_err(unwritten)
    }
}

/// The campaign files of a folder.
#[must_use]
pub fn find_campaigns(folder: &Path) -> Vec<PathBuf> {
    let is_yaml = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    let keys = |path: &PathBuf| serde_yaml::from_str::<Mapping>(&read_campaign_text(path)?).ok();
    let is_campaign = |path: &PathBuf| keys(path).is_some_and(|keys| keys.contains_key(CHANNELS_KEY));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_yaml(path) && is_campaign(path)).collect()
}

/// The text of a file. `None` if it cannot be read, or is larger than a campaign file can be.
fn read_campaign_text(file: &Path) -> Option<String> {
    let mut text = String::new();
    let read = regular_file::open(file).ok()?.take(MAX_BYTES + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= MAX_BYTES).then_some(text)
}

/// The text of a campaign with the line: behind a commented-out `gateway`, else at the end.
fn insert_gateway(before: &str, gateway: &str) -> Option<String> {
    let mut wanted: Mapping = serde_yaml::from_str(before).ok()?;
    if wanted.contains_key(GATEWAY_KEY) || !wanted.contains_key(CHANNELS_KEY) {
        return None;
    }
    wanted.insert(GATEWAY_KEY.into(), gateway.into());
    let line_break = if before.contains("\r\n") { "\r\n" } else { "\n" };
    let is_comment = |line: &&str| line.strip_prefix('#').is_some_and(|line| line.trim_start().starts_with("gateway:"));
    let mut lines: Vec<&str> = before.split_inclusive('\n').collect();
    let at = lines.iter().rposition(is_comment).map_or(lines.len(), |comment| comment + 1);
    // The last line of a file might lack its line break.
    let is_open = at > 0 && !lines[at - 1].ends_with('\n');
    let line = format!("{}{GATEWAY_KEY}: {gateway}{line_break}", if is_open { line_break } else { "" });
    lines.insert(at, &line);
    let text = lines.concat();
    // A document that ends with `...` or with an open text is not extended.
    let is_right = serde_yaml::from_str::<Value>(&text).is_ok_and(|now| now == Value::Mapping(wanted));
    is_right.then_some(text)
}

#[cfg(test)]
mod tests {
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
    fn file_beyond_the_limit_is_not_extended() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sale.yaml");
        fs::write(&file, format!("{CAMPAIGN}{}", "# filler\n".repeat(130_000))).unwrap();
        assert!(GatewayLine::prepare(&file, "main").is_none());
    }

    #[test]
    fn line_follows_its_comment_and_changes_nothing_else() {
        let before =
            "# Sale\nchannels: [sms: { message: hi }] # one\n\n# gateway: production   # to send it for real\n# end\n";
        let after = "# Sale\nchannels: [sms: { message: hi }] # one\n\n# gateway: production   # to send it for real\n\
                     gateway: main\n# end\n";
        assert_eq!(insert_gateway(before, "main").as_deref(), Some(after));
    }

    #[test]
    fn line_is_appended_with_the_line_breaks_of_the_file() {
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
    fn file_that_cannot_take_the_line_is_unchanged() {
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
