//! The folder of the demo: a campaign with two planted mistakes, its list, and a profile for the sandbox.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::super::exit::CommandFailure;
use campaign_core::finding::quote_for_shell;
use campaign_core::private::{self, ExistingFile};

/// The campaign without the planted mistakes.
const CAMPAIGN: &str = include_str!("files/autumn-sale.yaml");
const GATEWAYS: &str = include_str!("files/gateways.yaml");
const SCENARIO: &str = include_str!("files/scenario.yaml");

/// The name of the campaign.
pub(super) const NAME: &str = "autumn-sale";
/// The names of the files in the folder.
pub(super) const CAMPAIGN_FILE: &str = "autumn-sale.yaml";
pub(super) const LIST_FILE: &str = "clients.csv";
pub(super) const JOURNAL_FILE: &str = "journal.jsonl";
pub(super) const REPORT_FILE: &str = "report.html";
pub(super) const SCENARIO_FILE: &str = "scenario.yaml";
const GATEWAYS_FILE: &str = "gateways.yaml";
const KEY_FILE: &str = "demo.key";
/// The folder of the demo's ledger.
pub(super) const STATE_FOLDER: &str = "state";

/// A sentence about the channels of the campaign.
pub(super) const CHANNELS: &str = "It tries Viber first, then SMS.";

/// The number of recipients.
pub(super) const RECIPIENTS: u64 = 1_000;
/// The API key of the sandbox, which accepts connections only from this machine.
pub(super) const KEY: &str = "demo-key";

/// A mistake in the campaign, and the text that corrects it.
pub(super) struct PlantedMistake {
    pub(super) wrong: &'static str,
    pub(super) right: &'static str,
}

/// The mistakes that `check` finds.
pub(super) const MISTAKES: [PlantedMistake; 2] = [
    PlantedMistake { wrong: "      liftime: 1h", right: "      lifetime: 1h" },
    PlantedMistake {
        wrong: "      message: \"{{ frist_name }}, 20% off until Sunday at OlenaCo, {{ city }}\"",
        right: "      message: \"{{ first_name }}, 20% off until Sunday at OlenaCo, {{ city }}\"",
    },
];

/// The default name of the folder. If the name is taken, a number is appended.
const DEFAULT_FOLDER: &str = "campaign-demo";

pub(super) struct DemoFolder {
    /// The path, as a user would type it.
    pub(super) path: PathBuf,
}

impl DemoFolder {
    /// Creates the folder. Without a chosen path, the folder gets the next free name.
    ///
    /// # Errors
    /// If the chosen folder is not empty, or the folder cannot be created.
    pub(super) fn create(chosen: Option<&Path>) -> Result<Self, CommandFailure> {
        let path = match chosen {
            Some(path) => path.to_owned(),
            None => find_free_name(Path::new("")),
        };
        let path_text = path.display();
        let failed =
            |error: io::Error| CommandFailure::invalid(format!("cannot create the folder `{path_text}`: {error}"));
        match fs::read_dir(&path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => {}
            Ok(false) => {
                let message = format!("the folder `{path_text}` is not empty; nothing was written");
                return Err(CommandFailure::invalid(message).with_help("choose a new folder: `campaign demo DIR`"));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => private::create_folder(&path).map_err(failed)?,
            Err(error) => return Err(failed(error)),
        }
        Ok(Self { path })
    }

    /// The path of a file in the folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path of the folder, quoted for a shell.
    pub(super) fn shell_path(&self) -> String {
        quote_for_shell(&self.path)
    }

    /// Writes the campaign with the planted mistakes, the list and the scenario.
    pub(super) fn write_campaign(&self) -> Result<(), CommandFailure> {
        let planted = MISTAKES
            .iter()
            .fold(CAMPAIGN.to_owned(), |text, PlantedMistake { wrong, right }| text.replacen(right, wrong, 1));
        self.write_new_file(CAMPAIGN_FILE, &planted)?;
        self.write_new_file(LIST_FILE, &list_text())?;
        self.write_new_file(SCENARIO_FILE, SCENARIO)
    }

    /// Writes the gateway profile of the sandbox, and the API key.
    pub(super) fn write_profile(&self, base_url: &str) -> Result<(), CommandFailure> {
        self.write_new_file(KEY_FILE, KEY)?;
        self.write_new_file(GATEWAYS_FILE, &GATEWAYS.replace("BASE_URL", base_url))
    }

    /// Corrects the mistakes, as a person would in an editor.
    pub(super) fn correct_mistakes(&self) -> Result<(), CommandFailure> {
        fs::write(self.file(CAMPAIGN_FILE), CAMPAIGN).map_err(|error| unwritable_file(CAMPAIGN_FILE, &error))
    }

    fn write_new_file(&self, name: &str, text: &str) -> Result<(), CommandFailure> {
        let written = private::open_file(&self.file(name), ExistingFile::CreateNew)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| unwritable_file(name, &error))
    }
}

fn unwritable_file(name: &str, error: &io::Error) -> CommandFailure {
    CommandFailure::storage_failure(format!("cannot write `{name}` to the demo folder: {error}"))
}

/// Finds the first of `campaign-demo`, `campaign-demo-2`, … that does not exist yet in a folder.
fn find_free_name(parent: &Path) -> PathBuf {
    let numbered = (2..).map(|number| format!("{DEFAULT_FOLDER}-{number}"));
    let mut names = std::iter::once(DEFAULT_FOLDER.to_owned()).chain(numbered);
    let free_name = names.find(|name| parent.join(name).symlink_metadata().is_err());
    free_name.unwrap_or_default().into()
}

/// Builds the text of the list: fictitious phone numbers with names and cities.
fn list_text() -> String {
    const NAMES: [&str; 20] = [
        "Olena", "Ivan", "Maria", "Taras", "Oksana", "Andriy", "Iryna", "Petro", "Sofia", "Bohdan", "Natalia", "Oleh",
        "Anna", "Mykola", "Yulia", "Roman", "Kateryna", "Denys", "Viktoria", "Serhiy",
    ];
    const CITIES: [&str; 7] = ["Kyiv", "Lviv", "Odesa", "Dnipro", "Kharkiv", "Poltava", "Ternopil"];
    let mut list = "Phone,First name,City\n".to_owned();
    for number in 0..RECIPIENTS as usize {
        let (name, city) = (NAMES[number % NAMES.len()], CITIES[number % CITIES.len()]);
        // Writing to a string cannot fail.
        let _ = writeln!(list, "+38050000{number:04},{name},{city}");
    }
    list
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn demo_mistakes_are_planted_once_and_corrected() {
        let folder = tempfile::tempdir().unwrap();
        let demo = DemoFolder::create(Some(&folder.path().join("demo"))).ok().unwrap();
        demo.write_campaign().ok().unwrap();
        let read = || fs::read_to_string(demo.file(CAMPAIGN_FILE)).unwrap();
        let planted = read();
        for PlantedMistake { wrong, right } in &MISTAKES {
            assert_eq!((planted.matches(wrong).count(), planted.matches(right).count()), (1, 0), "{planted}");
        }
        demo.correct_mistakes().ok().unwrap();
        assert_eq!(read(), CAMPAIGN);
    }

    #[test]
    fn folder_with_files_is_refused_and_left_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("autumn-sale.yaml"), "mine").unwrap();
        assert!(DemoFolder::create(Some(folder.path())).is_err());
        assert_eq!(fs::read_to_string(folder.path().join("autumn-sale.yaml")).unwrap(), "mine");
    }

    #[test]
    fn default_demo_folder_has_the_next_free_name() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(find_free_name(folder.path()), Path::new("campaign-demo"));
        fs::write(folder.path().join("campaign-demo"), "").unwrap();
        fs::create_dir(folder.path().join("campaign-demo-2")).unwrap();
        assert_eq!(find_free_name(folder.path()), Path::new("campaign-demo-3"));
    }

    #[test]
    fn every_demo_recipient_has_a_unique_number() {
        let list = list_text();
        let numbers: BTreeSet<&str> = list.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
        assert_eq!(numbers.len() as u64, RECIPIENTS);
        assert!(numbers.iter().all(|number| number.len() == 13 && number.starts_with("+38050000")));
    }
}
