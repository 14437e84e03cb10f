//! The table of runs: campaigns with their editions, filters, sorting and pages. Tests and rehearsals are hidden by
//! default.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use axum::response::Response;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;

use super::caches::CampaignTraits;
use super::page_error::PageError;
use super::request::{FormFields, PageRequest, encode_path_segment};
use crate::web::charts::{Bar, Length, scale_bars};
use crate::web::run_page::format_share;
use campaign_engine::delivery::SingleKind;
use campaign_engine::report::{ACCEPTED_STATES, IN_DOUBT_STATES, RunStatus, RunView};
use campaign_ledger::{DamagedRun, LedgerError, RowState, Run, StateCounts};

/// The maximum number of runs, or of campaigns, on a page.
const PER_PAGE: usize = 25;
/// The maximum number of runs of a campaign in the grouped table.
const RUNS_PER_CAMPAIGN: usize = 3;

/// Whether a run sent test messages rather than a campaign.
pub(super) fn is_test(run: &Run) -> bool {
    run.campaign == SingleKind::Test.campaign_name()
}

/// Whether a run sent messages to recipients, unlike a rehearsal or a test.
pub(super) fn is_regular(run: &Run) -> bool {
    run.live && !is_test(run)
}

/// Whether a regular run consists of messages, unlike lookups and verification calls.
pub(super) fn is_message_run(run: &Run) -> bool {
    is_regular(run) && !matches!(SingleKind::from_run(run), Some(SingleKind::Lookup | SingleKind::CodeCall))
}

/// The sums of a run that lists and tiles show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageSums {
    /// Messages that the gateway accepted.
    pub(super) accepted: u64,
    /// Delivered messages, including read messages.
    pub(super) delivered: u64,
    /// Read messages.
    pub(super) read: u64,
    /// Failed and rejected messages.
    pub(super) failed: u64,
    /// Rejected messages.
    rejected: u64,
    /// Rows with an unknown outcome.
    pub(super) doubt: u64,
}

impl MessageSums {
    pub(super) fn from_counts(counts: &StateCounts) -> Self {
        let sum = |states: &[RowState]| states.iter().map(|state| counts.get(*state)).sum();
        Self {
            accepted: sum(&ACCEPTED_STATES),
            delivered: counts.count_delivered(),
            read: counts.get(RowState::Read),
            failed: sum(&[RowState::Failed, RowState::Rejected]),
            rejected: counts.get(RowState::Rejected),
            doubt: sum(&IN_DOUBT_STATES),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            delivered: self.delivered + other.delivered,
            read: self.read + other.read,
            failed: self.failed + other.failed,
            rejected: self.rejected + other.rejected,
            doubt: self.doubt + other.doubt,
        }
    }

    /// Counts the messages that the gateway accepted or rejected.
    pub(super) fn count_answered(self) -> u64 {
        self.accepted + self.rejected
    }
}

/// A part of a whole, as a percentage with a bar.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ShareView {
    /// The exact number.
    rows: u64,
    text: String,
    length: Length,
}

impl ShareView {
    /// Creates the view of a share; returns `None` if `total` is zero.
    pub(super) fn new(request: &PageRequest, part: u64, total: u64) -> Option<Self> {
        let text = format_share(request.words(), part, total)?;
        let bar = scale_bars(vec![Bar::new("", part, "")], Some(total)).pop()?;
        Some(Self { rows: part, text, length: bar.length })
    }
}

/// A run in a list.
#[derive(Serialize)]
pub(super) struct RunLine {
    name: String,
    path: String,
    campaign: String,
    /// The campaign's name for people, if it has one.
    title: Option<String>,
    edition: Option<String>,
    status: &'static str,
    rehearsal: bool,
    test: bool,
    began: String,
    recipients: u64,
    delivered: Option<ShareView>,
    read: Option<ShareView>,
    failed: u64,
    doubt: u64,
    /// The cost; `None` until the figures are counted, or without prices.
    cost: Option<String>,
    /// A note about further messages whose price is unknown.
    unpriced: Option<String>,
}

impl RunLine {
    /// Loads the line of a run, with the cost of the run if it is known.
    pub(super) async fn load(request: &PageRequest, view: &RunView) -> Result<Self, LedgerError> {
        let RunView { run, status, counts, .. } = view;
        let CampaignTraits { zone, title, .. } = request.pages.traits.load(request.ledger(), run).await;
        let figures = request.pages.figures.load(request.ledger(), run).await?;
        let words = request.words();
        let cost = figures.as_ref().and_then(|figures| {
            let currency = figures.terms.as_ref().and_then(|terms| terms.currency.as_deref());
            figures.cost.map(|cost| words.format_money(cost, currency))
        });
        let unpriced = figures.and_then(|figures| words.format_unpriced(figures.unpriced));
        let sums = MessageSums::from_counts(counts);
        Ok(Self {
            name: run.name(),
            path: run_path(&run.name()),
            campaign: run.campaign.clone(),
            title,
            edition: Some(run.edition.clone()).filter(|edition| !edition.is_empty()),
            status: status.as_str(),
            rehearsal: !run.live,
            test: is_test(run),
            began: request.format_moment_in(&zone, run.began_at),
            recipients: run.recipients,
            delivered: ShareView::new(request, sums.delivered, sums.accepted),
            read: ShareView::new(request, sums.read, sums.accepted),
            failed: sums.failed,
            doubt: sums.doubt,
            cost,
            unpriced,
        })
    }
}

/// The path of a run's page.
pub(super) fn run_path(name: &str) -> String {
    format!("/runs/{}", encode_path_segment(name))
}

/// A run that cannot be read.
#[derive(Serialize)]
pub(super) struct DamagedLine {
    name: String,
    problem: String,
}

impl DamagedLine {
    pub(super) fn new(run: &DamagedRun) -> Self {
        Self { name: run.name.clone(), problem: run.error.describe_damage() }
    }
}

#[derive(Serialize)]
struct RunsPageView {
    /// Whether the runs are still being read.
    reading: bool,
    damaged: Vec<DamagedLine>,
    groups: Vec<RunGroup>,
    columns: Vec<ColumnLink>,
    states: Vec<Choice>,
    periods: Vec<Choice>,
    campaigns: Vec<Choice>,
    /// Whether tests and rehearsals are shown.
    everything: bool,
    /// The number of matching tests and rehearsals, which are hidden unless `everything` is set.
    hidden: u64,
    /// The link that shows or hides tests and rehearsals.
    everything_path: String,
    /// The number of matching runs.
    found: u64,
    /// Whether a filter is set.
    filtered: bool,
    sort: &'static str,
    ascending: bool,
    previous: Option<String>,
    next: Option<String>,
}

/// Runs of one campaign; in a table that is not grouped, a single run.
#[derive(Serialize)]
struct RunGroup {
    runs: Vec<RunLine>,
    /// The number of further runs of the campaign.
    more: u64,
    more_path: String,
}

/// A value of a filter.
#[derive(Serialize)]
struct Choice {
    value: String,
    chosen: bool,
}

/// The header of a column, and the link that sorts by the column.
#[derive(Serialize)]
struct ColumnLink {
    name: &'static str,
    path: Option<String>,
    /// `ascending`, `descending` or empty.
    sorted: &'static str,
    /// Whether the column contains numbers.
    number: bool,
}

/// The columns by which the table can be sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SortKey {
    Campaign,
    State,
    Started,
    Recipients,
    Delivered,
    Read,
    Failed,
}

impl SortKey {
    const ALL: [Self; 7] =
        [Self::Campaign, Self::State, Self::Started, Self::Recipients, Self::Delivered, Self::Read, Self::Failed];

    fn name(self) -> &'static str {
        match self {
            Self::Campaign => "campaign",
            Self::State => "state",
            Self::Started => "started",
            Self::Recipients => "recipients",
            Self::Delivered => "delivered",
            Self::Read => "read",
            Self::Failed => "failed",
        }
    }

    /// Compares two runs by this sort key, in ascending order.
    fn compare(self, left: &RunView, right: &RunView) -> Ordering {
        let sums = |view: &RunView| MessageSums::from_counts(&view.counts);
        let millionths = |part: u64, total: u64| u128::from(part) * 1_000_000 / u128::from(total.max(1));
        let delivered = |view: &RunView| millionths(sums(view).delivered, sums(view).accepted);
        let read = |view: &RunView| millionths(sums(view).read, sums(view).accepted);
        match self {
            Self::Campaign => left.run.campaign.cmp(&right.run.campaign),
            Self::State => left.status.as_str().cmp(right.status.as_str()),
            Self::Started => left.run.began_at.cmp(&right.run.began_at),
            Self::Recipients => left.run.recipients.cmp(&right.run.recipients),
            Self::Delivered => delivered(left).cmp(&delivered(right)),
            Self::Read => read(left).cmp(&read(right)),
            Self::Failed => sums(left).failed.cmp(&sums(right).failed),
        }
    }
}

/// The periods by which the table can be filtered, in days.
const PERIODS: [u32; 4] = [1, 7, 30, 90];

/// The filters, the order and the page of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RunQuery {
    campaign: Option<String>,
    state: Option<&'static str>,
    /// The number of days, including today.
    days: Option<u32>,
    /// Whether tests and rehearsals are shown.
    everything: bool,
    /// The column and whether the order is ascending; `None` for campaigns with their latest runs.
    sort: Option<(SortKey, bool)>,
    /// The number of the page, from 0.
    page: usize,
}

impl RunQuery {
    fn from_fields(fields: &FormFields) -> Self {
        let sort = fields.get("sort").and_then(|word| SortKey::ALL.into_iter().find(|key| key.name() == word));
        Self {
            campaign: fields.get("campaign").map(str::to_owned),
            state: fields.get("state").and_then(|word| RunStatus::NAMES.into_iter().find(|name| *name == word)),
            days: fields.get("days").and_then(|days| days.parse().ok()).filter(|days| PERIODS.contains(days)),
            everything: fields.get("everything").is_some(),
            sort: sort.map(|key| (key, fields.get("order") == Some("ascending"))),
            page: fields.get("page").and_then(|page| page.parse().ok()).map_or(0, |page: usize| page.saturating_sub(1)),
        }
    }

    fn path(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let mut add = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        };
        add("campaign", self.campaign.as_deref());
        add("state", self.state);
        add("days", self.days.map(|days| days.to_string()).as_deref());
        add("everything", self.everything.then_some("1"));
        add("sort", self.sort.map(|(key, _)| key.name()));
        add("order", self.sort.filter(|(_, ascending)| *ascending).map(|_| "ascending"));
        add("page", (self.page > 0).then(|| (self.page + 1).to_string()).as_deref());
        let query = query.finish();
        if query.is_empty() { "/runs".to_owned() } else { format!("/runs?{query}") }
    }

    fn is_filtered(&self) -> bool {
        self.campaign.is_some() || self.state.is_some() || self.days.is_some()
    }

    /// Whether the table shows campaigns with their latest runs.
    fn is_grouped(&self) -> bool {
        self.sort.is_none() && self.campaign.is_none()
    }

    /// Whether a run matches the filters, except those for tests and rehearsals.
    fn matches(&self, view: &RunView, since: Option<Timestamp>) -> bool {
        self.campaign.as_ref().is_none_or(|campaign| view.run.campaign == *campaign)
            && self.state.is_none_or(|state| view.status.as_str() == state)
            && since.is_none_or(|since| view.run.began_at >= since)
    }

    /// The link that sorts by a column; numbers and times are first sorted in descending order.
    fn sort_path(&self, key: SortKey) -> String {
        let ascending = match self.sort {
            Some((current, ascending)) if current == key => !ascending,
            _ => matches!(key, SortKey::Campaign | SortKey::State),
        };
        Self { sort: Some((key, ascending)), page: 0, ..self.clone() }.path()
    }

    fn columns(&self) -> Vec<ColumnLink> {
        let column = |key: SortKey| ColumnLink {
            name: key.name(),
            path: Some(self.sort_path(key)),
            sorted: match self.sort {
                Some((current, true)) if current == key => "ascending",
                Some((current, false)) if current == key => "descending",
                _ => "",
            },
            number: !matches!(key, SortKey::Campaign | SortKey::State | SortKey::Started),
        };
        let cost = ColumnLink { name: "cost", path: None, sorted: "", number: true };
        SortKey::ALL.into_iter().map(column).chain([cost]).collect()
    }
}

/// Returns the start of the period of `days` days, including today, in this time zone.
pub(super) fn start_of_period(zone: &TimeZone, now: Timestamp, days: u32) -> Timestamp {
    let days_before_today = i64::from(days.saturating_sub(1));
    let first = now.to_zoned(zone.clone()).date().saturating_sub(days_before_today.days());
    first.to_zoned(zone.clone()).map_or(now, |start| start.timestamp())
}

pub(super) async fn show_runs(mut request: PageRequest) -> Response {
    let view = build_view(&mut request).await;
    request.respond("pages/runs.html", view)
}

async fn build_view(request: &mut PageRequest) -> Result<RunsPageView, PageError> {
    let query = RunQuery::from_fields(&request.query);
    let run_list = request.pages.run_list.read_latest().await?;
    let reading = run_list.is_none();
    let list = run_list.unwrap_or_default();
    let since = query.days.map(|days| start_of_period(&request.zone, request.pages.now(), days));
    let mut matching: Vec<&RunView> = list.views.iter().filter(|view| query.matches(view, since)).collect();
    let hidden = matching.iter().filter(|view| !is_regular(&view.run)).count() as u64;
    matching.retain(|view| query.everything || is_regular(&view.run));
    let count = matching.len() as u64;
    let groups = arrange_runs(&query, matching);
    let first = query.page.saturating_mul(PER_PAGE);
    let has_next = groups.len() > first.saturating_add(PER_PAGE);
    let page_groups: Vec<(Vec<&RunView>, u64)> = groups.into_iter().skip(first).take(PER_PAGE).collect();
    let mut zones = Vec::new();
    for view in page_groups.iter().flat_map(|(runs, _)| runs) {
        zones.push(request.pages.traits.load(request.ledger(), &view.run).await.zone);
    }
    request.use_common_zone(&zones);
    let mut group_views = Vec::with_capacity(page_groups.len());
    for (runs, more) in page_groups {
        let campaign = runs.first().map(|view| view.run.campaign.clone());
        let more_path = RunQuery { campaign, page: 0, ..query.clone() }.path();
        let mut group = RunGroup { runs: Vec::with_capacity(runs.len()), more, more_path };
        for view in runs {
            group.runs.push(RunLine::load(request, view).await?);
        }
        group_views.push(group);
    }
    let choice = |value: &str, chosen| Choice { value: value.to_owned(), chosen };
    let mut names: Vec<&str> = list.views.iter().map(|view| view.run.campaign.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    Ok(RunsPageView {
        reading,
        damaged: list.damaged.iter().filter(|_| query.page == 0).map(DamagedLine::new).collect(),
        groups: group_views,
        columns: query.columns(),
        states: RunStatus::NAMES.iter().map(|name| choice(name, query.state == Some(*name))).collect(),
        periods: PERIODS.iter().map(|days| choice(&days.to_string(), query.days == Some(*days))).collect(),
        campaigns: names.iter().map(|name| choice(name, query.campaign.as_deref() == Some(*name))).collect(),
        everything: query.everything,
        hidden,
        everything_path: RunQuery { everything: !query.everything, page: 0, ..query.clone() }.path(),
        found: count,
        filtered: query.is_filtered(),
        sort: query.sort.map_or("", |(key, _)| key.name()),
        ascending: query.sort.is_some_and(|(_, ascending)| ascending),
        previous: (query.page > 0).then(|| RunQuery { page: query.page - 1, ..query.clone() }.path()),
        next: has_next.then(|| RunQuery { page: query.page + 1, ..query.clone() }.path()),
    })
}

/// Arranges runs, which are given latest first. If the query groups runs, each group has the latest runs of a campaign,
/// and the number of further runs. Otherwise, each run is its own group, in the order of the query.
fn arrange_runs<'v>(query: &RunQuery, mut runs: Vec<&'v RunView>) -> Vec<(Vec<&'v RunView>, u64)> {
    if !query.is_grouped() {
        if let Some((key, ascending)) = query.sort {
            runs.sort_by(|left, right| if ascending { key.compare(left, right) } else { key.compare(right, left) });
        }
        return runs.into_iter().map(|run| (vec![run], 0)).collect();
    }
    let mut indexes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut groups: Vec<(Vec<&RunView>, u64)> = Vec::new();
    for view in runs {
        let index = *indexes.entry(&view.run.campaign).or_insert(groups.len());
        if index == groups.len() {
            groups.push((Vec::new(), 0));
        }
        let (group, more) = &mut groups[index];
        if group.len() < RUNS_PER_CAMPAIGN { group.push(view) } else { *more += 1 }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_list_links_keep_the_filters() {
        let fields = "campaign=autumn-sale&state=finished&days=7&everything=1&sort=read&order=ascending&page=3";
        let query = RunQuery::from_fields(&FormFields::parse(fields.as_bytes()));
        assert_eq!(query.path(), format!("/runs?{fields}"));
        assert!(query.sort_path(SortKey::Read).ends_with("everything=1&sort=read"), "the order is reversed");
        assert!(query.sort_path(SortKey::Campaign).ends_with("sort=campaign&order=ascending"));
        let unknown = FormFields::parse(b"state=none&days=8&sort=cost&page=x");
        assert_eq!(RunQuery::from_fields(&unknown), RunQuery::default());
        assert_eq!(RunQuery::default().path(), "/runs");
    }

    #[test]
    fn period_begins_at_midnight_in_the_time_zone_of_the_page() {
        let zone = TimeZone::get("Europe/Kyiv").unwrap();
        let start = |days| start_of_period(&zone, "2026-06-15T21:30:00Z".parse().unwrap(), days).to_string();
        assert_eq!(start(1), "2026-06-15T21:00:00Z");
        assert_eq!(start(7), "2026-06-09T21:00:00Z");
    }
}
