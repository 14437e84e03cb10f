//! Recipient sources, suppression files, consent files and lookup tables of a campaign, and findings about lists that
//! cannot be opened.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::Date;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::document::{ConfigSection, FindingCollector};
use super::keys::{SUPPRESS_FILE, unknown_country_finding};
use super::yaml::Node;
use super::{CampaignPath, SecretSource};
use campaign_core::domain::{ConsentPeriod, ConsentRules, CountrySet, Region, RowState};
use campaign_core::finding::{Finding, did_you_mean, rules};

/// The source of a campaign's recipients. It contains no secrets, only where they are stored.
#[derive(Clone, Debug, PartialEq)]
pub enum RecipientSource {
    /// A file of the user.
    File(CampaignPath),
    /// Recipients of an earlier run.
    Run(PastRecipients),
    /// A list that is downloaded from a URL.
    Url(ListUrl),
    /// The output of a program.
    Command(ListCommand),
    /// The result of a database query.
    Sql(ListQuery),
    /// Standard input, written as `file: "-"`. Also the placeholder for a source with errors.
    StandardInput,
}

/// The countries in the list under a key. Unknown codes are reported.
pub(crate) fn read_countries(
    section: ConfigSection<'_>,
    key: &str,
    report: &mut FindingCollector,
) -> Option<CountrySet> {
    let mut countries = Vec::new();
    for item in section.find_value(key)?.as_items()? {
        let Some(scalar) = item.as_scalar() else { continue };
        match scalar.text.trim().parse::<Region>() {
            Ok(country) => countries.push(country),
            Err(error) => report.add(&item.span, unknown_country_finding(&scalar.text, &error)),
        }
    }
    Some(CountrySet::new(countries))
}

/// Recipients of a run by the state of their messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRecipients {
    /// The run, such as `autumn-sale@3`, or the name of a campaign. Under `recipients`, a name means the campaign's
    /// latest run; under `exclude`, all runs of its latest edition.
    pub run: String,
    /// The states to select; never empty.
    pub states: Vec<RowState>,
}

/// A URL of a list: `https`, or on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListUrl {
    /// The URL, which contains no user name or password.
    pub url: Url,
    /// The request headers by name.
    pub headers: Vec<(String, HeaderText)>,
    /// The timeout until the whole list has arrived.
    pub timeout: Duration,
}

/// The value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderText {
    /// A constant value.
    Plain(String),
    /// A secret and where it is stored.
    Secret(SecretSource),
}

/// A program that prints a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCommand {
    /// The program and its arguments; never empty.
    pub words: Vec<String>,
    /// The working folder: that of the campaign file.
    pub folder: PathBuf,
    /// The timeout until the program has ended and its whole output was read.
    pub timeout: Duration,
}

/// A query whose result is a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListQuery {
    /// The query, in which `:today` is the date.
    pub sql: String,
    /// The location of the address of the database.
    pub from: SecretSource,
    /// The timeout until the whole list has arrived.
    pub timeout: Duration,
}

impl RecipientSource {
    /// The file of the list; `None` for other sources.
    pub fn list_file(&self) -> Option<&CampaignPath> {
        match self {
            Self::File(path) => Some(path),
            Self::Run(_) | Self::Url(_) | Self::Command(_) | Self::Sql(_) | Self::StandardInput => None,
        }
    }

    /// The key under `recipients` that defines the source.
    pub fn source_key(&self) -> &'static str {
        match self {
            Self::File(_) | Self::StandardInput => "file",
            Self::Run(_) => "run",
            Self::Url(_) => "url",
            Self::Command(_) => "command",
            Self::Sql(_) => "sql",
        }
    }
}

/// Writes the name for people, without URL parameters and program arguments, which can contain secrets.
impl Display for RecipientSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Run(PastRecipients { run, states }) => {
                let states: Vec<&str> = states.iter().map(|state| state.name()).collect();
                write!(f, "recipients of {run} ({})", states.join(", "))
            }
            Self::Url(ListUrl { url, .. }) => {
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                write!(f, "{}://{}{port}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
            }
            Self::Command(ListCommand { words, .. }) => {
                let program = words.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
                write!(f, "the output of {}", program.to_string_lossy())
            }
            Self::Sql(ListQuery { from: SecretSource::Env(name), .. }) => write!(f, "a query on {name}"),
            Self::Sql(ListQuery { from: SecretSource::File(path), .. }) => write!(f, "a query on {}", path.display()),
            Self::StandardInput => f.write_str("standard input"),
        }
    }
}

/// A file of opted-out numbers that is maintained outside the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuppressionFile {
    /// The file, in any format of a list of recipients.
    pub file: CampaignPath,
    /// The header of the column with the numbers, if defined.
    pub phone: Option<String>,
    /// The region of national numbers in the file; `None` for the region of the recipients.
    pub region: Option<Region>,
    /// The key that names the file, such as `recipients.suppress[0]`.
    pub key: String,
}

/// The files under `suppress` in the map at the path `prefix`. `resolve_path` resolves the name of a file, and
/// `read_region` reads the region of its entry.
pub(super) fn read_suppression_files(
    map: ConfigSection<'_>,
    prefix: &str,
    mut resolve_path: impl FnMut(&str, &Range<usize>) -> Option<CampaignPath>,
    mut read_region: impl FnMut(ConfigSection<'_>) -> Option<Region>,
) -> Vec<SuppressionFile> {
    let items = map.find_value("suppress").and_then(Node::as_items).unwrap_or_default();
    let read_file = |(index, item): (usize, &Node)| {
        let section = ConfigSection::new(Some(item), SUPPRESS_FILE);
        let (name, span) = match item.as_scalar() {
            Some(scalar) => (scalar.text.trim(), &item.span),
            None => section.typed_text("file")?,
        };
        Some(SuppressionFile {
            file: resolve_path(name, span)?,
            phone: section.typed_text("phone").map(|(header, _)| header.to_owned()),
            region: read_region(section),
            key: format!("{prefix}.suppress[{index}]"),
        })
    };
    items.iter().enumerate().filter_map(read_file).collect()
}

/// The source of the recipients' consent, and the condition under which it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentSource {
    /// The file of consents. `None` if they are in columns of the list.
    pub file: Option<ConsentFile>,
    /// The header of the answers. Always defined for columns of the list.
    pub column: Option<String>,
    /// The header of the dates.
    pub at: Option<String>,
    /// The header of the places where consent was given.
    pub source: Option<String>,
    /// The header of the texts that recipients agreed to.
    pub wording: Option<String>,
    /// The answers that mean consent.
    pub words: Vec<String>,
    /// The period for which a consent is valid.
    pub valid_for: Option<ConsentPeriod>,
}

/// A file of consents that is maintained outside the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsentFile {
    /// The file, in any format of a list of recipients.
    pub file: CampaignPath,
    /// The header of the column with the numbers, if defined.
    pub phone: Option<String>,
    /// The region of national numbers in the file; `None` for the region of the recipients.
    pub region: Option<Region>,
}

impl ConsentSource {
    /// The keys for the answer, time, source and wording, each with its column header.
    pub fn headers(&self) -> [(&'static str, Option<&str>); 4] {
        let Self { file: _, column, at, source, wording, words: _, valid_for: _ } = self;
        [
            ("column", column.as_deref()),
            ("at", at.as_deref()),
            ("source", source.as_deref()),
            ("wording", wording.as_deref()),
        ]
    }

    /// The rules for checking consent on a given day.
    pub fn rules_on(&self, today: Date) -> ConsentRules {
        ConsentRules::new(&self.words, self.at.is_some(), self.valid_for, today)
    }
}

/// A lookup table of the campaign, not yet read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The name of the table in texts.
    pub name: String,
    /// The file, in any format of a list of recipients.
    pub file: CampaignPath,
    /// The header of the column that rows are looked up by.
    pub key: String,
}

/// A finding about a recipient list that cannot be opened. It suggests the list that was probably meant.
pub fn describe_list_open_error(path: &Path, error: &io::Error) -> Finding {
    describe_file_open_error(&format!("the list of recipients `{}`", path.display()), path, error)
}

/// A finding about a list, lookup table or similar file that cannot be opened; `subject` is the subject of the message.
pub fn describe_file_open_error(subject: &str, path: &Path, error: &io::Error) -> Finding {
    let is_missing = error.kind() == ErrorKind::NotFound;
    let reason = if is_missing { "does not exist".to_owned() } else { format!("cannot be opened: {error}") };
    let finding = Finding::new(&rules::RECIPIENTS_MISSING, format!("{subject} {reason}"));
    if !is_missing {
        return finding;
    }
    let meant = find_nearby_lists(path);
    let typed = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match did_you_mean(typed, meant.iter().map(String::as_str)) {
        Some(meant) => finding.help(format!("did you mean `{}`?", path.with_file_name(meant).display())),
        None => finding.help("check the name; the path is relative to the campaign file"),
    }
}

/// The names of the lists in the same folder, sorted.
fn find_nearby_lists(path: &Path) -> Vec<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.path()).filter(|path| is_list_file(path));
    let mut names: Vec<String> = names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect();
    names.sort_unstable();
    names
}

/// Whether the file exists and has an extension of a list.
pub(super) fn is_list_file(path: &Path) -> bool {
    const ENDINGS: [&str; 5] = ["csv", "tsv", "xlsx", "xls", "ods"];
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.iter().any(|list| ending.eq_ignore_ascii_case(list)) && path.is_file()
}
