//! Server metrics: counters, and the text format of Prometheus.
//!
//! All parts of a process share one [`Metrics`] and report events with the types of this module. Labels must not
//! identify people: no numbers, no texts, and no free-form values except for names of gateways and accounts.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// The media type of [`Metrics::encode_text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The buckets for commit times, in seconds: from half a millisecond to half a minute.
const COMMIT_TIMES: [f64; 14] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// A label with a fixed value.
type StaticLabel = [(&'static str, &'static str); 1];
/// A name given by the user, as a label.
type NameLabel = [(&'static str, String); 1];

/// Figures from the ledger.
#[derive(Clone, Debug, Default)]
pub struct LedgerFigures {
    /// Messages of live runs, by gateway and state.
    pub messages: BTreeMap<(String, &'static str), u64>,
    /// Live runs, by activity.
    pub runs: BTreeMap<&'static str, u64>,
    /// The accounts with a rate limit.
    pub accounts: Vec<AccountUse>,
}

/// The use of an account's rate limit.
#[derive(Clone, Debug)]
pub struct AccountUse {
    /// The name of the account.
    pub account: String,
    /// The number of operations and inquiries that have counted against the rate limit so far.
    pub taken: u64,
    /// The allowed number per second, after the gateway's requests to slow down.
    pub allowed: f64,
}

/// The counters of a process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    receipts: Family<StaticLabel, Counter>,
    occurrences: Family<StaticLabel, Counter>,
    notifications: Family<StaticLabel, Counter>,
    commits: Histogram,
    messages: Family<[(&'static str, String); 2], Gauge>,
    runs: Family<StaticLabel, Gauge>,
    taken: Family<NameLabel, Counter>,
    allowed: Family<NameLabel, Gauge<f64, AtomicU64>>,
    /// Held while ledger figures are set and encoded.
    encoding: Mutex<()>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("campaign");
        let (receipts, occurrences, notifications) = <_>::default();
        let (messages, runs, taken, allowed) = <_>::default();
        let commits = Histogram::new(COMMIT_TIMES);
        let metrics = Self {
            receipts,
            occurrences,
            notifications,
            commits,
            messages,
            runs,
            taken,
            allowed,
            encoding: Mutex::new(()),
            registry: Registry::default(),
        };
        registry.register("messages", "Messages in live runs, by gateway and state", metrics.messages.clone());
        registry.register("runs", "Live runs by activity", metrics.runs.clone());
        registry.register(
            "account_operations",
            "Operations and status queries that counted against an account's rate limit",
            metrics.taken.clone(),
        );
        registry.register(
            "account_allowed_per_second",
            "Operations per second currently allowed for an account",
            metrics.allowed.clone(),
        );
        registry.register("receipts", "Receipts that this process received, by result", metrics.receipts.clone());
        registry.register("occurrences", "Schedule occurrences, by result", metrics.occurrences.clone());
        registry.register(
            "notifications",
            "Notifications that this process tried to deliver, by result",
            metrics.notifications.clone(),
        );
        registry.register(
            "ledger_commit_seconds",
            "Duration of this process's ledger commits, including the wait for other processes",
            metrics.commits.clone(),
        );
        Self { registry, ..metrics }
    }
}

impl Metrics {
    /// Counts a receipt by its result.
    pub fn count_receipt(&self, result: ReceiptResult) {
        self.receipts.get_or_create(&[("result", result.name())]).inc();
    }

    /// Counts a due occurrence by its result.
    pub fn count_occurrence(&self, result: OccurrenceResult) {
        self.occurrences.get_or_create(&[("result", result.name())]).inc();
    }

    /// Counts an attempt to notify as successful or failed.
    pub fn count_notification(&self, succeeded: bool) {
        let result = if succeeded { "taken" } else { "failed" };
        self.notifications.get_or_create(&[("result", result)]).inc();
    }

    /// Records the duration of a commit.
    pub fn observe_commit(&self, time: Duration) {
        self.commits.observe(time.as_secs_f64());
    }

    /// Encodes all metrics for Prometheus, with figures from the ledger.
    ///
    /// # Errors
    /// Never, with these types of counters.
    pub fn encode_text(&self, figures: &LedgerFigures) -> Result<String, std::fmt::Error> {
        let _guard = self.encoding.lock().unwrap_or_else(PoisonError::into_inner);
        self.messages.clear();
        for ((gateway, state), count) in &figures.messages {
            let labels = [("gateway", gateway.clone()), ("state", (*state).to_owned())];
            self.messages.get_or_create(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        self.runs.clear();
        for (state, count) in &figures.runs {
            self.runs.get_or_create(&[("state", *state)]).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        self.taken.clear();
        self.allowed.clear();
        for AccountUse { account, taken, allowed } in &figures.accounts {
            self.taken.get_or_create(&[("account", account.clone())]).inc_by(*taken);
            self.allowed.get_or_create(&[("account", account.clone())]).set(*allowed);
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// What this process did with an incoming receipt, as counted in the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReceiptResult {
    /// The receipt was new, and is now in the ledger.
    Stored,
    /// The receipt was already known.
    Repeated,
    /// The receipt arrived at an address that is not signed by this program.
    Forged,
    /// The receipt names another message than its address does.
    Contradicting,
    /// The receipt arrived at the account's own address and will be verified.
    Notice,
    /// The receipt is about an unknown message.
    Unknown,
    /// The receipt cannot be read.
    Unreadable,
    /// The sender of the receipt exceeded the rate limit.
    Slowed,
    /// The ledger could not store the receipt.
    NotStored,
}

impl ReceiptResult {
    fn name(self) -> &'static str {
        match self {
            Self::Stored => "kept",
            Self::Repeated => "repeated",
            Self::Forged => "forged",
            Self::Contradicting => "contradicting",
            Self::Notice => "notice",
            Self::Unknown => "unknown",
            Self::Unreadable => "unreadable",
            Self::Slowed => "slowed",
            Self::NotStored => "not_kept",
        }
    }
}

/// The result of an occurrence of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OccurrenceResult {
    /// The run of the occurrence began.
    Fired,
    /// The occurrence is later than the grace period allows.
    Missed,
    /// The previous run was still active.
    StillRunning,
    /// The campaign was changed since its activation.
    Changed,
    /// The run of the occurrence could not begin.
    Refused,
}

impl OccurrenceResult {
    fn name(self) -> &'static str {
        match self {
            Self::Fired => "fired",
            Self::Missed => "missed",
            Self::StillRunning => "still_running",
            Self::Changed => "changed",
            Self::Refused => "refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::metrics::*;

    #[test]
    fn metrics_text_has_counters_and_ledger_figures() {
        let metrics = Metrics::default();
        metrics.count_receipt(ReceiptResult::Stored);
        metrics.count_receipt(ReceiptResult::Stored);
        metrics.count_receipt(ReceiptResult::Forged);
        metrics.count_occurrence(OccurrenceResult::Missed);
        metrics.count_notification(false);
        metrics.observe_commit(Duration::from_millis(3));
        let mut figures = LedgerFigures::default();
        figures.messages.insert(("production".to_owned(), "accepted"), 7);
        figures.runs.insert("sending", 1);
        figures.accounts.push(AccountUse { account: "a.example".to_owned(), taken: 12, allowed: 2.5 });
        let text = metrics.encode_text(&figures).unwrap();
        for line in [
            "campaign_receipts_total{result=\"kept\"} 2",
            "campaign_receipts_total{result=\"forged\"} 1",
            "campaign_occurrences_total{result=\"missed\"} 1",
            "campaign_notifications_total{result=\"failed\"} 1",
            "campaign_ledger_commit_seconds_bucket{le=\"0.002\"} 0",
            "campaign_ledger_commit_seconds_bucket{le=\"0.005\"} 1",
            "campaign_messages{gateway=\"production\",state=\"accepted\"} 7",
            "campaign_runs{state=\"sending\"} 1",
            "campaign_account_operations_total{account=\"a.example\"} 12",
            "campaign_account_allowed_per_second{account=\"a.example\"} 2.5",
        ] {
            assert!(text.lines().any(|found| found == line), "no `{line}` in:\n{text}");
        }
        let later = metrics.encode_text(&LedgerFigures::default()).unwrap();
        assert!(
            !later.contains("production") && later.contains("campaign_receipts_total"),
            "an encoding replaces the one before"
        );
    }
}
