//! Example campaigns for common tasks: a campaign file, a list, and texts in Ukrainian and English.
//!
//! Their files are in `examples/`. There, `NAME` is the name of the new campaign, `DATE+1` is tomorrow, and `BIRTHDAY+1`
//! is tomorrow's month and day, so that a new campaign has recipients today.

use jiff::civil::Date;
use jiff::{Timestamp, ToSpan as _};

use super::campaign::{DraftFile, SCHEMA, own_file, schema_file};

/// A complete campaign for a common task.
#[derive(Debug)]
pub struct ExampleCampaign {
    /// The name that `init --example` accepts.
    pub name: &'static str,
    /// What the campaign sends, in one line.
    pub summary: &'static str,
    files: &'static [ExampleFile],
}

/// A file of an example.
#[derive(Debug)]
struct ExampleFile {
    /// The name in the folder of the example.
    name: &'static str,
    text: &'static str,
}

/// Defines an example with files of its folder, in the order in which they are listed.
macro_rules! example {
    ($name:literal, $summary:literal, [$($file:literal),+]) => {
        ExampleCampaign {
            name: $name,
            summary: $summary,
            files: &[$(ExampleFile {
                name: $file,
                text: include_str!(concat!("examples/", $name, "/", $file)),
            }),+],
        }
    };
}

/// All examples.
pub static EXAMPLES: [ExampleCampaign; 7] = [
    example!(
        "sale",
        "A sale with discount codes, by Viber or SMS",
        ["campaign.yaml", "viber.uk.txt", "viber.en.txt", "sms.uk.txt", "sms.en.txt", "list.csv"]
    ),
    example!(
        "reminder",
        "Appointment reminders, daily by Viber or SMS",
        ["campaign.yaml", "viber.uk.txt", "viber.en.txt", "sms.uk.txt", "sms.en.txt", "list.csv"]
    ),
    example!(
        "newsletter",
        "A newsletter issue, by Viber or SMS",
        ["campaign.yaml", "viber.uk.txt", "viber.en.txt", "sms.uk.txt", "sms.en.txt", "list.csv"]
    ),
    example!(
        "code",
        "One-time codes, by SMS or voice call",
        ["campaign.yaml", "sms.uk.txt", "sms.en.txt", "voice.uk.txt", "voice.en.txt", "digits.txt", "list.csv"]
    ),
    example!(
        "survey",
        "A survey, with replies by Viber or a link by SMS",
        ["campaign.yaml", "viber.uk.txt", "viber.en.txt", "sms.uk.txt", "sms.en.txt", "list.csv", "scenario.yaml"]
    ),
    example!(
        "birthday",
        "Birthday greetings with a gift, daily by Viber or SMS",
        ["campaign.yaml", "viber.uk.txt", "viber.en.txt", "sms.uk.txt", "sms.en.txt", "list.csv"]
    ),
    example!(
        "debt",
        "Polite reminders about unpaid invoices, on weekdays by SMS",
        ["campaign.yaml", "sms.uk.txt", "sms.en.txt", "list.csv"]
    ),
];

/// The files of the examples: the name, the path in a new campaign, and the description.
const FILES: [(&str, &str, &str); 10] = [
    ("campaign.yaml", "NAME.yaml", "the campaign file: start with the comments at the top"),
    ("viber.uk.txt", "templates/NAME.viber.uk.txt", "the Viber message in Ukrainian"),
    ("viber.en.txt", "templates/NAME.viber.en.txt", "the Viber message in English"),
    ("sms.uk.txt", "templates/NAME.sms.uk.txt", "the SMS message in Ukrainian"),
    ("sms.en.txt", "templates/NAME.sms.en.txt", "the SMS message in English"),
    ("voice.uk.txt", "templates/NAME.voice.uk.txt", "the voice call in Ukrainian"),
    ("voice.en.txt", "templates/NAME.voice.en.txt", "the voice call in English"),
    ("digits.txt", "templates/NAME.digits.txt", "the code, as the voice call reads it out"),
    ("list.csv", "NAME.csv", "the recipients: sample rows"),
    ("scenario.yaml", "scenarios/NAME.yaml", "a sandbox scenario: recipients reply"),
];

/// The time zone of all examples, in which their dates are relative to today.
const ZONE: &str = "Europe/Kyiv";

/// The most days between today and a date in an example.
const MAX_DAYS: i32 = 31;

/// Finds an example by its name.
#[must_use]
pub fn find_example(name: &str) -> Option<&'static ExampleCampaign> {
    EXAMPLES.iter().find(|example| example.name == name)
}

/// The files of a new campaign that follows an example.
///
/// # Panics
/// If the bundled time zone database has no zone for Kyiv.
#[must_use]
pub fn draft_example(name: &str, example: &ExampleCampaign, now: Timestamp) -> Vec<DraftFile> {
    let today = now.in_tz(ZONE).expect("the time zone database is bundled").date();
    let drafts = example.files.iter().map(|file| {
        let (_, path, description) =
            FILES.iter().find(|(known, ..)| *known == file.name).expect("`FILES` has all files of the examples");
        let text = insert_dates(file.text, today).replace("NAME", name).replace("SCHEMA", SCHEMA);
        own_file(path.replace("NAME", name), text, description)
    });
    drafts.chain([schema_file()]).collect()
}

/// Replaces `DATE+10`, `DATE-10` and `BIRTHDAY+10` by the dates that are so many days from today.
fn insert_dates(text: &str, today: Date) -> String {
    // Descending, because `DATE+1` is also the start of `DATE+10`.
    let distances = (0..=MAX_DAYS).rev().flat_map(|days| [days, -days]);
    distances.fold(text.to_owned(), |text, days| {
        let date = today.saturating_add(days.days());
        text.replace(&format!("BIRTHDAY{days:+}"), &date.strftime("%m-%d").to_string())
            .replace(&format!("DATE{days:+}"), &date.to_string())
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;

    use jiff::civil::date;

    use super::*;

    #[test]
    fn every_file_in_the_folder_belongs_to_an_example() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/draft/examples");
        let mut found = BTreeSet::new();
        for example in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            for file in fs::read_dir(&example).unwrap().map(|entry| entry.unwrap().path()) {
                let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
                found.insert((name(&example), name(&file)));
            }
        }
        let files = EXAMPLES
            .iter()
            .flat_map(|example| example.files.iter().map(|file| (example.name.to_owned(), file.name.to_owned())));
        assert_eq!(files.collect::<BTreeSet<_>>(), found);
    }

    #[test]
    fn draft_contains_no_placeholders() {
        for example in &EXAMPLES {
            let drafts = draft_example("spring", example, "2028-02-28T22:30:00Z".parse().unwrap());
            for draft in drafts.iter().filter(|draft| !draft.shared) {
                for placeholder in ["NAME", "DATE", "BIRTHDAY", "SCHEMA"] {
                    let found = draft.path.contains(placeholder) || draft.text.contains(placeholder);
                    assert!(!found, "{}: {placeholder} in {}", example.name, draft.path);
                }
            }
        }
    }

    #[test]
    fn dates_are_relative_to_today_in_kyiv() {
        let text = "DATE+0 DATE+1 DATE+10 DATE-15 1992-BIRTHDAY+0 1992-BIRTHDAY+2";
        let dates = insert_dates(text, date(2028, 2, 29));
        assert_eq!(dates, "2028-02-29 2028-03-01 2028-03-10 2028-02-14 1992-02-29 1992-03-02");
        let birthday = find_example("birthday").unwrap();
        let drafts = draft_example("spring", birthday, "2028-02-28T22:30:00Z".parse().unwrap());
        let list = drafts.iter().find(|draft| draft.path == "spring.csv").unwrap();
        assert!(list.text.contains("1992-02-29"), "{}", list.text);
    }
}
