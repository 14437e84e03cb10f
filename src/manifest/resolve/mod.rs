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
use super::file::{is_list, unopened_list};
use super::keys::CAMPAIGN;
use super::recipients::Recipients;
use super::report::{LoadedFile, Report};
use super::section::Section;
use super::suppress_file::{SuppressFile, suppress_files};
use super::text_folders::TextFolders;
use super::yaml::Node;
use super::{CampaignPath, CampaignPaths, Places, Reach};
use crate::calendar::PerDay;
use crate::domain::{Budget, Content, Endpoint, Purpose, Text};
use crate::finding::{Finding, Source, quoted, rules};

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
        let message = format!("`{}` is a list of recipients and no campaign file", path.display());
        let help = format!("write a campaign for it: `campaign init NAME --from {}`", quoted(path));
        return LoadedFile::new(None, vec![Finding::new(&rules::WRONG_TYPE, message).help(help)]);
    }
    let paths = CampaignPaths::of(path, reach);
    document::load_path(paths.file(), CAMPAIGN_FILE, |root, report| {
        let folders = TextFolders::of(&paths);
        let (today, columns, files) = (day.date(None), Vec::new(), BTreeMap::new());
        Resolver { report, paths: paths.clone(), folders, columns, files, day, today }.campaign(path, root)
    })
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
}

impl Resolver<'_> {
    /// The campaign; nothing where something required is missing or wrong, which was told.
    fn campaign(mut self, path: &Path, tree: Node) -> Option<Campaign> {
        let root = Section::new(Some(&tree), CAMPAIGN);
        let recipients = root.section("recipients");
        let name = self.name(root, path);
        let columns = self.columns(recipients);
        self.columns.clone_from(&columns);
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
        let results = self.results(root, name.as_deref());
        self.refuse_resending(
            root,
            content.iter().chain(variants.iter().filter_map(|variant| variant.content.as_ref())),
        );
        let notify = notify(root, &self.paths, self.report);
        self.miss_list(recipients, source.as_ref().and_then(Recipients::file));
        let (name, gateway) = (name?, root.text("gateway")?.to_owned());
        Some(Campaign {
            results: results?,
            receipts: root.parsed("receipts")?,
            brief: Brief {
                name,
                edition,
                purpose: purpose(root, content.as_ref())?,
                gateway,
                endpoint: endpoint(root)?,
                timezone,
                columns,
                region,
                duplicates: duplicates(recipients)?,
                max_invalid: recipients.parsed("max_invalid")?,
                condition: condition(recipients),
                exclude: recipients::exclude(recipients),
                may_be_empty: recipients.text("empty")? == "ok",
                vars,
                tables: data.iter().map(|table| table.name.clone()).collect(),
                content: content?,
                variants,
                holdout,
            },
            recipients: source?,
            form: form?,
            suppress,
            data,
            schedule,
            window: window?,
            until: until?,
            today: self.today,
            notify,
            delivery: delivery::delivery(root.section("delivery"))?,
            limits: limits(root.section("limits")),
            per_day,
            file: path.to_owned(),
            folders: self.folders,
            places: Places::new(self.report.source.clone(), tree, self.files),
        })
    }
}

impl Resolver<'_> {
    /// How many messages leave on a day.
    fn per_day(&mut self, root: Section<'_>, zone: Option<&str>) -> Option<PerDay> {
        let delivery = root.section("delivery");
        let entry = delivery.entry("per_day").filter(|_| delivery.has("per_day"))?;
        if !root.has("timezone") {
            let finding = Finding::new(&rules::MISSING_TIMEZONE, "`per_day` needs `timezone`: whose days they are");
            self.report.at(&entry.key_span, finding.help("add `timezone: Europe/Kyiv`, or whatever place is meant"));
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
            let message = format!("the results cannot take this place: `{}` is {why}", results.display());
            let help = "name a file of that folder under `results`, such as `results: results/NAME.csv`";
            self.report.at(&span, Finding::new(&rules::PATH_OUTSIDE, message).help(help));
            return None;
        }
        Some(results)
    }

    /// The name of a file on the day for which the campaign is read.
    fn on_the_day(&mut self, name: &str, span: &Range<usize>) -> Option<String> {
        let dated = dated(name, self.today);
        if dated.is_none() {
            let finding = Finding::new(&rules::FILE_NAME, format!("`{name}` cannot be the name of a file"));
            self.report.at(span, finding.help("names of files know `{{ today }}` alone, which is the date"));
        }
        dated
    }

    /// The files under `suppress`.
    fn suppress(&mut self, recipients: Section<'_>) -> Vec<SuppressFile> {
        let this = std::cell::RefCell::new(self);
        let path = |name: &str, span: &Range<usize>| this.borrow_mut().file_on_the_day(name, span);
        suppress_files(recipients, "recipients", path, |section| this.borrow_mut().region(section))
    }

    /// Tells of a list that is not there beside all else that is wrong; without anything else whoever opens it tells.
    fn miss_list(&mut self, recipients: Section<'_>, list: Option<&CampaignPath>) {
        let (Some((_, span)), Some(list)) = (recipients.typed("file"), list) else { return };
        if !matches!(self.day, Day::Coming(_))
            && let Err(error) = list.open()
            && self.report.findings.iter().any(Finding::is_error)
        {
            self.report.at(span, unopened_list(list.path(), &error));
        }
    }

    /// Tells that rows in doubt are never sent again by a rule where that could harm.
    fn refuse_resending<'c>(&mut self, root: Section<'_>, mut contents: impl Iterator<Item = &'c Content<Text>>) {
        let delivery = root.section("delivery");
        let Some((_, span)) = delivery.typed("on_in_doubt").filter(|(rule, _)| *rule == "resend_if_not_found") else {
            return;
        };
        let why = if endpoint(root) == Some(Endpoint::Async) {
            "on the asynchronous endpoint, whose queue may only be slow"
        } else if contents.any(|content| !content.may_repeat()) {
            "for codes and calls"
        } else {
            return;
        };
        let finding = Finding::new(&rules::NEVER_RESENT, format!("`resend_if_not_found` is not possible {why}"));
        self.report.at(span, finding.help("write `hold`, and decide about rows in doubt by `campaign resolve`"));
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
fn purpose(root: Section<'_>, content: Option<&Content<Text>>) -> Option<Purpose> {
    match root.typed("purpose") {
        Some((name, _)) => Purpose::from_name(name),
        None => Some(content?.purpose()),
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
