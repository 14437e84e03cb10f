//! Conversion of a campaign file into a valid campaign: defaults, names, paths and the rules of the gateway
//! contract.
//!
//! `recipients` resolves the list, `content` the channels and variants, `texts` the texts, and `timing` all keys for
//! dates and times. This file resolves the rest and assembles the campaign.

mod content;
mod recipients;
mod texts;
mod timing;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use jiff::civil::Date;

use super::campaign::{
    BreakerSettings, Campaign, CampaignBrief, DeliverySettings, DuplicatePolicy, InDoubtPolicy, default_results_path,
};
use super::document::{self, ConfigSection, FileKind, FindingCollector, LoadedFile};
use super::keys::CAMPAIGN;
use super::recipients::{RecipientSource, is_list_file, read_countries};
use super::text_folders::TextFolders;
use super::value::Seconds;
use super::yaml::{MapEntry, Node};
use super::{CampaignPath, CampaignPaths, Gaps, PathScope, SourceMap};
use campaign_core::domain::variable::{is_built_in, is_reserved, is_variable};
use campaign_core::domain::{
    Budget, Endpoint, Language, ListFormat, MessageContent, NamedTemplate, OperationKind, Purpose,
};
use campaign_core::finding::{Finding, SourceText, quote_for_shell, rules};

use super::campaign_tests::read_tests;
pub(super) use super::notify::read_notify;
pub use texts::missing_text_reason;
use timing::insert_date;
pub use timing::{CampaignDay, suggest_zone};

const CAMPAIGN_FILE: FileKind = FileKind { file: "the campaign file", owner: "the campaign", keys: CAMPAIGN };

/// Reads a campaign file and its text files.
///
/// All problems in these files become findings; loading does not stop at the first one.
pub fn load_campaign(path: &Path, day: CampaignDay) -> LoadedFile<Campaign> {
    load_campaign_within(path, day, PathScope::Anywhere)
}

/// Reads a campaign file within this scope, which also applies to the paths in the file.
pub fn load_campaign_within(path: &Path, day: CampaignDay, scope: PathScope) -> LoadedFile<Campaign> {
    if is_list_file(path) {
        let message = format!("`{}` is a list of recipients, not a campaign file", path.display());
        let help = format!("create a campaign from it with `campaign init NAME --from {}`", quote_for_shell(path));
        return LoadedFile::new(None, vec![Finding::new(&rules::WRONG_TYPE, message).help(help)]);
    }
    let paths = CampaignPaths::new(path, scope);
    let mut loaded = document::load_file(paths.file(), CAMPAIGN_FILE, |root, report| {
        let folders = TextFolders::from_paths(&paths);
        let (today, columns, files, gaps) = (day.resolve_date(None), Vec::new(), BTreeMap::new(), Gaps::default());
        Resolver { report, paths: paths.clone(), folders, columns, files, day, today, gaps }
            .resolve_campaign(path, root)
    });
    // Every gap should have been reported as an error. Even if one was not, the campaign must not be sent.
    if let Some(campaign) = loaded.value.take_if(|campaign: &mut Campaign| campaign.gaps.any) {
        loaded.draft = Some(campaign);
    }
    loaded
}

/// Resolves one campaign and reports findings.
struct Resolver<'r> {
    report: &'r mut FindingCollector,
    /// The paths in the campaign.
    paths: CampaignPaths,
    folders: TextFolders,
    /// The names that texts use for columns, each with the column's header, if the campaign defines them.
    columns: Vec<(String, String)>,
    /// The text files that were read, by their names in texts.
    files: BTreeMap<String, SourceText>,
    /// The day for which the campaign is read.
    day: CampaignDay,
    /// The date of `day` in the campaign's time zone.
    today: Date,
    /// The placeholders for missing or wrong parts.
    gaps: Gaps,
}

impl Resolver<'_> {
    /// The campaign. Missing or invalid parts are reported and replaced with placeholders.
    fn resolve_campaign(mut self, path: &Path, tree: Node) -> Option<Campaign> {
        let root = ConfigSection::new(Some(&tree), CAMPAIGN);
        let recipients = root.subsection("recipients");
        let name = self.resolve_name(root, path);
        let columns = self.resolve_columns(recipients);
        self.columns.clone_from(&columns);
        // In texts, `phone` means the first of several phone columns.
        self.columns.dedup_by(|next, before| next.0 == before.0);
        let edition = root.entry("edition").and_then(|entry| self.resolve_text("edition".into(), entry));
        let timezone = self.resolve_timezone(root);
        self.today = self.day.resolve_date(timezone.as_deref());
        let schedule = self.resolve_schedule(root, timezone.as_deref());
        let per_day = self.resolve_per_day(root, timezone.as_deref());
        let (window, until) = (self.resolve_window(root), self.resolve_until(root));
        let region = self.resolve_region(recipients);
        let countries = read_countries(root, "countries", self.report);
        let vars = self.resolve_vars(root, &columns);
        let content = self.resolve_content(root, root, "");
        let variants = self.resolve_variants(root, content.as_ref(), &vars);
        let holdout = self.resolve_holdout(root);
        let data = self.resolve_tables(root, &vars);
        let source = self.resolve_recipients(recipients);
        self.check_schedule_source(root, source.as_ref());
        let format = self.resolve_list_format(recipients);
        let suppress = self.resolve_suppress_files(recipients);
        self.report_suppressed_list(recipients, source.as_ref());
        let consent = self.resolve_consent(recipients);
        let results = self.resolve_results(root, name.as_deref());
        self.report_unsafe_resending(
            root,
            content.iter().chain(variants.iter().filter_map(|variant| variant.content.as_ref())),
        );
        let notify = read_notify(root, &self.paths, self.report);
        let tests = read_tests(root, self.report);
        self.gaps.collect_possible_names(root);
        self.gaps.list = source.is_none() || format.is_none();
        self.gaps.recipients = self.has_errors_within(&tree, "recipients");
        let content =
            self.or_placeholder(content, || MessageContent { kind: OperationKind::Pipeline, stages: Vec::new() });
        let name = self.or_placeholder(name, || to_slug(&path.file_stem().unwrap_or_default().to_string_lossy()));
        let file = self.paths.file().clone();
        let results = self.or_placeholder(results, || default_results_path(&file, &name));
        Some(Campaign {
            results,
            receipts: self.or_default(root, |root| root.parse_value("receipts"))?,
            brief: CampaignBrief {
                name,
                title: root.typed_text("title").map(|(title, _)| title.to_owned()).filter(|title| !title.is_empty()),
                edition,
                purpose: self.or_default(root, |root| read_purpose(root, &content))?,
                mandatory: self.resolve_mandatory(root, &content)?,
                gateway: self.or_default(root, |root| root.text("gateway"))?.to_owned(),
                endpoint: self.or_default(root, read_endpoint)?,
                timezone,
                columns,
                region,
                language: root.typed_text("language").and_then(|(code, _)| Language::from_code(code)),
                duplicates: self.or_default(recipients, read_duplicates)?,
                max_invalid: self.or_default(recipients, |recipients| recipients.parse_value("max_invalid"))?,
                condition: read_condition(recipients),
                exclude: recipients::read_exclude(recipients),
                countries,
                may_be_empty: self.or_default(recipients, |recipients| recipients.text("empty"))? == "ok",
                vars,
                tables: data.iter().map(|table| table.name.clone()).collect(),
                content,
                variants,
                holdout,
            },
            recipients: self.or_placeholder(source, || RecipientSource::StandardInput),
            format: self.or_placeholder(format, ListFormat::default),
            suppress,
            consent,
            requires_consent: root.has_value("consent"),
            data,
            schedule,
            window: self.or_placeholder(window, || None),
            until: self.or_placeholder(until, || None),
            today: self.today,
            notify,
            tests,
            delivery: self.or_default(root.subsection("delivery"), read_delivery)?,
            limits: read_budget(root.subsection("limits")),
            per_day,
            file: path.to_owned(),
            folders: self.folders,
            places: SourceMap::new(self.report.source.clone(), tree, self.files),
            gaps: self.gaps,
        })
    }

    /// Returns the value, or a placeholder if it is missing.
    fn or_placeholder<T>(&mut self, value: Option<T>, placeholder: impl FnOnce() -> T) -> T {
        self.gaps.any |= value.is_none();
        value.unwrap_or_else(placeholder)
    }

    /// Reads a value from a map, or returns the default if the value cannot be read.
    fn or_default<'n, T>(
        &mut self,
        section: ConfigSection<'n>,
        read: impl Fn(ConfigSection<'n>) -> Option<T>,
    ) -> Option<T> {
        let value = read(section);
        self.gaps.any |= value.is_none();
        value.or_else(|| read(section.with_node(None)))
    }

    /// Whether a top-level key is missing, or an error was reported at the key or anywhere in its value.
    fn has_errors_within(&self, tree: &Node, key: &str) -> bool {
        let Some(MapEntry { key_span, value, .. }) = tree.find_entry(key) else { return true };
        let within = key_span.start..value.span.end.max(key_span.end);
        let errors = self.report.findings.iter().filter(|finding| finding.is_error());
        errors.filter_map(|finding| finding.place.as_ref()).any(|place| within.contains(&place.span.start))
    }

    /// The file that a key names. `{{ today }}` in the name is the day for which the campaign is read.
    fn resolve_file_key(&mut self, section: ConfigSection<'_>, key: &str) -> Option<CampaignPath> {
        let (name, span) = section.typed_text(key)?;
        self.resolve_file_name(name, span)
    }

    /// The file with this name. `{{ today }}` in the name is the day for which the campaign is read.
    fn resolve_file_name(&mut self, name: &str, span: &Range<usize>) -> Option<CampaignPath> {
        let name = self.resolve_dated_name(name, span)?;
        self.resolve_path(&name, span)
    }

    /// The resolved path; `None` if it is outside the scope, which is reported.
    fn resolve_path(&mut self, name: &str, span: &Range<usize>) -> Option<CampaignPath> {
        self.paths.resolve_path(name).map_err(|finding| self.report.add(span, *finding)).ok()
    }

    /// The results file; `None` if it is wrong, which is reported.
    fn resolve_results(&mut self, root: ConfigSection<'_>, name: Option<&str>) -> Option<CampaignPath> {
        let results = match root.has_value("results") {
            true => self.resolve_file_key(root, "results")?,
            false => default_results_path(self.paths.file(), name?),
        };
        if let Some(reason) = results.find_write_refusal() {
            let span = root.typed_text("results").map_or(&(0..0), |(_, span)| span).clone();
            let message = format!("cannot write results to `{}`, which is {reason}", results.display());
            let help = "set `results` to a regular file in the campaigns folder, for example `results: \
                results/NAME.csv`";
            self.report.add(&span, Finding::new(&rules::PATH_OUTSIDE, message).help(help));
            return None;
        }
        Some(results)
    }

    /// Replaces `{{ today }}` in a file name with the day for which the campaign is read.
    fn resolve_dated_name(&mut self, name: &str, span: &Range<usize>) -> Option<String> {
        let dated = insert_date(name, self.today);
        if dated.is_none() {
            let finding = Finding::new(&rules::FILE_NAME, format!("`{name}` is not a valid file name"));
            self.report.add(
                span,
                finding.help(
                    "remove the placeholder; the only placeholder allowed in a file name is `{{ today }}`, the date",
                ),
            );
        }
        dated
    }

    /// The campaign's name, from the key `name` or else from the file name.
    fn resolve_name(&mut self, root: ConfigSection<'_>, path: &Path) -> Option<String> {
        let Some((name, span)) = root.typed_text("name") else {
            let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            if is_slug(&stem) {
                return Some(stem);
            }
            let message = format!("the file name `{stem}` is not a valid campaign name");
            let help =
                format!("add `name: {}`, or rename the file; a name consists of a-z, 0-9 and `-`", to_slug(&stem));
            self.report.add(&(0..0), Finding::new(&rules::CAMPAIGN_NAME, message).help(help));
            return None;
        };
        if is_slug(name) {
            return Some(name.to_owned());
        }
        let message = format!("`{name}` is not a valid campaign name: use 1 to 64 characters from a-z, 0-9 and `-`");
        self.report
            .add(span, Finding::new(&rules::CAMPAIGN_NAME, message).help(format!("write `name: {}`", to_slug(name))));
        None
    }

    /// The constants, as they were typed.
    fn resolve_vars(&mut self, root: ConfigSection<'_>, columns: &[(String, String)]) -> Vec<(String, String)> {
        let column_headers: HashMap<&str, &str> =
            columns.iter().map(|(name, header)| (name.as_str(), header.as_str())).collect();
        let entries = root.find_value("vars").and_then(|node| node.as_entries()).unwrap_or_default();
        let mut vars = Vec::new();
        for entry in entries {
            self.check_variable_name(&entry.key, &entry.key_span);
            if let Some(header) = column_headers.get(entry.key.as_str()) {
                let message = format!("`{}` is the name of both a constant and the column `{header}`", entry.key);
                let finding = Finding::new(&rules::NAME_CLASH, message).help("rename one of them");
                self.report.add(&entry.key_span, finding);
            }
            let Some(scalar) = entry.value.as_scalar() else {
                vars.push((entry.key.clone(), String::new()));
                self.gaps.any = true;
                continue;
            };
            self.report_cut_text("vars", &entry.value);
            if scalar.text.contains("{{") || scalar.text.contains("{%") {
                let finding = Finding::new(
                    &rules::TEMPLATE_IN_CONSTANT,
                    format!("`{}` is a constant, so it cannot contain a placeholder", entry.key),
                );
                self.report.add(
                    &entry.value.span,
                    finding.help("move the placeholder into the templates that use this constant"),
                );
            }
            vars.push((entry.key.clone(), scalar.text.clone()));
        }
        vars
    }

    /// Reports a name that texts cannot use.
    fn check_variable_name(&mut self, name: &str, span: &Range<usize>) {
        let finding = if is_variable(name) {
            return;
        } else if is_built_in(name) {
            Finding::new(&rules::NAME_CLASH, format!("`{name}` is a built-in name in templates"))
                .help("choose another name")
        } else if is_reserved(name) {
            Finding::new(&rules::VARIABLE_NAME, format!("`{name}` is a keyword of the template language"))
                .help("choose another name")
        } else {
            Finding::new(&rules::VARIABLE_NAME, format!("`{name}` is not a valid name in templates"))
                .help("use a-z, A-Z, 0-9 and `_`, starting with a letter, as in `first_name`")
        };
        self.report.add(span, finding);
    }

    /// Whether the messages are mandatory. Mandatory marketing is reported.
    fn resolve_mandatory(&mut self, root: ConfigSection<'_>, content: &MessageContent<NamedTemplate>) -> Option<bool> {
        let mandatory = self.or_default(root, |root| root.parse_value("mandatory"))?;
        if let Some((_, span)) = root.typed_text("mandatory")
            && mandatory
            && read_purpose(root, content) == Some(Purpose::Marketing)
        {
            let finding = Finding::new(&rules::MANDATORY_MARKETING, "marketing cannot be `mandatory`");
            self.report
                .add(span, finding.help("remove `mandatory`, or write `purpose: service` if this is not marketing"));
        }
        Some(mandatory)
    }

    /// Reports `on_in_doubt: resend_if_not_found` if sending messages in doubt again could do harm.
    fn report_unsafe_resending<'c>(
        &mut self,
        root: ConfigSection<'_>,
        mut contents: impl Iterator<Item = &'c MessageContent<NamedTemplate>>,
    ) {
        let delivery = root.subsection("delivery");
        let Some((_, span)) = delivery.typed_text("on_in_doubt").filter(|(rule, _)| *rule == "resend_if_not_found")
        else {
            return;
        };
        let reason = if read_endpoint(root) == Some(Endpoint::Async) {
            "with the asynchronous endpoint, because a message might still be queued"
        } else if contents.any(|content| !content.may_repeat()) {
            "for codes and calls"
        } else {
            return;
        };
        let finding = Finding::new(&rules::NEVER_RESENT, format!("`resend_if_not_found` cannot be used {reason}"));
        self.report.add(span, finding.help("use `hold`, then resolve rows in doubt with `campaign resolve`"));
    }
}

/// Whether a name consists of 1 to 64 characters from a-z, 0-9 and `-`.
pub fn is_slug(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

/// The most similar valid name, which has 1 to 64 characters from a-z, 0-9 and `-`.
pub fn to_slug(name: &str) -> String {
    let mapped: String = name.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let words: Vec<&str> = mapped.split('-').filter(|word| !word.is_empty()).collect();
    let slug: String = words.join("-").chars().take(64).collect();
    if slug.is_empty() { "my-campaign".into() } else { slug }
}

/// The budget of an edition.
fn read_budget(section: ConfigSection<'_>) -> Budget {
    Budget { cost: section.parse_value("cost"), recipients: section.parse_value("recipients") }
}

fn read_endpoint(root: ConfigSection<'_>) -> Option<Endpoint> {
    let name = root.text("endpoint")?;
    [Endpoint::Sync, Endpoint::Async].into_iter().find(|endpoint| endpoint.name() == name)
}

/// The condition that selects recipients.
fn read_condition(recipients: ConfigSection<'_>) -> Option<NamedTemplate> {
    let (source, _) = recipients.typed_text("where")?;
    Some(NamedTemplate { name: "recipients.where".to_owned(), source: source.trim().to_owned() })
}

/// The purpose of the messages, which follows from their content unless the campaign defines it.
fn read_purpose(root: ConfigSection<'_>, content: &MessageContent<NamedTemplate>) -> Option<Purpose> {
    match root.typed_text("purpose") {
        Some((name, _)) => Purpose::from_name(name),
        None => Some(content.default_purpose()),
    }
}

fn read_duplicates(recipients: ConfigSection<'_>) -> Option<DuplicatePolicy> {
    match recipients.text("duplicates")? {
        "skip" => Some(DuplicatePolicy::Skip),
        "refuse" => Some(DuplicatePolicy::Refuse),
        "allow" => Some(DuplicatePolicy::Allow),
        _ => None,
    }
}

/// The delivery settings; `None` if a value cannot be read, which the structure check reported.
fn read_delivery(section: ConfigSection<'_>) -> Option<DeliverySettings> {
    let stop = section.subsection("stop_after");
    Some(DeliverySettings {
        rate: section.parse_value("rate"),
        batch: section.parse_value("batch")?,
        in_flight: section.parse_value("in_flight")?,
        timeout: read_duration(section, "timeout")?,
        on_in_doubt: match section.text("on_in_doubt")? {
            "hold" => InDoubtPolicy::Hold,
            "assume_sent" => InDoubtPolicy::AssumeSent,
            "resend_if_not_found" => InDoubtPolicy::ResendIfNotFound,
            _ => return None,
        },
        cap: section.parse_cap("cap"),
        stop_after: BreakerSettings {
            doubtful_envelopes: stop.parse_value("doubtful_envelopes")?,
            same_error_in_a_row: stop.parse_value("same_error_in_a_row")?,
            rejected: stop.parse_value("rejected")?,
            opted_out: if stop.has_value("opted_out") { Some(stop.parse_value("opted_out")?) } else { None },
            unreachable: if stop.has_value("unreachable") { Some(read_duration(stop, "unreachable")?) } else { None },
        },
    })
}

fn read_duration(section: ConfigSection<'_>, key: &str) -> Option<Duration> {
    section.parse_value(key).map(|Seconds(seconds)| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod slug_tests {
    use super::*;

    #[test]
    fn every_file_name_becomes_a_valid_slug() {
        for (stem, name) in [("Autumn Sale", "autumn-sale"), ("привіт", "my-campaign"), ("a__b--c.v2", "a-b-c-v2")]
        {
            assert_eq!(to_slug(stem), name);
            assert!(is_slug(&to_slug(stem)));
        }
        assert!(is_slug(&to_slug(&"x".repeat(100))));
        assert!(!is_slug("") && !is_slug("A") && !is_slug("a_b") && !is_slug(&"x".repeat(65)));
    }
}
