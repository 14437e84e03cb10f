//! The keys under `recipients` and `data`: the list and its format, region and columns, opt-outs, consent,
//! and lookup tables.

use std::ops::Range;
use std::time::Duration;

use encoding_rs::Encoding;
use reqwest::Url;

use super::Resolver;
use super::timing::{has_placeholder, insert_date, replace_today};
use crate::document::ConfigSection;
use crate::keys::{CONSENT, DATA_KEYS, PHONE_COLUMN, SUPPRESS_FILE};
use crate::profile::{SecretSource, is_loopback_host, read_secret_source};
use crate::recipients::{
    ConsentFile, ConsentSource, HeaderText, ListCommand, ListQuery, ListUrl, PastRecipients, RecipientSource,
    SuppressionFile, TableFile, read_suppression_files,
};
use crate::value::Seconds;
use crate::yaml::{MapEntry, Node};
use campaign_core::domain::variable::{is_built_in, is_reserved, is_variable};
use campaign_core::domain::{ConsentPeriod, Delimiter, ListFormat, ParseRegionError, Region, RowState};
use campaign_core::finding::{Finding, did_you_mean, quote_for_yaml, rules};

/// The keys of the sources of a list, each with the keys that belong to it.
const SOURCES: [(&str, &[&str]); 5] = [
    ("file", &[]),
    ("run", &["state"]),
    ("url", &["headers", "timeout"]),
    ("command", &["timeout"]),
    ("sql", &["from", "timeout"]),
];

/// The file name that means standard input.
const STANDARD_INPUT: &str = "-";

/// Headers whose values are secrets.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];
/// Headers that can make a server return only part of the list, or no list.
const CONDITIONAL_HEADERS: [&str; 7] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "a-im"];

impl Resolver<'_> {
    /// The region whose code is under `region`. An unknown code is reported.
    pub(super) fn resolve_region(&mut self, recipients: ConfigSection<'_>) -> Option<Region> {
        let (code, span) = recipients.typed_text("region")?;
        let report_unknown = |error: ParseRegionError| {
            let finding = Finding::new(&rules::UNKNOWN_REGION, format!("unknown region `{code}`"));
            self.report.add(span, finding.help(error.suggest_fix()));
        };
        code.parse().map_err(report_unknown).ok()
    }

    /// The names that templates use for columns, each with the column's header.
    pub(super) fn resolve_columns(&mut self, recipients: ConfigSection<'_>) -> Vec<(String, String)> {
        let entries = recipients.find_value("columns").and_then(|node| node.as_entries()).unwrap_or_default();
        if let Some(columns) = self.unswap_columns(entries) {
            return columns;
        }
        let mut columns = Vec::new();
        for entry in entries {
            self.check_variable_name(&entry.key, &entry.key_span);
            let headers = entry.value.as_items().filter(|_| entry.key == PHONE_COLUMN);
            for header in headers.unwrap_or(std::slice::from_ref(&entry.value)) {
                let Some(header) = header.as_scalar().map(|scalar| scalar.text.trim()) else { continue };
                if header.is_empty() {
                    let finding = Finding::new(&rules::EMPTY_VALUE, format!("`{}` does not name a header", entry.key));
                    self.report.add(&entry.key_span, finding.help("write the column's header exactly as in the list"));
                }
                columns.push((entry.key.clone(), header.to_owned()));
            }
        }
        columns
    }

    /// Returns the corrected columns if headers and names are swapped, and reports the mistake once with the lines to
    /// write. `None` if headers and names are not swapped.
    fn unswap_columns(&mut self, entries: &[MapEntry]) -> Option<Vec<(String, String)>> {
        let is_header =
            |entry: &MapEntry| !is_variable(&entry.key) && !is_built_in(&entry.key) && !is_reserved(&entry.key);
        let names = entries.iter().map(|entry| entry.value.as_scalar().map(|name| name.text.trim()));
        let names: Vec<&str> = names.collect::<Option<_>>()?;
        let has_names =
            names.iter().all(|name| is_variable(name) && name.starts_with(|c: char| c.is_ascii_lowercase()));
        let is_swapped = match names.contains(&PHONE_COLUMN) {
            true => entries.iter().all(|entry| entry.key != PHONE_COLUMN),
            false => entries.len() > 1 && entries.iter().all(is_header),
        };
        let first = entries.iter().find(|entry| is_header(entry)).filter(|_| has_names && is_swapped)?;
        let columns: Vec<(String, String)> =
            names.iter().zip(entries).map(|(name, entry)| ((*name).to_owned(), entry.key.trim().to_owned())).collect();
        let lines = columns.iter().map(|(name, header)| format!("{name}: {}", quote_for_yaml(header)));
        let lines: Vec<String> = lines.collect();
        let message = "under `columns`, the list's headers come before the names";
        let help = format!("write the names first: `columns: {{ {} }}`", lines.join(", "));
        self.report.add(&first.key_span, Finding::new(&rules::VARIABLE_NAME, message).help(help));
        Some(columns)
    }

    /// The source of the list; `None` if it is missing or wrong, which was reported.
    pub(super) fn resolve_recipients(&mut self, section: ConfigSection<'_>) -> Option<RecipientSource> {
        let given_sources: Vec<_> = SOURCES.into_iter().filter(|(key, _)| section.has_value(key)).collect();
        if let [(source, source_keys)] = given_sources.as_slice() {
            self.report_foreign_keys(section, source, source_keys);
            return self.resolve_source(section, source);
        }
        // Several sources are given and the intended one is unknown, so all are checked.
        given_sources.iter().for_each(|(source, _)| drop(self.resolve_source(section, source)));
        None
    }

    fn resolve_source(&mut self, section: ConfigSection<'_>, source: &str) -> Option<RecipientSource> {
        match source {
            "run" => self.resolve_past_recipients(section).map(RecipientSource::Run),
            "url" => self.resolve_list_url(section).map(RecipientSource::Url),
            "command" => self.resolve_list_command(section).map(RecipientSource::Command),
            "sql" => self.resolve_list_query(section).map(RecipientSource::Sql),
            _ if section.typed_text("file").is_some_and(|(name, _)| name == STANDARD_INPUT) => {
                Some(RecipientSource::StandardInput)
            }
            _ => self.resolve_file_key(section, "file").map(RecipientSource::File),
        }
    }

    /// Reports keys that apply only to other kinds of sources.
    fn report_foreign_keys(&mut self, section: ConfigSection<'_>, source: &str, source_keys: &[&str]) {
        for key in ["state", "headers", "from", "timeout"].into_iter().filter(|key| !source_keys.contains(key)) {
            let Some(entry) = section.entry(key) else { continue };
            let sources = SOURCES.iter().filter(|(_, keys)| keys.contains(&key)).map(|(source, _)| *source);
            let message = format!(
                "`{key}` applies only to {}, but the list comes from `{source}`",
                campaign_core::finding::join_alternatives(sources)
            );
            self.report.add(&entry.key_span, Finding::new(&rules::ONE_OF_TWO, message).help(format!("remove `{key}`")));
        }
    }

    fn resolve_past_recipients(&mut self, section: ConfigSection<'_>) -> Option<PastRecipients> {
        let (run, span) = section.typed_text("run")?;
        read_past_recipients(run, section.find_value("state")).or_else(|| {
            let finding = Finding::new(&rules::MISSING_KEY, "`run` needs `state` to select recipients");
            self.report.add(
                span,
                finding.help("add `state: undelivered`, or a list of states, for example `state: [failed, rejected]`"),
            );
            None
        })
    }

    fn resolve_list_url(&mut self, section: ConfigSection<'_>) -> Option<ListUrl> {
        let (text, span) = section.typed_text("url")?;
        let url = parse_safe_url(&replace_today(text, self.today)).map_err(|(message, help)| {
            self.report.add(span, Finding::new(&rules::LIST_ADDRESS, message).help(help));
        });
        let headers = section.find_value("headers").and_then(Node::as_entries).unwrap_or_default();
        let mut resolved = Some(Vec::new());
        for entry in headers {
            let name = entry.key.trim().to_owned();
            if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
                let finding = Finding::new(&rules::LIST_ADDRESS, format!("`{name}` is not a valid header name"));
                self.report.add(&entry.key_span, finding.help("write a name such as `Authorization` or `Accept`"));
                continue;
            }
            if CONDITIONAL_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                let finding =
                    Finding::new(&rules::LIST_ADDRESS, format!("the header `{name}` requests only part of the list"));
                self.report.add(&entry.key_span, finding.help(format!("remove `{name}`")));
                continue;
            }
            let text = match entry.value.as_scalar() {
                Some(_) if SECRET_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {
                    let finding = Finding::new(
                        &rules::SECRET,
                        format!("`{name}` must say where to find the secret, not contain it"),
                    );
                    self.report.add(&entry.key_span, finding.help(format!("write `{name}: {{ env: NAME }}`")));
                    continue;
                }
                Some(scalar) if reqwest::header::HeaderValue::from_str(&scalar.text).is_err() => {
                    let finding = Finding::new(
                        &rules::LIST_ADDRESS,
                        format!("the value of `{name}` is not valid in an HTTP header"),
                    );
                    self.report.add(&entry.value.span, finding.help("write a single line of ASCII characters"));
                    continue;
                }
                Some(scalar) => HeaderText::Plain(scalar.text.clone()),
                None => match self.resolve_secret(&entry.value, &name) {
                    Some(secret) => HeaderText::Secret(secret),
                    None => {
                        resolved = None;
                        continue;
                    }
                },
            };
            if let Some(resolved) = &mut resolved {
                resolved.push((name, text));
            }
        }
        Some(ListUrl { url: url.ok()?, headers: resolved?, timeout: read_timeout(section)? })
    }

    fn resolve_list_command(&mut self, section: ConfigSection<'_>) -> Option<ListCommand> {
        let words = section.list_items("command");
        let mut words: Vec<String> = words.into_iter().map(|word| replace_today(word, self.today)).collect();
        let program = words.first_mut()?;
        *program = self.paths.resolve_program(program);
        Some(ListCommand { words, folder: self.paths.absolute_folder(), timeout: read_timeout(section)? })
    }

    fn resolve_list_query(&mut self, section: ConfigSection<'_>) -> Option<ListQuery> {
        let sql = section.find_value("sql")?.as_scalar()?.text.trim().to_owned();
        let Some(from) = section.find_value("from") else {
            let (_, span) = section.typed_text("sql")?;
            let finding = Finding::new(&rules::MISSING_KEY, "`sql` needs `from`, which specifies the database");
            self.report.add(
                span,
                finding.help("add `from: { env: CRM_URL }`; the variable must contain a URL such as `postgres://…`"),
            );
            return None;
        };
        Some(ListQuery { sql, from: self.resolve_secret(from, "from")?, timeout: read_timeout(section)? })
    }

    /// The location of a secret, with an absolute path.
    fn resolve_secret(&mut self, value: &Node, key: &str) -> Option<SecretSource> {
        Some(read_secret_source(value, key, &self.paths, self.report)?.with_absolute_path())
    }

    /// Reports standard input as the source of a scheduled campaign, and `wait_for_file` if the list is not a file.
    pub(super) fn check_schedule_source(&mut self, root: ConfigSection<'_>, source: Option<&RecipientSource>) {
        let schedule = root.subsection("schedule");
        if let Some(entry) = root.entry("schedule")
            && source == Some(&RecipientSource::StandardInput)
        {
            let finding = Finding::new(&rules::SCHEDULE, "a scheduled run cannot read the list from standard input");
            self.report.add(&entry.key_span, finding.help("use a file or a program (`command`), or remove `schedule`"));
            return;
        }
        if let Some(entry) = schedule.entry("wait_for_file")
            && source.is_some_and(|source| source.list_file().is_none())
        {
            let finding = Finding::new(&rules::SCHEDULE, "`wait_for_file` applies only to a list in a file");
            self.report
                .add(&entry.key_span, finding.help("remove `wait_for_file`; the list is fetched when the run is due"));
        }
    }
}

/// The recipients to skip: all who have or might have a message of an earlier run, or only those that `state`
/// selects.
pub(super) fn read_exclude(recipients: ConfigSection<'_>) -> Option<PastRecipients> {
    let section = recipients.subsection("exclude");
    let (run, _) = section.typed_text("run")?;
    match section.find_value("state") {
        Some(states) => read_past_recipients(run, Some(states)),
        None => {
            let states = RowState::ALL.into_iter().filter(|state| state.is_guarded()).collect();
            Some(PastRecipients { run: run.to_owned(), states })
        }
    }
}

fn read_past_recipients(run: &str, states: Option<&Node>) -> Option<PastRecipients> {
    let states = states?;
    let single = std::slice::from_ref(states);
    let words = states.as_items().unwrap_or(single).iter().filter_map(|word| word.as_scalar());
    let states: Vec<RowState> = words.flat_map(|word| RowState::parse_states(word.text.trim())).collect();
    (!states.is_empty()).then(|| PastRecipients { run: run.to_owned(), states })
}

/// Parses the URL of a list, or returns the problem and the remedy.
fn parse_safe_url(text: &str) -> Result<Url, (&'static str, &'static str)> {
    let Ok(url) = Url::parse(text) else {
        return Err(("`url` is not a URL", "write a URL such as `https://crm.example/people.csv`"));
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err((
            "`url` contains a user name or a password",
            "write `headers: { Authorization: { env: NAME } }` instead",
        ));
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback_host(url.host_str().unwrap_or_default()) => Ok(url),
        "http" => Err(("plain `http` sends phone numbers unencrypted", "use `https://`")),
        _ => Err(("`url` must start with `https://`", "use `https://`, or fetch the list with a program (`command`)")),
    }
}

fn read_timeout(section: ConfigSection<'_>) -> Option<Duration> {
    section.parse_value("timeout").map(|Seconds(seconds)| Duration::from_secs(seconds.into()))
}

/// Common names of encodings, for suggestions.
const ENCODINGS: [&str; 14] = [
    "utf-8",
    "utf-16le",
    "utf-16be",
    "windows-1250",
    "windows-1251",
    "windows-1252",
    "windows-1254",
    "windows-1257",
    "koi8-u",
    "koi8-r",
    "iso-8859-2",
    "iso-8859-5",
    "ibm866",
    "x-mac-cyrillic",
];

impl Resolver<'_> {
    /// The files under `suppress`.
    pub(super) fn resolve_suppress_files(&mut self, recipients: ConfigSection<'_>) -> Vec<SuppressionFile> {
        // Both closures report findings, so they share the resolver.
        let cell = std::cell::RefCell::new(self);
        let resolve_path = |name: &str, span: &Range<usize>| cell.borrow_mut().resolve_file_name(name, span);
        read_suppression_files(recipients, "recipients", resolve_path, |section| {
            cell.borrow_mut().resolve_region(section)
        })
    }

    /// The source of consent. `None` if the key is missing, or is invalid, which was reported.
    pub(super) fn resolve_consent(&mut self, recipients: ConfigSection<'_>) -> Option<ConsentSource> {
        let entry = recipients.entry("consent").filter(|_| recipients.has_value("consent"))?;
        let section = ConfigSection::new(Some(&entry.value), CONSENT);
        let read_header = |key| section.typed_text(key).map(|(header, _)| header.to_owned());
        let mut report_problem = |span: &Range<usize>, message: String, help: &str| {
            self.report.add(span, Finding::new(&rules::CONSENT, message).help(help));
            self.gaps.any = true;
        };
        let has_file = section.has_value("file");
        if !has_file && !section.has_value("column") {
            let help = "name the column with the answers, as in `consent: { column: Consent }`, or name a `file`";
            report_problem(&entry.key_span, "`consent` does not say where consent is recorded".to_owned(), help);
            return None;
        }
        let file_keys = [("phone", "the list has its own `columns: { phone: … }`"), ("region", "the list has its own")];
        for (key, reason) in file_keys.into_iter().filter(|_| !has_file) {
            if let Some(entry) = section.entry(key) {
                let message = format!("`consent.{key}` applies only to a `file`; {reason}");
                report_problem(&entry.key_span, message, "remove the key, or add `file`");
            }
        }
        if let Some(entry) = section.entry("is").filter(|_| !section.has_value("column")) {
            let message = "`is` lists answers, but there is no `column` to find them in".to_owned();
            report_problem(
                &entry.key_span,
                message,
                "add `column`; without it, every row of the file counts as consent",
            );
        }
        let valid_for = match section.typed_text("valid_for") {
            None => None,
            Some((text, span)) => match text.parse::<ConsentPeriod>() {
                Ok(_) if !section.has_value("at") => {
                    let message = "`valid_for` needs the consent dates".to_owned();
                    report_problem(span, message, "add `at` with the header of the date column");
                    None
                }
                Ok(period) => Some(period),
                Err(error) => {
                    let help = "write a period in days, weeks, months or years, as in `valid_for: 24 months`";
                    report_problem(span, format!("`{text}` is {error}"), help);
                    None
                }
            },
        };
        let file = match section.typed_text("file") {
            None => None,
            Some((name, span)) => {
                let (file, region) = (self.resolve_file_name(name, span)?, self.resolve_region(section));
                Some(ConsentFile { file, phone: read_header("phone"), region })
            }
        };
        Some(ConsentSource {
            file,
            column: read_header("column"),
            at: read_header("at"),
            source: read_header("source"),
            wording: read_header("wording"),
            words: section.list_items("is").into_iter().map(str::to_owned).collect(),
            valid_for,
        })
    }

    /// Reports a file under `suppress` that is the list of recipients itself, because all recipients would be skipped.
    pub(super) fn report_suppressed_list(&mut self, recipients: ConfigSection<'_>, source: Option<&RecipientSource>) {
        let Some(list) = source.and_then(RecipientSource::list_file) else { return };
        let Some(value) = recipients.find_value("suppress") else { return };
        for item in value.as_items().unwrap_or(std::slice::from_ref(value)) {
            let section = ConfigSection::new(Some(item), SUPPRESS_FILE);
            // Another column of the list can contain opted-out numbers.
            let named = match item.as_scalar() {
                Some(scalar) => Some((scalar.text.trim(), &item.span)),
                None => section.typed_text("file").filter(|_| !section.has_value("phone")),
            };
            let Some((name, span)) = named else { continue };
            let file = insert_date(name, self.today).and_then(|name| self.paths.resolve_path(&name).ok());
            if file.is_some_and(|file| file.path() == list.path()) {
                let message =
                    format!("`{name}` under `suppress` is the list of recipients itself, so no messages would be sent");
                let help = "write the name of the file with the opted-out numbers, as in `suppress: [stop-list.csv]`";
                self.report.add(span, Finding::new(&rules::SUPPRESS_FILE, message).help(help));
            }
        }
    }

    /// The format of the list; `None` if a key is wrong, which was reported.
    pub(super) fn resolve_list_format(&mut self, recipients: ConfigSection<'_>) -> Option<ListFormat> {
        let encoding = recipients.typed_text("encoding").map(|(label, span)| {
            let encoding = Encoding::for_label_no_replacement(label.as_bytes());
            if encoding.is_none() {
                let finding = Finding::new(&rules::UNKNOWN_ENCODING, format!("unknown encoding `{label}`"));
                let help = match did_you_mean(&label.to_lowercase(), ENCODINGS) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => {
                        "remove `encoding` to have the encoding detected, or write, for example, `windows-1251` or \
                            `utf-16le`"
                            .to_owned()
                    }
                };
                self.report.add(span, finding.help(help));
            }
            encoding
        });
        let delimiter = recipients.typed_text("delimiter").map(|(name, span)| {
            let delimiter = Delimiter::from_name(name);
            if delimiter.is_none() {
                let finding = Finding::new(&rules::UNKNOWN_DELIMITER, format!("`{name}` is not a valid delimiter"));
                let help = "write one character, as in `delimiter: \";\"`, or `delimiter: tab`";
                self.report.add(span, finding.help(help));
            }
            delimiter
        });
        let sheet = recipients.typed_text("sheet").map(|(name, _)| name.to_owned());
        let header_row = recipients.parse_value("header_row");
        Some(ListFormat { encoding: require_valid(encoding)?, delimiter: require_valid(delimiter)?, sheet, header_row })
    }
}

/// The value of an optional key. `Some(None)` if the key is missing; `None` if the value is invalid.
fn require_valid<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(None) => None,
        Some(value) => Some(value),
    }
}

impl Resolver<'_> {
    /// The lookup tables, whose files have not been read yet. Invalid tables are reported and omitted.
    pub(super) fn resolve_tables(&mut self, root: ConfigSection<'_>, vars: &[(String, String)]) -> Vec<TableFile> {
        let entries = root.find_value("data").and_then(|node| node.as_entries()).unwrap_or_default();
        let columns = self.columns.clone();
        let is_taken = |name: &str| columns.iter().chain(vars).any(|(other, _)| other == name);
        entries.iter().filter_map(|entry| self.resolve_table(entry, is_taken(&entry.key))).collect()
    }

    fn resolve_table(&mut self, entry: &MapEntry, is_taken: bool) -> Option<TableFile> {
        self.check_variable_name(&entry.key, &entry.key_span);
        if is_taken {
            let message = format!("`{}` is the name of both a table and a column or constant", entry.key);
            let finding = Finding::new(&rules::NAME_CLASH, message).help("rename one of them");
            self.report.add(&entry.key_span, finding);
        }
        let section = ConfigSection::new(Some(&entry.value), DATA_KEYS);
        let (file, span) = section.typed_text("file")?;
        if has_placeholder(file) {
            let finding =
                Finding::new(&rules::FILE_NAME, format!("`{file}` cannot be the file name of a lookup table"));
            self.report.add(span, finding.help("remove the braces; a table's file name cannot contain the date"));
            return None;
        }
        let (key, _) = section.typed_text("key")?;
        Some(TableFile { name: entry.key.clone(), file: self.resolve_path(file, span)?, key: key.to_owned() })
    }
}
