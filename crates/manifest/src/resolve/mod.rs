//! Conversion of a campaign file into a valid campaign: defaults, names, paths and the rules of the contract.

mod channels;
mod names;
mod placeholders;
mod recipients;
mod stage;
mod texts;
mod timing;
mod variants;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::campaign::{
    BreakerSettings, Campaign, CampaignBrief, DeliverySettings, DuplicatePolicy, InDoubtPolicy, default_results_path,
};
use super::document::{self, ConfigSection, FileKind, FindingCollector, LoadedFile, is_list_name};
use super::keys::{CAMPAIGN, SUPPRESS_FILE};
use super::recipients::{RecipientSource, SuppressionFile, read_suppression_files};
use super::text_folders::{CampaignDay, TextFolders, insert_date};
use super::value::Seconds;
use super::yaml::{MapEntry, Node};
use super::{CampaignPath, CampaignPaths, Gaps, PathScope, SourceMap};
use campaign_core::calendar::DailyLimits;
use campaign_core::domain::{
    Budget, Endpoint, Language, ListFormat, MessageContent, NamedTemplate, OperationKind, Purpose,
};
use campaign_core::finding::{Finding, SourceText, quote_for_shell, rules};

pub(super) use super::notify::read_notify;
pub use names::{is_slug, to_slug};
pub use texts::missing_text_reason;
pub use timing::suggest_zone;

const CAMPAIGN_FILE: FileKind = FileKind { file: "the campaign file", owner: "the campaign", keys: CAMPAIGN };

/// Reads a campaign file and its text files.
///
/// All problems that these files show are findings; reading does not stop at the first one.
#[must_use]
pub fn load_campaign(path: &Path, day: CampaignDay) -> LoadedFile<Campaign> {
    load_campaign_within(path, day, PathScope::Anywhere)
}

/// Reads a campaign file whose paths, including its own, have this scope.
#[must_use]
pub fn load_campaign_within(path: &Path, day: CampaignDay, reach: PathScope) -> LoadedFile<Campaign> {
    if is_list_name(path) {
        let message = format!("`{}` is a list of recipients, not a campaign file", path.display());
        let help = format!("create a campaign from it with `campaign init NAME --from {}`", quote_for_shell(path));
        return LoadedFile::new(None, vec![Finding::new(&rules::WRONG_TYPE, message).help(help)]);
    }
    let paths = CampaignPaths::new(path, reach);
    let mut loaded = document::load_path(paths.file(), CAMPAIGN_FILE, |root, report| {
        let folders = TextFolders::from_paths(&paths);
        let (today, columns, files, gaps) = (day.resolve_date(None), Vec::new(), BTreeMap::new(), Gaps::default());
        Resolver { report, paths: paths.clone(), folders, columns, files, day, today, gaps }
            .resolve_campaign(path, root)
    });
    // Each gap comes with an error; if one did not, the campaign still must not be sent.
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
    /// The columns' names in texts with their headers, as far as the campaign defines them.
    columns: Vec<(String, String)>,
    /// The text files that were read, by their names in texts.
    files: BTreeMap<String, SourceText>,
    /// The day for which the campaign is read.
    day: CampaignDay,
    /// The date of the day.
    today: Date,
    /// The placeholders for missing or wrong parts.
    gaps: Gaps,
}

impl Resolver<'_> {
    /// The campaign, with reported placeholders for missing or wrong parts.
    fn resolve_campaign(mut self, path: &Path, tree: Node) -> Option<Campaign> {
        let root = ConfigSection::new(Some(&tree), CAMPAIGN);
        let recipients = root.subsection("recipients");
        let name = self.resolve_name(root, path);
        let columns = self.resolve_columns(recipients);
        self.columns.clone_from(&columns);
        // In texts, `phone` is the first of several phone columns.
        self.columns.dedup_by(|next, before| next.0 == before.0);
        let edition = root.entry("edition").and_then(|entry| self.resolve_text("edition".into(), entry));
        let timezone = self.resolve_timezone(root);
        self.today = self.day.resolve_date(timezone.as_deref());
        let schedule = self.resolve_schedule(root, timezone.as_deref());
        let per_day = self.resolve_per_day(root, timezone.as_deref());
        let (window, until) = (self.resolve_window(root), self.resolve_until(root));
        let region = self.resolve_region(recipients);
        let vars = self.resolve_vars(root, &columns);
        let content = self.resolve_content(root, root, "");
        let variants = self.resolve_variants(root, content.as_ref(), &vars);
        let holdout = self.resolve_holdout(root);
        let data = self.resolve_tables(root, &vars);
        let source = self.resolve_recipients(recipients);
        self.refuse_waiting(root, source.as_ref());
        let form = self.resolve_list_format(recipients);
        let suppress = self.resolve_suppress_files(recipients);
        self.refuse_own_list(recipients, source.as_ref());
        let results = self.resolve_results(root, name.as_deref());
        self.refuse_resending(
            root,
            content.iter().chain(variants.iter().filter_map(|variant| variant.content.as_ref())),
        );
        let notify = read_notify(root, &self.paths, self.report);
        self.gaps.note_names(root);
        self.gaps.list = source.is_none() || form.is_none();
        self.gaps.recipients = self.has_errors_within(&tree, "recipients");
        let content =
            self.or_stand_in(content, || MessageContent { kind: OperationKind::Pipeline, stages: Vec::new() });
        let name = self.or_stand_in(name, || to_slug(&path.file_stem().unwrap_or_default().to_string_lossy()));
        let file = self.paths.file().clone();
        let results = self.or_stand_in(results, || default_results_path(&file, &name));
        Some(Campaign {
            results,
            receipts: self.or_default(root, |root| root.parse_value("receipts"))?,
            brief: CampaignBrief {
                name,
                edition,
                purpose: self.or_default(root, |root| read_purpose(root, &content))?,
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
                may_be_empty: self.or_default(recipients, |recipients| recipients.text("empty"))? == "ok",
                vars,
                tables: data.iter().map(|table| table.name.clone()).collect(),
                content,
                variants,
                holdout,
            },
            recipients: self.or_stand_in(source, || RecipientSource::StandardInput),
            form: self.or_stand_in(form, ListFormat::default),
            suppress,
            data,
            schedule,
            window: self.or_stand_in(window, || None),
            until: self.or_stand_in(until, || None),
            today: self.today,
            notify,
            delivery: self.or_default(root.subsection("delivery"), read_delivery)?,
            limits: read_limits(root.subsection("limits")),
            per_day,
            file: path.to_owned(),
            folders: self.folders,
            places: SourceMap::new(self.report.source.clone(), tree, self.files),
            gaps: self.gaps,
        })
    }
}

impl Resolver<'_> {
    /// The value or its placeholder.
    fn or_stand_in<T>(&mut self, value: Option<T>, stand_in: impl FnOnce() -> T) -> T {
        self.gaps.any |= value.is_none();
        value.unwrap_or_else(stand_in)
    }

    /// The value in a map, or its default if the keys are missing.
    fn or_default<'n, T>(
        &mut self,
        section: ConfigSection<'n>,
        read: impl Fn(ConfigSection<'n>) -> Option<T>,
    ) -> Option<T> {
        let value = read(section);
        self.gaps.any |= value.is_none();
        value.or_else(|| read(section.with_node(None)))
    }

    /// Whether a top-level key or anything below it has an error.
    fn has_errors_within(&self, tree: &Node, key: &str) -> bool {
        let Some(MapEntry { key_span, value, .. }) = tree.find_entry(key) else { return true };
        let within = key_span.start..value.span.end.max(key_span.end);
        let errors = self.report.findings.iter().filter(|finding| finding.is_error());
        errors.filter_map(|finding| finding.place.as_ref()).any(|place| within.contains(&place.span.start))
    }
}

impl Resolver<'_> {
    /// The maximum number of messages per day.
    fn resolve_per_day(&mut self, root: ConfigSection<'_>, zone: Option<&str>) -> Option<DailyLimits> {
        let delivery = root.subsection("delivery");
        let entry = delivery.entry("per_day").filter(|_| delivery.has_value("per_day"))?;
        if self.lacks_timezone(root) {
            let finding =
                Finding::new(&rules::MISSING_TIMEZONE, "`per_day` needs `timezone`, which defines when a day starts");
            self.report.add(&entry.key_span, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
        let counts = match entry.value.as_items() {
            Some(_) => delivery.parse_items("per_day"),
            None => delivery.parse_value("per_day").into_iter().collect(),
        };
        DailyLimits::new(counts, TimeZone::get(zone?).ok()?)
    }

    /// The file under a key, on the day for which the campaign is read.
    fn resolve_file_key(&mut self, section: ConfigSection<'_>, key: &str) -> Option<CampaignPath> {
        let (name, span) = section.typed_text(key)?;
        self.resolve_file_name(name, span)
    }

    /// The file with this name, on the day for which the campaign is read.
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
        if let Some(why) = results.refuse_writing() {
            let span = root.typed_text("results").map_or(&(0..0), |(_, span)| span).clone();
            let message = format!("cannot write results to `{}`, which is {why}", results.display());
            let help = "set `results` to a regular file in the campaigns folder, for example `results: \
                results/NAME.csv`";
            self.report.add(&span, Finding::new(&rules::PATH_OUTSIDE, message).help(help));
            return None;
        }
        Some(results)
    }

    /// The file name on the day for which the campaign is read.
    fn resolve_dated_name(&mut self, name: &str, span: &Range<usize>) -> Option<String> {
        let dated = insert_date(name, self.today);
        if dated.is_none() {
            let finding = Finding::new(&rules::FILE_NAME, format!("`{name}` is not a valid file name"));
            self.report.add(span, finding.help("use no placeholder in a file name except `{{ today }}`, the date"));
        }
        dated
    }

    /// The files under `suppress`.
    fn resolve_suppress_files(&mut self, recipients: ConfigSection<'_>) -> Vec<SuppressionFile> {
        let this = std::cell::RefCell::new(self);
        let path = |name: &str, span: &Range<usize>| this.borrow_mut().resolve_file_name(name, span);
        read_suppression_files(recipients, "recipients", path, |section| this.borrow_mut().resolve_region(section))
    }

    /// Refuses the list of recipients under `suppress`: all recipients would be skipped.
    fn refuse_own_list(&mut self, recipients: ConfigSection<'_>, source: Option<&RecipientSource>) {
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
                    format!("`{name}` under `suppress` is the list of recipients itself, so no messages are sent");
                let help = "write the name of the file with opted-out numbers, as in `suppress: [stop-list.csv]`";
                self.report.add(span, Finding::new(&rules::SUPPRESS_FILE, message).help(help));
            }
        }
    }

    /// Reports a policy that sends rows in doubt again if that could do harm.
    fn refuse_resending<'c>(
        &mut self,
        root: ConfigSection<'_>,
        mut contents: impl Iterator<Item = &'c MessageContent<NamedTemplate>>,
    ) {
        let delivery = root.subsection("delivery");
        let Some((_, span)) = delivery.typed_text("on_in_doubt").filter(|(rule, _)| *rule == "resend_if_not_found")
        else {
            return;
        };
        let why = if read_endpoint(root) == Some(Endpoint::Async) {
            "on the asynchronous endpoint, where a message might still be queued"
        } else if contents.any(|content| !content.may_repeat()) {
            "for codes and calls"
        } else {
            return;
        };
        let finding = Finding::new(&rules::NEVER_RESENT, format!("`resend_if_not_found` cannot be used {why}"));
        self.report.add(span, finding.help("use `hold`, then resolve rows in doubt with `campaign resolve`"));
    }
}

/// The budget of an edition.
fn read_limits(section: ConfigSection<'_>) -> Budget {
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
            unreachable: if stop.has_value("unreachable") { Some(read_duration(stop, "unreachable")?) } else { None },
        },
    })
}

fn read_duration(section: ConfigSection<'_>, key: &str) -> Option<Duration> {
    section.parse_value(key).map(|Seconds(seconds)| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests;
