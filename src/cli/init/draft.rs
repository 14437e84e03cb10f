//! The texts of the files that `init` writes.

use super::list::List;

const CAMPAIGN: &str = include_str!("campaign.yaml");
const RECIPIENTS: &str = include_str!("recipients.csv");

/// A file to be written.
#[derive(Debug)]
pub(super) struct Draft {
    /// Where, from the current folder.
    pub(super) path: String,
    /// What it holds.
    pub(super) text: String,
    /// What it is, for a person.
    pub(super) what: &'static str,
}

/// The files of a new campaign; without a list, one with made-up people.
pub(super) fn drafts(name: &str, list: Option<&List>) -> Vec<Draft> {
    let recipients = list.map_or_else(|| starter(name), described);
    let campaign = CAMPAIGN.replace("NAME", name).replace("RECIPIENTS\n", &recipients);
    let greeted_by = list.map_or(Some("first_name"), List::greeted_by);
    let mut drafts = vec![
        Draft { path: format!("{name}.yaml"), text: campaign, what: "the campaign: who gets what, and how" },
        Draft { path: format!("templates/{name}.sms.txt"), text: greeting(greeted_by), what: "the text of the SMS" },
    ];
    if list.is_none() {
        let (path, text) = (format!("{name}.csv"), RECIPIENTS.to_owned());
        drafts.push(Draft { path, text, what: "the recipients: five made-up people" });
    }
    drafts
}

fn starter(name: &str) -> String {
    let file = comment(&format!("  file: {name}.csv"), "the first row names the columns; texts use them");
    let region =
        comment("  # region: UA", "if numbers are written without their country's code, such as 050 123 45 67");
    format!("recipients:\n{file}{region}\n")
}

/// The recipients of a campaign as its list is.
fn described(list: &List) -> String {
    let mut yaml = format!("recipients:\n  file: {}\n", quoted(&list.path));
    if let Some(region) = list.region {
        yaml += &comment(&format!("  region: {region}"), "numbers without a country's code are of this country");
    }
    let renamed = list.renamed();
    if !renamed.is_empty() {
        yaml += &comment("  columns:", "a name that texts use, then the header in the list");
        for (name, header) in renamed {
            yaml += &format!("    {name}: {}\n", quoted(&header));
        }
    }
    let kept = list.kept();
    if !kept.is_empty() {
        yaml += &format!("  # texts also use, by their headers: {}\n", kept.join(", "));
    }
    yaml + "\n"
}

/// An SMS that greets by a column, and does without where its cell is empty.
fn greeting(column: Option<&str>) -> String {
    let name = column.map(|column| format!("{{% if {column} %}}, {{{{ {column} }}}}{{% endif %}}"));
    format!("Hello{}! -20% on everything until Sunday: https://shop.example\n", name.unwrap_or_default())
}

fn comment(line: &str, text: &str) -> String {
    format!("{line:<33} # {text}\n")
}

/// A text in double quotes: every string of JSON is one of YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
