//! The frozen copies of a run: what it is resumed, retried and exported from.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failpoint;
use crate::ledger::Hold;
use crate::manifest::Brief;
use crate::private::{self, Existing};

/// What a run froze besides its recipients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrozenInputs {
    /// What the campaign says, to whom, and through what.
    pub brief: Brief,
    /// The texts that others include or extend, by name.
    pub includes: Vec<(String, String)>,
    /// The date that texts saw.
    pub today: String,
    /// The campaign file, so that it can be named.
    pub campaign_file: PathBuf,
    /// The list that was copied, so that it can be named.
    pub list: PathBuf,
    /// SHA-256 of the recipients, in hexadecimal.
    pub recipients_sha256: String,
}

impl FrozenInputs {
    /// Whether its messages are those of the campaign as it is now: channels, texts and constants.
    #[must_use]
    pub fn says(&self, now: &Brief, includes: &[(String, String)]) -> bool {
        let Brief { content, vars, .. } = &self.brief;
        *content == now.content && *vars == now.vars && self.includes == includes
    }

    /// What differs between this run and the campaign as it is now, in words; empty when nothing does.
    ///
    /// `recipients` are the words for what changed of the list.
    #[must_use]
    pub fn differences(&self, now: &Brief, includes: &[(String, String)], recipients: Option<String>) -> Vec<String> {
        // A new key has to be compared here, or left out with its reason: name and gateway are how the run was found.
        let Brief {
            name: _,
            gateway: _,
            edition,
            endpoint,
            timezone,
            columns,
            region,
            duplicates,
            max_invalid,
            may_be_empty: _,
            vars,
            content,
        } = &self.brief;
        let mut changes = Vec::new();
        let mut note = |changed: bool, what: &str| {
            if changed {
                changes.push(what.to_owned());
            }
        };
        note(*endpoint != now.endpoint, "`endpoint`");
        note(*timezone != now.timezone, "`timezone`");
        note(*edition != now.edition, "`edition`");
        note(*columns != now.columns, "`recipients.columns`");
        note(*region != now.region, "`recipients.region`");
        note(*duplicates != now.duplicates, "`recipients.duplicates`");
        note(*max_invalid != now.max_invalid, "`recipients.max_invalid`");
        note(*vars != now.vars, "`vars`");
        note(*content != now.content || self.includes != includes, "the channels or their texts");
        changes.extend(recipients);
        changes
    }
}

/// The folder of a run in the state folder.
#[derive(Clone, Debug)]
pub struct RunFolder(PathBuf);

impl RunFolder {
    const FROZEN: &str = "frozen.json";
    const RECIPIENTS: &str = "recipients.csv";

    /// The folder of the run of that name, `autumn-sale@3`.
    #[must_use]
    pub fn of(state: &Path, run: &str) -> Self {
        Self(state.join("runs").join(run))
    }

    /// The folders of all runs in a state folder, with the names of the runs; what is being prepared or put aside is none.
    #[must_use]
    pub fn all(state: &Path) -> Vec<(String, Self)> {
        let entries = fs::read_dir(state.join("runs")).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, Self(entry.path()))));
        let is_run = |name: &str| {
            let number = name.rsplit_once('@').map(|(_, number)| number);
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let mut folders: Vec<(String, Self)> = named.filter(|(name, _)| is_run(name)).collect();
        folders.sort_by(|(one, _), (other, _)| one.cmp(other));
        folders
    }

    /// A new folder for a run that has no name yet, readable by its owner alone.
    ///
    /// Nobody else has the campaign on the account, so what an interrupted start left there is nobody's.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn prepare(state: &Path, hold: &Hold) -> io::Result<Self> {
        let runs = state.join("runs");
        private::folder(&runs)?;
        let folder = runs.join(format!(".new-{}", hold.name()));
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => private::folder(&folder)?,
        }
        Ok(Self(folder))
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The frozen recipients.
    #[must_use]
    pub fn recipients(&self) -> PathBuf {
        self.0.join(Self::RECIPIENTS)
    }

    /// A file for the copy of the recipients.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn create_recipients(&self) -> io::Result<File> {
        private::file(&self.recipients(), Existing::Emptied)
    }

    /// Writes what is frozen, and makes sure that it and the recipients survive a power loss.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn freeze(&self, frozen: &FrozenInputs, recipients: &File) -> io::Result<()> {
        recipients.sync_all()?;
        let mut file = private::file(&self.0.join(Self::FROZEN), Existing::Emptied)?;
        file.write_all(&serde_json::to_vec_pretty(frozen)?)?;
        file.sync_all()?;
        private::sync_folder(&self.0)?;
        failpoint::pass("run.frozen");
        Ok(())
    }

    /// Gives the folder the name of its run.
    ///
    /// # Errors
    /// When it cannot be renamed, for example because a run of that name left a folder behind.
    pub fn rename(self, state: &Path, run: &str) -> io::Result<Self> {
        let named = Self::of(state, run);
        if named.0.exists() {
            // Only a lost or older ledger can lead here; those copies may still be needed.
            let aside = (1..).map(|n| named.0.with_file_name(format!("{run}.old-{n}"))).find(|path| !path.exists());
            fs::rename(&named.0, aside.unwrap_or_default())?;
        }
        fs::rename(&self.0, &named.0)?;
        private::sync_entry(&named.0)?;
        failpoint::pass("run.named");
        Ok(named)
    }

    /// Reads what is frozen.
    ///
    /// # Errors
    /// When it is missing or damaged.
    pub fn frozen(&self) -> io::Result<FrozenInputs> {
        Ok(serde_json::from_slice(&fs::read(self.0.join(Self::FROZEN))?)?)
    }

    /// Removes a folder whose run never began.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn discard(self) -> io::Result<()> {
        fs::remove_dir_all(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a run wrote when the first version froze it.
    const FIRST: &str = r#"{
  "brief": {
    "name": "sale",
    "edition": { "name": "edition", "source": "autumn" },
    "gateway": "production",
    "endpoint": "async",
    "timezone": "Europe/Kyiv",
    "columns": [["phone", "Мобільний"]],
    "region": "UA",
    "duplicates": "skip",
    "max_invalid": 1000,
    "vars": [["shop", "Olena & Co"]],
    "content": { "kind": "sms", "stages": [ { "sms": {
      "signature": { "name": "channels[0].sms.signature", "source": "OlenaCo" },
      "message": { "name": "channels[0].sms.message", "source": "{{ shop }}" },
      "lifetime": null, "short_link": null, "max_parts": 3, "fields": {}
    } } ] }
  },
  "includes": [["greeting.txt", "Hello"]],
  "today": "2026-11-21",
  "campaign_file": "sale.yaml",
  "list": "sale.csv",
  "recipients_sha256": "00"
}"#;

    #[test]
    fn copies_that_were_frozen_long_ago_are_read_and_keep_their_form() {
        let frozen: FrozenInputs = serde_json::from_str(FIRST).unwrap();
        assert_eq!(frozen.brief.region.map(|region| region.to_string()).as_deref(), Some("UA"));
        let form: serde_json::Value = serde_json::from_str(FIRST).unwrap();
        assert_eq!(serde_json::to_value(&frozen).unwrap(), form);
        let international: FrozenInputs = serde_json::from_str(&FIRST.replace("\"UA\"", "null")).unwrap();
        assert_eq!(international.brief.region, None);
    }
}
