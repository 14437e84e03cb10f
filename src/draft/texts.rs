//! The texts of the files.

use serde::Serialize;

use super::list::DraftList;
use crate::manifest::campaign_schema;

const CAMPAIGN: &str = include_str!("campaign.yaml");
/// Where the campaign says that editors find its schema: beside it, so that it needs no network and moves with it.
const SCHEMA: &str = "campaign.schema.json";
const RECIPIENTS: &str = include_str!("recipients.csv");

/// A file to be written.
#[derive(Clone, Debug)]
pub struct DraftFile {
    /// Where, from the current folder.
    pub path: String,
    /// What it holds.
    pub text: String,
    /// What it is, for a person.
    pub description: &'static str,
    /// Whether one that is there already does as well.
    pub shared: bool,
}

/// The files of a new campaign; without a list, one with made-up people.
#[must_use]
pub fn draft_campaign(name: &str, list: Option<&DraftList>) -> Vec<DraftFile> {
    let recipients = list.map_or_else(|| starter_recipients(name), format_recipients);
    let campaign = CAMPAIGN.replace("NAME", name).replace("SCHEMA", SCHEMA).replace("RECIPIENTS\n", &recipients);
    let greeted_by = list.map_or(Some("first_name"), DraftList::greeting_column);
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
    let text = format!("{:#}\n", campaign_schema());
    drafts.push(DraftFile {
        path: SCHEMA.to_owned(),
        text,
        description: "the JSON Schema that lets editors complete keys",
        shared: true,
    });
    drafts
}

fn own_file(path: String, text: String, what: &'static str) -> DraftFile {
    DraftFile { path, text, description: what, shared: false }
}

fn starter_recipients(name: &str) -> String {
    let file = append_comment(&format!("  file: {name}.csv"), "the first row contains the column names for templates");
    let region = append_comment("  # region: UA", "for numbers without a country code, such as 050 123 45 67");
    format!("recipients:\n{file}{region}\n")
}

/// The recipients of a campaign as its list is. YAML is written by serde_yaml, which knows what needs quotes; it knows
/// no comments.
fn format_recipients(list: &DraftList) -> String {
    let renamed = list.renamed_columns().into_iter();
    let recipients = DraftRecipients {
        file: &list.path,
        sheet: list.form.sheet.as_deref(),
        header_row: list.form.header_row,
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
                append_comment(region, "the country of numbers without a country code")
            }
            _ => line.to_owned(),
        };
    }
    let kept = list.unchanged_columns();
    if !kept.is_empty() {
        yaml += &format!("  # templates can also use these headers: {}\n", kept.join(", "));
    }
    yaml + "\n"
}

#[derive(Serialize)]
struct DraftCampaign<'l> {
    recipients: DraftRecipients<'l>,
}

/// Whose list it is, under the keys of a campaign file.
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

/// An SMS that greets by a column, and does without where its cell is empty.
fn greeting_text(column: Option<&str>) -> String {
    let name = column.map(|column| format!("{{% if {column} %}}, {{{{ {column} }}}}{{% endif %}}"));
    format!("Hello{}! -20% on everything until Sunday: https://shop.example\n", name.unwrap_or_default())
}

fn append_comment(line: &str, text: &str) -> String {
    format!("{line:<33} # {text}\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::{ListFormat, Region};

    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["\\PC{1,20}", "[-:#'\"|>&*!%@`{}\\[\\],~ \nа-яa-z0-9.]{1,12}", "true|no|~|0x1F|\\+?[0-9]{1,12}|1e3"]
    }

    proptest! {
        #[test]
        fn draft_names_any_list_and_headers_correctly(path in text(), phone in text(), region: bool) {
            let region = region.then(|| "UA".parse::<Region>().unwrap());
            let columns = vec![("plan".to_owned(), "plan".to_owned())];
            let (other_phones, invalid) = (Vec::new(), None);
            let form = ListFormat { sheet: Some(phone.clone()), header_row: Some(4), ..ListFormat::default() };
            let list = DraftList { path: path.clone(), form, phone: phone.clone(), region, columns, other_phones, invalid };
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
