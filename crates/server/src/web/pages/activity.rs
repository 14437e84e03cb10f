//! Costs, budgets and daily deliveries of recent runs, from their stored figures.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::Serialize;

use super::caches::{CachePolicy, ListedFigures, SingleFlightCache};
use super::page_error::PageError;
use super::request::PageRequest;
use super::runs::{is_regular, start_of_period};
use crate::web::charts::{ColumnChart, ColumnInput, draw_columns};
use crate::web::words::{PageWords, zone_name};
use campaign_core::domain::{Amount, Channel};
use campaign_engine::report::RunList;
use campaign_ledger::{LedgerError, Run, RunId, share_budget};

/// The number of days in the chart, including today.
const SHOWN_DAYS: u32 = 14;
/// The number of days before the chart in which a run can start and still deliver messages within the chart.
const DELIVERY_DAYS: u32 = 5;
/// The percentage of a budget from which the budget counts as nearly used up.
const TIGHT_PERCENT: u64 = 80;

/// The policy for the activity: reading it takes at most 1/20 of the time.
const ACTIVITY_POLICY: CachePolicy = CachePolicy {
    min_ttl: Duration::from_secs(2),
    ttl_factor: 20,
    timeout: Duration::from_millis(150),
    max_entries: 4,
};

/// Cached activities, by time zone and day.
pub(super) struct ActivityCache(SingleFlightCache<RecentActivity, (String, Date)>);

impl Default for ActivityCache {
    fn default() -> Self {
        Self(SingleFlightCache::new(ACTIVITY_POLICY))
    }
}

/// The cost of a run, with its currency.
struct RunMoney {
    cost: Amount,
    currency: Option<String>,
}

/// A budget that is nearly used up.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TightBudget {
    /// The latest run that uses the budget.
    pub(super) run: String,
    used: Amount,
    limit: Amount,
    currency: Option<String>,
}

impl TightBudget {
    pub(super) fn format_used(&self, words: &PageWords) -> String {
        words.format_money(self.used, self.currency.as_deref())
    }

    pub(super) fn format_limit(&self, words: &PageWords) -> String {
        words.format_money(self.limit, self.currency.as_deref())
    }
}

/// A summary of the stored figures of recent regular runs.
pub(super) struct RecentActivity {
    /// The costs of runs with prices.
    money: HashMap<RunId, RunMoney>,
    /// The numbers of messages whose price is unknown.
    unpriced: HashMap<RunId, u64>,
    /// The runs whose figures are not counted yet.
    uncounted: Vec<RunId>,
    budgets: Vec<TightBudget>,
    /// Deliveries by channel on each day, including days without deliveries.
    days: BTreeMap<Date, BTreeMap<Option<Channel>, u64>>,
}

impl RecentActivity {
    /// Loads the activity of the last [`SHOWN_DAYS`] days, or returns `None` while it is still being counted.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn load(request: &PageRequest, list: &RunList) -> Result<Option<Arc<Self>>, PageError> {
        let (now, zone) = (request.pages.now(), request.zone.clone());
        let since = start_of_period(&zone, now, SHOWN_DAYS + DELIVERY_DAYS);
        let is_recent = |run: &&Run| is_regular(run) && run.began_at >= since;
        let runs: Vec<Run> = list.views.iter().map(|view| &view.run).filter(is_recent).cloned().collect();
        let key = (zone_name(&zone).to_owned(), now.to_zoned(zone.clone()).date());
        let pages = Arc::clone(&request.pages);
        let load = async move {
            let mut figures = Vec::with_capacity(runs.len());
            for run in runs {
                let stored = pages.figures.load(pages.adapters.ledger.as_ref(), &run).await?;
                figures.push((run, stored));
            }
            Ok::<_, LedgerError>(Self::from_figures(&figures, &zone, now))
        };
        Ok(request.pages.activity.0.get_or_load(key, (), load).await?)
    }

    /// Summarizes the activity of `runs`, which are sorted latest first.
    fn from_figures(runs: &[(Run, Option<Arc<ListedFigures>>)], zone: &TimeZone, now: Timestamp) -> Self {
        let today = now.to_zoned(zone.clone()).date();
        let first = today.saturating_sub(i64::from(SHOWN_DAYS - 1).days());
        let mut days: BTreeMap<Date, BTreeMap<Option<Channel>, u64>> = BTreeMap::new();
        days.extend(first.series(1.day()).take_while(|day| *day <= today).map(|day| (day, BTreeMap::new())));
        let (mut money, mut unpriced, mut uncounted) = (HashMap::new(), HashMap::new(), Vec::new());
        for (run, figures) in runs {
            let Some(figures) = figures else {
                uncounted.push(run.key);
                continue;
            };
            unpriced.insert(run.key, figures.unpriced);
            if let Some(cost) = figures.cost {
                let currency = figures.terms.as_ref().and_then(|terms| terms.currency.clone());
                money.insert(run.key, RunMoney { cost, currency });
            }
            for (_, point) in figures.arrivals.points() {
                let Some(day) = days.get_mut(&point.from.to_zoned(zone.clone()).date()) else { continue };
                for (kind, messages) in point.counts {
                    *day.entry(kind.channel).or_default() += messages;
                }
            }
        }
        Self { money, unpriced, uncounted, budgets: find_tight_budgets(runs), days }
    }

    /// The budgets that are nearly used up.
    pub(super) fn tight_budgets(&self) -> &[TightBudget] {
        &self.budgets
    }

    pub(super) fn to_view(&self, request: &PageRequest) -> ActivityView {
        let words = request.words();
        let mut channels: Vec<Option<Channel>> = self.days.values().flat_map(BTreeMap::keys).copied().collect();
        channels.sort_unstable();
        channels.dedup();
        let name = |channel: Option<Channel>| match channel {
            Some(channel) => words.item_name("channel", channel.name()).unwrap_or_default().to_owned(),
            None => words.say("run.no-channel").to_owned(),
        };
        let class = |channel: Option<Channel>| {
            channel.map_or_else(|| "c-none".to_owned(), |channel| format!("c-{}", channel.name().replace('/', "-")))
        };
        let label = |day: &Date| words.format_short_day(*day);
        let values = |day: &BTreeMap<Option<Channel>, u64>| -> Vec<u64> {
            channels.iter().map(|channel| day.get(channel).copied().unwrap_or_default()).collect()
        };
        let input = ColumnInput {
            series: channels.iter().map(|channel| (name(*channel), class(*channel))).collect(),
            columns: self.days.iter().map(|(day, counts)| (label(day), values(counts))).collect(),
        };
        let row = |(day, counts): (&Date, &BTreeMap<Option<Channel>, u64>)| DayRow {
            day: words.format_day(*day),
            counts: values(counts),
        };
        ActivityView {
            chart: (!channels.is_empty()).then(|| draw_columns(input, |number| words.format_number(number))),
            rows: self.days.iter().rev().map(row).collect(),
            uncounted: self.uncounted.len() as u64,
        }
    }
}

/// Finds the budgets that are nearly used up, each with the latest run that shares it and has known figures. All of
/// `runs` that share a budget and have known figures count.
fn find_tight_budgets(runs: &[(Run, Option<Arc<ListedFigures>>)]) -> Vec<TightBudget> {
    let (mut budgets, mut evaluated): (Vec<TightBudget>, Vec<&Run>) = (Vec::new(), Vec::new());
    for (index, (run, figures)) in runs.iter().enumerate() {
        let Some(terms) = figures.as_ref().and_then(|figures| figures.terms.as_ref()) else { continue };
        let Some(limit) = terms.budget.cost else { continue };
        if evaluated.iter().any(|later| share_budget(run, later)) {
            continue;
        }
        evaluated.push(run);
        let shared = runs[index..].iter().filter(|(other, _)| share_budget(run, other));
        let used = shared.filter_map(|(_, figures)| figures.as_ref()?.cost).sum();
        let is_tight = |used: Amount| used.saturating_mul(100) >= limit.saturating_mul(TIGHT_PERCENT);
        if is_tight(used) {
            budgets.push(TightBudget { run: run.name(), used, limit, currency: terms.currency.clone() });
        }
    }
    budgets
}

/// Deliveries per day, as a chart and a table.
#[derive(Serialize)]
pub(super) struct ActivityView {
    /// `None` if there are no deliveries.
    chart: Option<ColumnChart>,
    rows: Vec<DayRow>,
    /// The number of runs that are not counted yet.
    uncounted: u64,
}

#[derive(Serialize)]
struct DayRow {
    day: String,
    counts: Vec<u64>,
}

/// The costs of runs by currency.
#[derive(Debug, Default, PartialEq)]
pub(super) struct MoneySums {
    sums: BTreeMap<Option<String>, Amount>,
    /// The number of messages whose price is unknown.
    unpriced: u64,
    /// The number of runs that are not counted yet.
    uncounted: u64,
}

impl MoneySums {
    /// Sums up the costs of these runs by currency.
    pub(super) fn from_runs(activity: &RecentActivity, runs: impl Iterator<Item = RunId>) -> Self {
        let mut money = Self::default();
        for run in runs {
            money.unpriced += activity.unpriced.get(&run).copied().unwrap_or_default();
            if let Some(RunMoney { cost, currency }) = activity.money.get(&run) {
                let sum = money.sums.entry(currency.clone()).or_default();
                *sum = sum.saturating_add(*cost);
            } else if activity.uncounted.contains(&run) {
                money.uncounted += 1;
            }
        }
        money
    }

    /// Formats the sums, and a note about runs that are not yet counted and messages without a known price. Returns
    /// `None` if no run has a known cost.
    pub(super) fn format(&self, words: &PageWords) -> Option<(String, Option<String>)> {
        if self.sums.is_empty() {
            return None;
        }
        let sums: Vec<String> =
            self.sums.iter().map(|(currency, sum)| words.format_money(*sum, currency.as_deref())).collect();
        let uncounted = (self.uncounted > 0).then(|| words.count("overview.uncounted", self.uncounted, &[]));
        let notes: Vec<String> = [words.format_unpriced(self.unpriced), uncounted].into_iter().flatten().collect();
        Some((sums.join(" + "), (!notes.is_empty()).then(|| notes.join("; "))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use campaign_core::domain::Budget;
    use campaign_engine::report::{RunTerms, Timeline};
    use campaign_testing::{RowCase, build_run};

    fn amount(text: &str) -> Amount {
        text.parse().unwrap()
    }

    #[tokio::test]
    async fn budget_is_reported_while_its_latest_run_has_no_figures() {
        let (_, run) = build_run(&[RowCase::Planned]).await;
        let budget = Budget { cost: Some(amount("10")), ..Budget::default() };
        let terms = Some(RunTerms { budget, ..RunTerms::default() });
        let figures = |cost: &str| {
            let cost = Some(amount(cost));
            Some(Arc::new(ListedFigures { cost, unpriced: 0, terms: terms.clone(), arrivals: Timeline::default() }))
        };
        let found = |runs: &[Option<Arc<ListedFigures>>]| {
            let runs: Vec<_> = runs.iter().map(|figures| (run.clone(), figures.clone())).collect();
            find_tight_budgets(&runs).into_iter().map(|budget| budget.used).collect::<Vec<_>>()
        };
        assert_eq!(found(&[None, figures("9")]), [amount("9")]);
        assert_eq!(found(&[figures("4"), None, figures("5")]), [amount("9")], "one budget, one line");
        assert_eq!(found(&[None, figures("5")]), []);
    }
}
