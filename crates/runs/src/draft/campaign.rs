//! Drafts of campaigns: for an existing list, with a sample list, or from an example for a common task.
//!
//! The files of the examples are in `examples/`. There, `NAME` is the name of the new campaign, and `DATE+1` is
//! tomorrow. `BIRTHDAY+1` is tomorrow's month and day, so that a new campaign has recipients today. `WEEKDAY+7` is the
//! date in a week or, on a weekend, the next Monday, so that a window from Monday to Friday is open.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use jiff::civil::{Date, Weekday};
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;

use super::DraftError;
use campaign_content::audience::{
    Chunk, DecodedText, ListPlace, ListSettings, RecipientReader, decode, find_list, parse_phone_number,
    suggest_columns,
};
use campaign_core::domain::{ListFormat, Region, Row};
use campaign_core::finding::{Finding, quote_for_shell, rules};
use campaign_core::regular_file;
use campaign_manifest::campaign_schema;

const CAMPAIGN: &str = include_str!("campaign.yaml");
/// The schema reference in a new campaign file. The schema is in the same folder, so that editors need no network and
/// both files move together.
pub(super) const SCHEMA: &str = "campaign.schema.json";
const RECIPIENTS: &str = include_str!("recipients.csv");

/// A file to be written.
#[derive(Clone, Debug)]
pub struct DraftFile {
    /// The path, relative to the current folder.
    pub path: String,
    /// The content.
    pub text: String,
    /// A description for the command's output.
    pub description: &'static str,
    /// Whether an existing file is kept and used.
    pub shared: bool,
}

/// The files of a new campaign. Without a list, a sample list is included.
pub fn draft_campaign(name: &str, list: Option<&DraftList>) -> Vec<DraftFile> {
    let recipients = list.map_or_else(|| starter_recipients(name), format_recipients);
    let greeted_by = list.map_or(Some("first_name"), DraftList::greeting_column);
    let campaign = CAMPAIGN.replace("NAME", name).replace("SCHEMA", SCHEMA).replace("RECIPIENTS\n", &recipients);
    let campaign = campaign.replace("TESTS\n", &starter_tests(greeted_by));
    let mut drafts = vec![
        own_file(format!("{name}.yaml"), campaign, "the campaign file: recipients, messages and settings"),
        own_file(
            format!("templates/{name}.sms.txt"),
            greeting_text(greeted_by),
            "the SMS message: an example for you to replace",
        ),
    ];
    if list.is_none() {
        drafts.push(own_file(format!("{name}.csv"), RECIPIENTS.to_owned(), "the recipients: five sample rows"));
    }
    drafts.push(schema_file());
    drafts
}

/// A file that belongs to one campaign only.
pub(super) fn own_file(path: String, text: String, description: &'static str) -> DraftFile {
    DraftFile { path, text, description, shared: false }
}

/// The schema of campaign files, which all campaigns of a folder share.
pub(super) fn schema_file() -> DraftFile {
    let text = format!("{:#}\n", campaign_schema());
    let description = "the JSON Schema that lets editors complete keys";
    DraftFile { path: SCHEMA.to_owned(), text, description, shared: true }
}

fn starter_recipients(name: &str) -> String {
    let file = append_comment(&format!("  file: {name}.csv"), "the first row contains the column names for templates");
    let region = append_comment("  # region: UA", "for numbers without a country code, such as 050 123 45 67");
    format!("recipients:\n{file}{region}\n")
}

/// Formats the `recipients` section for a list. `serde_yaml` writes the YAML, because it knows what needs quotes. It
/// cannot write comments, so these are added to its lines.
fn format_recipients(list: &DraftList) -> String {
    let renamed = list.renamed_columns().into_iter();
    let recipients = DraftRecipients {
        file: &list.path,
        sheet: list.format.sheet.as_deref(),
        header_row: list.format.header_row,
        region: list.region.map(|region| region.to_string()),
        columns: renamed.map(|(name, header)| (name.into(), header.into())).collect(),
    };
    let written =
        serde_yaml::to_string(&DraftCampaign { recipients }).expect("texts and maps of texts are always YAML");
    let mut yaml = String::new();
    for line in written.split_inclusive('\n') {
        yaml += &match line.trim_end() {
            "  columns:" => append_comment("  columns:", "name in templates: header in the list"),
            region if region.starts_with("  region: ") => {
                let guess = if list.other_regions.is_empty() { "" } else { "a guess: " };
                append_comment(region, &format!("{guess}the country of numbers without a country code"))
            }
            _ => line.to_owned(),
        };
    }
    let headers = list.unchanged_columns();
    if !headers.is_empty() {
        yaml += &format!("  # templates can also use these headers: {}\n", headers.join(", "));
    }
    yaml + "\n"
}

#[derive(Serialize)]
struct DraftCampaign<'l> {
    recipients: DraftRecipients<'l>,
}

/// The `recipients` section with the keys of a campaign file.
#[derive(Serialize)]
struct DraftRecipients<'l> {
    file: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sheet: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    header_row: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    #[serde(skip_serializing_if = "serde_yaml::Mapping::is_empty")]
    columns: serde_yaml::Mapping,
}

/// An SMS that greets the recipient by the name in a column, and omits the name if the cell is empty.
fn greeting_text(column: Option<&str>) -> String {
    let name = column.map(|column| format!("{{% if {column} %}}, {{{{ {column} }}}}{{% endif %}}"));
    format!("Hello{}! -20% on everything until Sunday: https://shop.example\n", name.unwrap_or_default())
}

/// Two tests of the SMS, as examples. They pass with any short text that contains the name.
fn starter_tests(column: Option<&str>) -> String {
    let (name, test_cells, expect) = match column {
        Some(column) => {
            ("the SMS contains the name", format!("{{ {column}: Olena }}"), "{ max_parts: 2, contains: [Olena] }")
        }
        None => ("the SMS is short", "{}".to_owned(), "{ max_parts: 2 }"),
    };
    let rows_line = append_comment("    each: 50", "random rows from the list");
    format!(
        "  - name: {name}\n    given: {test_cells}\n    expect: {{ sms: {expect} }}\n  \
         - name: no SMS is too long or has a placeholder\n{rows_line}    expect: {{ sms: {{ max_parts: 2, matches: '^[^{{}}]*$' }} }}\n"
    )
}

fn append_comment(line: &str, text: &str) -> String {
    format!("{line:<33} # {text}\n")
}

/// Columns for a greeting, the best first.
const GREETING_COLUMNS: [&str; 7] = ["first_name", "name", "full_name", "client", "customer", "last_name", "company"];

/// A list whose columns and region have been recognized.
#[derive(Debug)]
pub struct DraftList {
    /// The path as typed.
    pub path: String,
    /// The sheet and the header row, if specified.
    pub format: ListFormat,
    /// The header of the numbers.
    pub phone: String,
    /// The region, if the numbers are national.
    pub region: Option<Region>,
    /// The other likely regions in which as many numbers are valid. If there are any, `region` is only a guess.
    pub other_regions: Vec<Region>,
    /// The other columns: the name for texts, and the header.
    pub columns: Vec<(String, String)>,
    /// The headers of other columns that hold numbers too.
    pub other_phones: Vec<String>,
    /// The rows without a valid number, if there are any.
    pub invalid: Option<InvalidRows>,
}

/// The rows of a list without a valid number.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidRows {
    /// The number of rows without a valid number.
    pub rows: u64,
    /// The number of all rows.
    pub total: u64,
    /// The first row without a valid number.
    pub first: Row,
}

impl DraftList {
    /// Reads a list.
    ///
    /// # Errors
    /// If the list cannot be read or used.
    pub fn read(path: &Path, format: &ListFormat) -> Result<Self, DraftError> {
        match Self::interpret_list(path, format) {
            // A title above the header is read as the header, and the real header as a row without a number.
            Ok(list) if list.invalid.is_some() && format.header_row.is_none() => {
                match find_list(|| regular_file::open(path), path, format, None).filter(|place| place.sheet.is_none()) {
                    None => Ok(list),
                    Some(place) => {
                        let mut finding = place.title_finding(&rules::RECIPIENTS_NO_HEADER, Some(&list.phone));
                        add_advice(&mut finding, &place);
                        Err(DraftError::ListRefused(vec![finding]))
                    }
                }
            }
            Err(DraftError::ListRefused(findings)) => {
                Err(DraftError::ListRefused(add_likely_place(findings, path, format)))
            }
            result => result,
        }
    }

    /// Reads a list in the given format and recognizes its columns.
    fn interpret_list(path: &Path, format: &ListFormat) -> Result<Self, DraftError> {
        let Some(typed) = path.to_str() else { return Err(DraftError::ListName(path.to_owned())) };
        let opened = decode_list(path, format)?;
        let opened_format = Arc::clone(opened.format());
        let suggestion = suggest_columns(opened, path).map_err(|finding| DraftError::ListRefused(vec![*finding]))?;
        let Some(phone) = suggestion.phone else {
            let sheet = opened_format.sheet_name().map(|sheet| format!("the sheet `{sheet}` of ")).unwrap_or_default();
            let finding =
                Finding::new(&rules::NO_PHONES, format!("no column in {sheet}`{typed}` contains phone numbers"));
            if let Some(problem) = suggestion.problem {
                return Err(DraftError::ListRefused(vec![finding.help(problem.to_string())]));
            }
            return Err(DraftError::ListRefused(vec![finding.help(
                "add a header row and a column with numbers such as +380501234567; or run `campaign init NAME` \
                 without `--from` and set `recipients` yourself",
            )]));
        };
        let mut headers = HashSet::from([phone.clone()]);
        let mut columns = suggestion.columns;
        // A header applies to its first column only.
        columns.retain(|(_, header)| headers.insert(header.clone()));
        let (other_phones, other_regions) = (suggestion.other_phones, suggestion.other_regions);
        let (typed_path, list_format, region) = (typed.to_owned(), format.clone(), suggestion.region);
        let mut list = Self {
            path: typed_path,
            format: list_format,
            phone,
            region,
            other_regions,
            columns,
            other_phones,
            invalid: None,
        };
        // Errors that a campaign with these columns would have are reported now.
        let settings = ListSettings { columns: list.renamed_columns(), region: list.region, may_be_empty: false };
        let reader =
            RecipientReader::open(decode_list(path, format)?, path, &settings).map_err(DraftError::ListRefused)?;
        list.invalid = count_invalid_rows(reader, list.region);
        Ok(list)
    }

    /// The columns that get a new name, each as a pair of the name and the header.
    pub fn renamed_columns(&self) -> Vec<(String, String)> {
        let phone = ("phone".to_owned(), self.phone.clone());
        std::iter::once(phone).chain(self.columns.iter().cloned()).filter(|(name, header)| name != header).collect()
    }

    /// The columns that keep their headers as names.
    pub fn unchanged_columns(&self) -> Vec<&str> {
        self.columns.iter().filter(|(name, header)| name == header).map(|(name, _)| name.as_str()).collect()
    }

    /// The column for the greeting, if the list has columns besides the phone numbers.
    pub fn greeting_column(&self) -> Option<&str> {
        let names = || self.columns.iter().map(|(name, _)| name.as_str());
        GREETING_COLUMNS.into_iter().find(|best| names().any(|name| name == *best)).or_else(|| names().next())
    }
}

/// Counts the rows without a valid number. Rows that cannot be read are not counted here, because `check` reports them.
fn count_invalid_rows(mut reader: RecipientReader<impl Read>, region: Option<Region>) -> Option<InvalidRows> {
    let phone = reader.header().phone();
    let (mut chunk, mut invalid, mut total) = (Chunk::new(), None, 0);
    while reader.read_chunk(&mut chunk).unwrap_or(true) {
        total += chunk.len() as u64;
        for record in chunk.iter().filter(|record| parse_phone_number(record.fields.get(phone), region).is_err()) {
            invalid.get_or_insert(InvalidRows { rows: 0, total: 0, first: record.row }).rows += 1;
        }
    }
    invalid.map(|invalid| InvalidRows { total, ..invalid })
}

/// Adds advice to the first finding if the list is probably on another sheet or has its header in another row.
fn add_likely_place(mut findings: Vec<Finding>, path: &Path, format: &ListFormat) -> Vec<Finding> {
    let Some(first) = findings.first_mut() else { return findings };
    let Some(place) = find_list(|| regular_file::open(path), path, format, None) else { return findings };
    add_advice(first, &place);
    findings
}

/// Adds advice to a finding: the options with which the list can be read.
fn add_advice(finding: &mut Finding, place: &ListPlace) {
    let sheet = place.sheet.as_ref().map(|sheet| format!("--sheet {}", quote_for_shell(sheet)));
    let row = (place.sheet.is_none() || place.header_row > 1).then(|| format!("--header-row {}", place.header_row));
    let options: Vec<String> = sheet.into_iter().chain(row).collect();
    place.add_advice(finding, &format!("add `{}`", options.join(" ")));
}

fn decode_list(path: &Path, format: &ListFormat) -> Result<DecodedText, DraftError> {
    let file = regular_file::open(path).map_err(|error| DraftError::ListUnreadable { path: path.to_owned(), error })?;
    decode(file, path, format, None).map_err(|finding| DraftError::ListRefused(vec![*finding]))
}

/// A complete campaign for a common task.
#[derive(Debug)]
pub struct ExampleCampaign {
    /// The name that `init --example` accepts.
    pub name: &'static str,
    /// A summary of the campaign, in one line.
    pub summary: &'static str,
    files: &'static [ExampleFile],
}

#[derive(Debug)]
struct ExampleFile {
    /// The name in the folder of the example.
    name: &'static str,
    text: &'static str,
}

/// Defines an example with the listed files of its folder, in this order.
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
        "A sale announcement with discount codes, by Viber or SMS",
        ["campaign.yaml", "viber.uk.txt", "viber.en.txt", "sms.uk.txt", "sms.en.txt", "list.csv"]
    ),
    example!(
        "reminder",
        "Appointment reminders, sent daily by Viber or SMS",
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
        "A survey that recipients answer by Viber reply or through a link in an SMS",
        ["campaign.yaml", "viber.uk.txt", "viber.en.txt", "sms.uk.txt", "sms.en.txt", "list.csv", "scenario.yaml"]
    ),
    example!(
        "birthday",
        "Birthday greetings with a gift, sent daily by Viber or SMS",
        ["campaign.yaml", "viber.uk.txt", "viber.en.txt", "sms.uk.txt", "sms.en.txt", "list.csv"]
    ),
    example!(
        "debt",
        "Polite reminders about unpaid invoices, sent by SMS on weekdays",
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
    ("digits.txt", "templates/NAME.digits.txt", "the code, as read out in the voice call"),
    ("list.csv", "NAME.csv", "the recipients: sample rows"),
    ("scenario.yaml", "scenarios/NAME.yaml", "a sandbox scenario: recipients reply"),
];

/// The time zone of all examples. Dates in an example are relative to today in this zone.
const ZONE: &str = "Europe/Kyiv";

/// The maximum number of days between today and a date in an example.
const MAX_DAYS: i32 = 31;

/// Finds an example by its name.
pub fn find_example(name: &str) -> Option<&'static ExampleCampaign> {
    EXAMPLES.iter().find(|example| example.name == name)
}

/// The files of a new campaign that follows an example.
///
/// # Panics
/// If the bundled time zone database has no zone for Kyiv.
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

/// Replaces `DATE+10`, `DATE-10` and `BIRTHDAY+10` with the date that many days from today. `WEEKDAY+10` becomes that
/// date or, if it is on a weekend, the next Monday.
fn insert_dates(text: &str, today: Date) -> String {
    // Descending, because `DATE+1` is a prefix of `DATE+10`.
    let distances = (0..=MAX_DAYS).rev().flat_map(|days| [days, -days]);
    distances.fold(text.to_owned(), |text, days| {
        let date = today.saturating_add(days.days());
        text.replace(&format!("BIRTHDAY{days:+}"), &date.strftime("%m-%d").to_string())
            .replace(&format!("WEEKDAY{days:+}"), &skip_weekend(date).to_string())
            .replace(&format!("DATE{days:+}"), &date.to_string())
    })
}

/// The date, or the next Monday if the date is on a weekend.
fn skip_weekend(date: Date) -> Date {
    let days_to_monday = match date.weekday() {
        Weekday::Saturday => 2,
        Weekday::Sunday => 1,
        _ => 0,
    };
    date.saturating_add(days_to_monday.days())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use campaign_core::domain::{ListFormat, Region};

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof!["\\PC{1,20}", "[-:#'\"|>&*!%@`{}\\[\\],~ \nа-яa-z0-9.]{1,12}", "true|no|~|0x1F|\\+?[0-9]{1,12}|1e3"]
    }

    proptest! {
        #[test]
        fn draft_quotes_any_list_path_and_header_correctly(path in any_text(), phone in any_text(), region: bool) {
            let region = region.then(|| "UA".parse::<Region>().unwrap());
            let columns = vec![("plan".to_owned(), "plan".to_owned())];
            let (other_phones, invalid) = (Vec::new(), None);
            let format = ListFormat { sheet: Some(phone.clone()), header_row: Some(4), ..ListFormat::default() };
            let (list_path, list_phone, other_regions) = (path.clone(), phone.clone(), Vec::new());
            let list = DraftList {
                path: list_path, format, phone: list_phone, region, other_regions, columns, other_phones, invalid,
            };
            let yaml = format_recipients(&list);
            let read: serde_json::Value = serde_yaml::from_str(&yaml).unwrap();
            let recipients = &read["recipients"];
            prop_assert_eq!(&recipients["file"], &path, "{}", yaml);
            prop_assert_eq!(&recipients["sheet"], &phone, "{}", yaml);
            prop_assert_eq!(&recipients["header_row"], 4, "{}", yaml);
            prop_assert_eq!(recipients["region"].as_str(), region.map(|_| "UA"), "{}", yaml);
            prop_assert!(phone == "phone" || recipients["columns"]["phone"] == phone, "{}", yaml);
        }
    }
}

#[cfg(test)]
mod list_tests {
    use super::*;

    fn read(text: &str) -> Result<DraftList, DraftError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, text).unwrap();
        DraftList::read(&path, &ListFormat::default())
    }

    fn expect_refused(text: &str) -> Finding {
        match read(text) {
            Err(DraftError::ListRefused(findings)) => findings[0].clone(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn ukrainian_headers_get_names_for_templates() {
        let list = read("Мобільний;Ім'я;plan\n050 000 00 01;Олена;gold\n").unwrap();
        let renamed = [("phone", "Мобільний"), ("first_name", "Ім'я")];
        assert_eq!(list.renamed_columns(), renamed.map(|(name, header)| (name.to_owned(), header.to_owned())));
        assert_eq!(list.unchanged_columns(), ["plan"]);
        assert_eq!(list.region.unwrap().to_string(), "UA");
        assert_eq!(list.greeting_column(), Some("first_name"));
    }

    #[test]
    fn greeting_uses_the_name_column_or_else_the_first_column() {
        let table =
            [("city,name,phone\nKyiv,Olena,", Some("name")), ("city,phone\nKyiv,", Some("city")), ("phone\n", None)];
        for (text, column) in table {
            let list = read(&format!("{text}+380500000001\n")).unwrap();
            assert_eq!(list.greeting_column(), column, "{text}");
        }
    }

    #[test]
    fn damaged_list_gets_advice_that_fits_the_damage() {
        for (text, advice) in [
            ("Телефон;name\n3,80501E+11;Olena\n", "last digits are lost"),
            ("name,Телефон\nOlena,3,80501E+11\n", "last digits are lost"),
            (
                "phone;name\n3,80501E+11;A\n+380931000003;B\n3,80671E+11;C\n",
                "2 of 3 numbers, for example to `3,80501E+11`",
            ),
            ("contact\nOlena Koval <+380501000001>\nTaras <+380671000002>\n", "put the number in its own column"),
            ("contact\n\"Koval, Maria\" <+380931000003>\n", "split the column `contact` into two columns"),
            ("Clients of spring;;\nphone;name;city\n+380501234567;Olena;Kyiv\n", "delete the rows above the header"),
            ("Clients of spring\nphone,name\n+380501234567,Olena\n", "delete the rows above the header"),
            ("Spring,\n,all\nphone,name\n+380501234567,A\n+380501234568,B\n", "add `--header-row 3`"),
        ] {
            let error = expect_refused(text);
            assert!(error.help.as_ref().unwrap().contains(advice), "{text}: {error:?}");
        }
        for text in ["sep=;\r\nphone;name\r\n+380501234567;Olena\r\n", "phone|name\n+380501234567|Olena\n"] {
            assert_eq!(read(text).unwrap().phone, "phone", "{text}");
        }
    }

    #[test]
    fn unusable_list_is_refused_with_advice() {
        let table = [
            ("name,city\nOlena,Kyiv\n", "no-phones"),
            ("+380500000001,Olena\n+380500000002,Taras\n", "recipients-no-header"),
            ("phone,name,name\n+380500000001,Olena,Olena\n", "recipients-duplicate-column"),
            ("", "recipients-empty"),
        ];
        for (text, rule) in table {
            let error = expect_refused(text);
            assert_eq!(error.rule, rule, "{text}");
            assert!(error.help.is_some(), "{text}");
        }
    }
}

#[cfg(test)]
mod example_tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;

    use jiff::civil::date;

    use super::*;

    #[test]
    fn every_file_in_the_examples_folder_is_listed() {
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
                for placeholder in ["NAME", "DATE", "BIRTHDAY", "WEEKDAY", "SCHEMA"] {
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
        let weekdays = insert_dates("WEEKDAY+0 WEEKDAY+3 WEEKDAY+4 WEEKDAY+5 WEEKDAY+6", date(2028, 2, 29));
        assert_eq!(weekdays, "2028-02-29 2028-03-03 2028-03-06 2028-03-06 2028-03-06");
        let birthday = find_example("birthday").unwrap();
        let drafts = draft_example("spring", birthday, "2028-02-28T22:30:00Z".parse().unwrap());
        let list = drafts.iter().find(|draft| draft.path == "spring.csv").unwrap();
        assert!(list.text.contains("1992-02-29"), "{}", list.text);
    }
}
