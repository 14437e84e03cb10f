//! From what was typed to what is valid: defaults, names, paths and the rules of the contract.

mod carried;
mod channels;
mod chosen;
mod data;
mod delivery;
mod extra;
mod form;
mod list_form;
mod names;
mod notify;
mod placeholders;
mod recipients;
mod schedule;
mod stage;
mod texts;
mod timezone;
mod variants;
mod window;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use jiff::civil::Date;
use jiff::tz::TimeZone;

pub(super) use notify::notify;

use super::campaign::{Brief, Campaign, Duplicates, default_results};
use super::day::{Day, dated};
use super::document::{self, FileKind};
use super::file::is_list;
use super::keys::{CAMPAIGN, SUPPRESS_FILE};
use super::recipients::Recipients;
use super::report::{LoadedFile, Report};
use super::section::Section;
use super::suppress_file::{SuppressFile, suppress_files};
use super::text_folders::TextFolders;
use super::yaml::{Entry, Node};
use super::{CampaignPath, CampaignPaths, Gaps, Places, Reach};
use crate::calendar::PerDay;
use crate::domain::{Budget, Content, Endpoint, Language, ListForm, OperationKind, Purpose, Text};
use crate::finding::{Finding, Source, quoted, rules};

pub use chosen::no_text_for;
pub use names::{is_slug, slug};
pub use timezone::zone_advice;

const CAMPAIGN_FILE: FileKind = FileKind { file: "the campaign file", owner: "the campaign", keys: CAMPAIGN };

/// Reads a campaign file and the text files that it names.
///
/// Every problem that these files alone show is a finding; nothing stops at the first one.
#[must_use]
pub fn load_campaign(path: &Path, day: Day) -> LoadedFile<Campaign> {
    load_campaign_within(path, day, Reach::Anywhere)
}

/// The same of a file whose paths have this reach, as has its own.
#[must_use]
pub fn load_campaign_within(path: &Path, day: Day, reach: Reach) -> LoadedFile<Campaign> {
    if is_list(path) {
        let message = format!("`{}` is a list of recipients, not a campaign file", path.display());
        let help = format!("create a campaign from it with `campaign init NAME --from {}`", quoted(path));
        return LoadedFile::new(None, vec![Finding::new(&rules::WRONG_TYPE, message).help(help)]);
    }
    let paths = CampaignPaths::of(path, reach);
    let mut loaded = document::load_path(paths.file(), CAMPAIGN_FILE, |root, report| {
        let folders = TextFolders::of(&paths);
        let (today, columns, files, gaps) = (day.date(None), Vec::new(), BTreeMap::new(), Gaps::default());
        Resolver { report, paths: paths.clone(), folders, columns, files, day, today, gaps }.campaign(path, root)
    });
    // Each gap comes with an error; if one did not, the campaign still must not be sent.
    if let Some(campaign) = loaded.value.take_if(|campaign: &mut Campaign| campaign.gaps.any) {
        loaded.draft = Some(campaign);
    }
    loaded
}

/// Resolves one campaign; findings go into the report.
struct Resolver<'r> {
    report: &'r mut Report,
    /// The paths that it names.
    paths: CampaignPaths,
    folders: TextFolders,
    /// The columns' names in texts and their headers, as far as the campaign tells them.
    columns: Vec<(String, String)>,
    /// The text files that were read, by the names that texts call them.
    files: BTreeMap<String, Source>,
    /// The day for which it is read.
    day: Day,
    /// Its date.
    today: Date,
    /// The stand-ins for missing or wrong parts.
    gaps: Gaps,
}

impl Resolver<'_> {
    /// The campaign, with stand-ins for missing or wrong parts, which it reports.
    fn campaign(mut self, path: &Path, tree: Node) -> Option<Campaign> {
        let root = Section::new(Some(&tree), CAMPAIGN);
        let recipients = root.section("recipients");
        let name = self.name(root, path);
        let columns = self.columns(recipients);
        self.columns.clone_from(&columns);
        // In texts, `phone` is the first of several phone columns.
        self.columns.dedup_by(|next, before| next.0 == before.0);
        let edition = root.entry("edition").and_then(|entry| self.text("edition".into(), entry));
        let timezone = self.timezone(root);
        self.today = self.day.date(timezone.as_deref());
        let schedule = self.schedule(root, timezone.as_deref());
        let per_day = self.per_day(root, timezone.as_deref());
        let (window, until) = (self.window(root), self.until(root));
        let region = self.region(recipients);
        let vars = self.vars(root, &columns);
        let content = self.content(root, root, "");
        let variants = self.variants(root, content.as_ref(), &vars);
        let holdout = self.holdout(root);
        let data = self.data(root, &vars);
        let source = self.recipients(recipients);
        self.refuse_waiting(root, source.as_ref());
        let form = self.list_form(recipients);
        let suppress = self.suppress(recipients);
        self.refuse_own_list(recipients, source.as_ref());
        let results = self.results(root, name.as_deref());
        self.refuse_resending(
            root,
            content.iter().chain(variants.iter().filter_map(|variant| variant.content.as_ref())),
        );
        let notify = notify(root, &self.paths, self.report);
        self.gaps.note_names(root);
        self.gaps.list = source.is_none() || form.is_none();
        self.gaps.recipients = self.has_errors_within(&tree, "recipients");
        let content = self.or_stand_in(content, || Content { kind: OperationKind::Pipeline, stages: Vec::new() });
        let name = self.or_stand_in(name, || slug(&path.file_stem().unwrap_or_default().to_string_lossy()));
        let file = self.paths.file().clone();
        let results = self.or_stand_in(results, || default_results(&file, &name));
        Some(Campaign {
            results,
            receipts: self.or_default(root, |root| root.parsed("receipts"))?,
            brief: Brief {
                name,
                edition,
                purpose: self.or_default(root, |root| purpose(root, &content))?,
                gateway: self.or_default(root, |root| root.text("gateway"))?.to_owned(),
                endpoint: self.or_default(root, endpoint)?,
                timezone,
                columns,
                region,
                language: root.typed("language").and_then(|(code, _)| Language::from_code(code)),
                duplicates: self.or_default(recipients, duplicates)?,
                max_invalid: self.or_default(recipients, |recipients| recipients.parsed("max_invalid"))?,
                condition: condition(recipients),
                exclude: recipients::exclude(recipients),
                may_be_empty: self.or_default(recipients, |recipients| recipients.text("empty"))? == "ok",
                vars,
                tables: data.iter().map(|table| table.name.clone()).collect(),
                content,
                variants,
                holdout,
            },
            recipients: self.or_stand_in(source, || Recipients::StandardInput),
            form: self.or_stand_in(form, ListForm::default),
            suppress,
            data,
            schedule,
            window: self.or_stand_in(window, || None),
            until: self.or_stand_in(until, || None),
            today: self.today,
            notify,
            delivery: self.or_default(root.section("delivery"), delivery::delivery)?,
            limits: limits(root.section("limits")),
            per_day,
            file: path.to_owned(),
            folders: self.folders,
            places: Places::new(self.report.source.clone(), tree, self.files),
            gaps: self.gaps,
        })
    }
}

impl Resolver<'_> {
    /// A value or its stand-in.
    fn or_stand_in<T>(&mut self, value: Option<T>, stand_in: impl FnOnce() -> T) -> T {
        self.gaps.any |= value.is_none();
        value.unwrap_or_else(stand_in)
    }

    /// What a map says, or what holds if its keys are not there.
    fn or_default<'n, T>(&mut self, section: Section<'n>, read: impl Fn(Section<'n>) -> Option<T>) -> Option<T> {
        let value = read(section);
        self.gaps.any |= value.is_none();
        value.or_else(|| read(section.with(None)))
    }

    /// Whether something is wrong with a key of the top or with what stands under it.
    fn has_errors_within(&self, tree: &Node, key: &str) -> bool {
        let Some(Entry { key_span, value, .. }) = tree.get(key) else { return true };
        let within = key_span.start..value.span.end.max(key_span.end);
        let errors = self.report.findings.iter().filter(|finding| finding.is_error());
        errors.filter_map(|finding| finding.place.as_ref()).any(|place| within.contains(&place.span.start))
    }
}

impl Resolver<'_> {
    /// How many messages leave on a day.
    fn per_day(&mut self, root: Section<'_>, zone: Option<&str>) -> Option<PerDay> {
        let delivery = root.section("delivery");
        let entry = delivery.entry("per_day").filter(|_| delivery.has("per_day"))?;
        if self.lacks_timezone(root) {
            let finding =
                Finding::new(&rules::MISSING_TIMEZONE, "`per_day` needs `timezone`, which defines when a day starts");
            self.report.at(&entry.key_span, finding.help("add `timezone: Europe/Kyiv`, or another time zone"));
        }
        let counts = match entry.value.items() {
            Some(_) => delivery.parsed_items("per_day"),
            None => delivery.parsed("per_day").into_iter().collect(),
        };
        PerDay::new(counts, TimeZone::get(zone?).ok()?)
    }

    /// The file under a key, on the day for which the campaign is read.
    fn file_under(&mut self, section: Section<'_>, key: &str) -> Option<CampaignPath> {
        let (name, span) = section.typed(key)?;
        self.file_on_the_day(name, span)
    }

    /// The file of a name on the day for which the campaign is read.
    fn file_on_the_day(&mut self, name: &str, span: &Range<usize>) -> Option<CampaignPath> {
        let name = self.on_the_day(name, span)?;
        self.path(&name, span)
    }

    /// The path that a name means; nothing if it leads out, which is reported.
    fn path(&mut self, name: &str, span: &Range<usize>) -> Option<CampaignPath> {
        self.paths.resolve(name).map_err(|finding| self.report.at(span, *finding)).ok()
    }

    /// Where the results go; nothing if that is wrong, which is reported.
    fn results(&mut self, root: Section<'_>, name: Option<&str>) -> Option<CampaignPath> {
        let results = match root.has("results") {
            true => self.file_under(root, "results")?,
            false => default_results(self.paths.file(), name?),
        };
        if let Some(why) = results.refuses_writing() {
            let span = root.typed("results").map_or(&(0..0), |(_, span)| span).clone();
            let message = format!("cannot write results to `{}`, which is {why}", results.display());
            let help = "set `results` to a regular file in the campaigns folder, for example `results: \
                results/NAME.csv`";
            self.report.at(&span, Finding::new(&rules::PATH_OUTSIDE, message).help(help));
            return None;
        }
        Some(results)
    }

    /// The name of a file on the day for which the campaign is read.
    fn on_the_day(&mut self, name: &str, span: &Range<usize>) -> Option<String> {
        let dated = dated(name, self.today);
        if dated.is_none() {
            let finding = Finding::new(&rules::FILE_NAME, format!("`{name}` is not a valid file name"));
            self.report.at(span, finding.help("use no placeholder in a file name except `{{ today }}`, the date"));
        }
        dated
    }

    /// The files under `suppress`.
    fn suppress(&mut self, recipients: Section<'_>) -> Vec<SuppressFile> {
        let this = std::cell::RefCell::new(self);
        let path = |name: &str, span: &Range<usize>| this.borrow_mut().file_on_the_day(name, span);
        suppress_files(recipients, "recipients", path, |section| this.borrow_mut().region(section))
    }

    /// Refuses the list of recipients under `suppress`: all recipients would be skipped.
    fn refuse_own_list(&mut self, recipients: Section<'_>, source: Option<&Recipients>) {
        let Some(list) = source.and_then(Recipients::file) else { return };
        let Some(value) = recipients.value("suppress") else { return };
        for item in value.items().unwrap_or(std::slice::from_ref(value)) {
            let section = Section::new(Some(item), SUPPRESS_FILE);
            // Another column of the list may hold the numbers of people who opted out.
            let named = match item.scalar() {
                Some(scalar) => Some((scalar.text.trim(), &item.span)),
                None => section.typed("file").filter(|_| !section.has("phone")),
            };
            let Some((name, span)) = named else { continue };
            let file = dated(name, self.today).and_then(|name| self.paths.resolve(&name).ok());
            if file.is_some_and(|file| file.path() == list.path()) {
                let message =
                    format!("`{name}` under `suppress` is the list of recipients itself, so no messages are sent");
                let help = "write the name of the file with opted-out numbers, as in `suppress: [stop-list.csv]`";
                self.report.at(span, Finding::new(&rules::SUPPRESS_FILE, message).help(help));
            }
        }
    }

    /// Tells that rows in doubt are never sent again by a rule where that could harm.
    fn refuse_resending<'c>(&mut self, root: Section<'_>, mut contents: impl Iterator<Item = &'c Content<Text>>) {
        let delivery = root.section("delivery");
        let Some((_, span)) = delivery.typed("on_in_doubt").filter(|(rule, _)| *rule == "resend_if_not_found") else {
            return;
        };
        let why = if endpoint(root) == Some(Endpoint::Async) {
            "on the asynchronous endpoint, where a message might still be queued"
        } else if contents.any(|content| !content.may_repeat()) {
            "for codes and calls"
        } else {
            return;
        };
        let finding = Finding::new(&rules::NEVER_RESENT, format!("`resend_if_not_found` cannot be used {why}"));
        self.report.at(span, finding.help("use `hold`, then resolve rows in doubt with `campaign resolve`"));
    }
}

/// The most that an edition may use.
fn limits(section: Section<'_>) -> Budget {
    Budget { cost: section.parsed("cost"), recipients: section.parsed("recipients") }
}

fn endpoint(root: Section<'_>) -> Option<Endpoint> {
    let name = root.text("endpoint")?;
    [Endpoint::Sync, Endpoint::Async].into_iter().find(|endpoint| endpoint.name() == name)
}

/// The expression that says who of the list is meant.
fn condition(recipients: Section<'_>) -> Option<Text> {
    let (source, _) = recipients.typed("where")?;
    Some(Text { name: "recipients.where".to_owned(), source: source.trim().to_owned() })
}

/// What the messages are for, which follows from what they are unless the campaign says it.
fn purpose(root: Section<'_>, content: &Content<Text>) -> Option<Purpose> {
    match root.typed("purpose") {
        Some((name, _)) => Purpose::from_name(name),
        None => Some(content.purpose()),
    }
}

fn duplicates(recipients: Section<'_>) -> Option<Duplicates> {
    match recipients.text("duplicates")? {
        "skip" => Some(Duplicates::Skip),
        "refuse" => Some(Duplicates::Refuse),
        "allow" => Some(Duplicates::Allow),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
