//! The keys under `recipients` that say where the list comes from.

use std::time::Duration;

use reqwest::Url;

use super::Resolver;
use crate::domain::State;
use crate::finding::{Finding, rules};
use crate::manifest::day::with_date;
use crate::manifest::profile::{KeySource, is_loopback, key_source};
use crate::manifest::recipients::{HeaderText, ListCommand, ListQuery, ListUrl, PastPeople, Recipients};
use crate::manifest::section::Section;
use crate::manifest::value::Seconds;
use crate::manifest::yaml::Node;

/// The keys that say where a list comes from, each with those that belong to it.
const SOURCES: [(&str, &[&str]); 5] = [
    ("file", &[]),
    ("run", &["state"]),
    ("url", &["headers", "timeout"]),
    ("command", &["timeout"]),
    ("sql", &["from", "timeout"]),
];

/// The name of a file that means standard input.
const STANDARD_INPUT: &str = "-";

/// Headers whose texts are secrets.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "x-api-key"];
/// Headers to which a server may answer with a part of the list, or without it.
const CONDITIONAL_HEADERS: [&str; 7] =
    ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "a-im"];

impl Resolver<'_> {
    /// Where the list comes from; nothing where that is missing or wrong, which was told.
    pub(super) fn recipients(&mut self, section: Section<'_>) -> Option<Recipients> {
        let named: Vec<_> = SOURCES.into_iter().filter(|(key, _)| section.has(key)).collect();
        if let [(source, own)] = named.as_slice() {
            self.refuse_strangers(section, source, own);
            return self.source(section, source);
        }
        // It is unknown which of several sources is meant, so all are checked.
        named.iter().for_each(|(source, _)| drop(self.source(section, source)));
        None
    }

    fn source(&mut self, section: Section<'_>, source: &str) -> Option<Recipients> {
        match source {
            "run" => self.past_people(section).map(Recipients::Run),
            "url" => self.list_url(section).map(Recipients::Url),
            "command" => self.list_command(section).map(Recipients::Command),
            "sql" => self.list_query(section).map(Recipients::Sql),
            _ if section.typed("file").is_some_and(|(name, _)| name == STANDARD_INPUT) => {
                Some(Recipients::StandardInput)
            }
            _ => self.file_under(section, "file").map(Recipients::File),
        }
    }

    /// Tells of keys that belong to another source.
    fn refuse_strangers(&mut self, section: Section<'_>, source: &str, own: &[&str]) {
        for key in ["state", "headers", "from", "timeout"].into_iter().filter(|key| !own.contains(key)) {
            let Some(entry) = section.entry(key) else { continue };
            let of = SOURCES.iter().filter(|(_, keys)| keys.contains(&key)).map(|(source, _)| *source);
            let message =
                format!("`{key}` applies only to {}, but the list comes from `{source}`", crate::finding::list(of));
            self.report.at(&entry.key_span, Finding::new(&rules::ONE_OF_TWO, message).help(format!("remove `{key}`")));
        }
    }

    fn past_people(&mut self, section: Section<'_>) -> Option<PastPeople> {
        let (run, span) = section.typed("run")?;
        past_people(run, section.value("state")).or_else(|| {
            let finding = Finding::new(&rules::MISSING_KEY, "`run` needs `state` to select recipients");
            self.report.at(
                span,
                finding.help("add `state: undelivered`, or a list of states, for example `state: [failed, rejected]`"),
            );
            None
        })
    }

    fn list_url(&mut self, section: Section<'_>) -> Option<ListUrl> {
        let (text, span) = section.typed("url")?;
        let url = safe_address(&with_date(text, self.today)).map_err(|(message, help)| {
            self.report.at(span, Finding::new(&rules::LIST_ADDRESS, message).help(help));
        });
        let headers = section.value("headers").and_then(Node::entries).unwrap_or_default();
        let mut resolved = Some(Vec::new());
        for entry in headers {
            let name = entry.key.trim().to_owned();
            if reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_err() {
                let finding = Finding::new(&rules::LIST_ADDRESS, format!("`{name}` is not a valid header name"));
                self.report.at(&entry.key_span, finding.help("write a name such as `Authorization` or `Accept`"));
                continue;
            }
            if CONDITIONAL_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
                let finding =
                    Finding::new(&rules::LIST_ADDRESS, format!("the header `{name}` requests only part of the list"));
                self.report.at(&entry.key_span, finding.help(format!("remove `{name}`")));
                continue;
            }
            let text = match entry.value.scalar() {
                Some(_) if SECRET_HEADERS.contains(&name.to_ascii_lowercase().as_str()) => {
                    let finding = Finding::new(
                        &rules::SECRET,
                        format!("`{name}` must say where to find the secret, not contain it"),
                    );
                    self.report.at(&entry.key_span, finding.help(format!("write `{name}: {{ env: NAME }}`")));
                    continue;
                }
                Some(scalar) if reqwest::header::HeaderValue::from_str(&scalar.text).is_err() => {
                    let finding = Finding::new(
                        &rules::LIST_ADDRESS,
                        format!("the value of `{name}` is not valid in an HTTP header"),
                    );
                    self.report.at(&entry.value.span, finding.help("write one line of ASCII characters"));
                    continue;
                }
                Some(scalar) => HeaderText::Plain(scalar.text.clone()),
                None => match self.secret(&entry.value, &name) {
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
        Some(ListUrl { url: url.ok()?, headers: resolved?, timeout: timeout(section)? })
    }

    fn list_command(&mut self, section: Section<'_>) -> Option<ListCommand> {
        let words = section.items("command");
        let mut words: Vec<String> = words.into_iter().map(|word| with_date(word, self.today)).collect();
        let program = words.first_mut()?;
        *program = self.paths.program(program);
        Some(ListCommand { words, folder: self.paths.absolute_folder(), timeout: timeout(section)? })
    }

    fn list_query(&mut self, section: Section<'_>) -> Option<ListQuery> {
        let sql = section.value("sql")?.scalar()?.text.trim().to_owned();
        let Some(from) = section.value("from") else {
            let (_, span) = section.typed("sql")?;
            let finding = Finding::new(&rules::MISSING_KEY, "`sql` needs `from`, which specifies the database");
            self.report.at(
                span,
                finding.help("add `from: { env: CRM_URL }`; the variable must contain a URL such as `postgres://…`"),
            );
            return None;
        };
        Some(ListQuery { sql, from: self.secret(from, "from")?, timeout: timeout(section)? })
    }

    /// Where a secret is kept, from wherever it is read.
    fn secret(&mut self, value: &Node, key: &str) -> Option<KeySource> {
        Some(key_source(value, key, &self.paths, self.report)?.resolved_from_root())
    }

    /// Tells that only a file is waited for, and that nobody pipes a list into what runs by itself.
    pub(super) fn refuse_waiting(&mut self, root: Section<'_>, source: Option<&Recipients>) {
        let schedule = root.section("schedule");
        if let Some(entry) = root.entry("schedule")
            && source == Some(&Recipients::StandardInput)
        {
            let finding = Finding::new(&rules::SCHEDULE, "a scheduled run cannot read the list from standard input");
            self.report.at(&entry.key_span, finding.help("use a file or a program (`command`), or remove `schedule`"));
            return;
        }
        if let Some(entry) = schedule.entry("wait_for_file")
            && source.is_some_and(|source| source.file().is_none())
        {
            let finding = Finding::new(&rules::SCHEDULE, "`wait_for_file` applies only to a list in a file");
            self.report
                .at(&entry.key_span, finding.help("remove `wait_for_file`; the list is fetched when the run is due"));
        }
    }
}

/// The people of a run by the states under a key; nothing where there are none.
/// Who is left out: whoever has a message of an earlier run, or may have one, unless `state` says it more closely.
pub(super) fn exclude(recipients: Section<'_>) -> Option<PastPeople> {
    let section = recipients.section("exclude");
    let (run, _) = section.typed("run")?;
    match section.value("state") {
        Some(states) => past_people(run, Some(states)),
        None => {
            let states = State::ALL.into_iter().filter(|state| state.has_operation()).collect();
            Some(PastPeople { run: run.to_owned(), states })
        }
    }
}

fn past_people(run: &str, states: Option<&Node>) -> Option<PastPeople> {
    let states = states?;
    let one = std::slice::from_ref(states);
    let words = states.items().unwrap_or(one).iter().filter_map(|word| word.scalar());
    let states: Vec<State> = words.flat_map(|word| State::meant_by(word.text.trim())).collect();
    (!states.is_empty()).then(|| PastPeople { run: run.to_owned(), states })
}

/// The address of a list, or why it is refused and what to write.
fn safe_address(text: &str) -> Result<Url, (&'static str, &'static str)> {
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
        "http" if is_loopback(url.host_str().unwrap_or_default()) => Ok(url),
        "http" => Err(("plain `http` sends phone numbers unencrypted", "use `https://`")),
        _ => Err((
            "`url` must start with `https://`",
            "use `https://`, or fetch the list with a program under `command`",
        )),
    }
}

fn timeout(section: Section<'_>) -> Option<Duration> {
    section.parsed("timeout").map(|Seconds(seconds)| Duration::from_secs(seconds.into()))
}
