//! The pages of opt-outs and of replies that look like opt-outs, with their cached data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use roaring::RoaringTreemap;
use serde::Serialize;

use super::caches::{CachePolicy, SingleFlightCache};
use super::page_error::PageError;
use super::request::{PageRequest, encode_path_segment};
use super::run::done_message;
use crate::web::charts::{Bar, scale_bars};
use campaign_engine::report::{UnclearReply, find_unclear_replies, load_display_zone};
use campaign_ledger::{Ledger, LedgerError, OptOutFilter, OptOutRecord, OptOutScope, Run, RunFilter};

#[derive(Serialize)]
struct OptOutsPageView {
    /// The confirmation of the last action.
    done: Option<String>,
    opt_outs: Option<OptOutsView>,
    /// The reason a part of the suppression list cannot be read.
    problem: Option<String>,
}

#[derive(Serialize)]
struct RepliesPageView {
    replies: Option<RepliesView>,
}

#[derive(Serialize)]
struct OptOutsView {
    of_marketing: u64,
    of_campaigns: u64,
    /// The number of recipients who opted out on each of the last days, latest day first.
    days: Vec<Bar>,
}

/// Replies that look like opt-outs but were not recorded as such.
#[derive(Serialize)]
struct RepliesView {
    all: usize,
    newest: Vec<ReplyLine>,
}

#[derive(Serialize)]
struct ReplyLine {
    at: String,
    to: String,
    text: String,
    run: String,
    path: String,
}

/// Shows the number of opt-outs, and the forms that change the list.
pub(super) async fn show_opt_outs(request: PageRequest) -> Response {
    let view = async {
        let counts =
            request.pages.opt_outs.read_opt_out_days(&request.pages.adapters.ledger, request.pages.now()).await;
        let (counts, problem) = match counts {
            Ok(counts) => (counts, None),
            Err(error) if error.concerns_records() => (None, Some(error.describe_damage())),
            Err(error) => return Err(error.into()),
        };
        let opt_outs = counts.map(|counts| opt_outs_view(&request, &counts));
        Ok(OptOutsPageView { done: done_message(&request), opt_outs, problem })
    };
    let view: Result<_, PageError> = view.await;
    request.respond("pages/opt_outs.html", view)
}

/// Shows the replies that look like opt-outs but were not recorded as opt-outs.
pub(super) async fn show_replies(mut request: PageRequest) -> Response {
    let view = async {
        let ledger = request.pages.adapters.ledger.clone();
        let replies = request.pages.opt_outs.read_replies(&ledger, request.pages.now()).await?;
        if let Some(replies) = &replies {
            request.use_common_zone(replies.newest.iter().map(|review| &review.zone));
        }
        Ok(RepliesPageView { replies: replies.map(|replies| replies_view(&request, &replies)) })
    };
    let view: Result<_, PageError> = view.await;
    request.respond("pages/replies.html", view)
}

fn opt_outs_view(request: &PageRequest, counts: &OptOutDays) -> OptOutsView {
    let day = |(date, recipients): (&Date, &u64)| Bar::new(request.words().format_day(*date), *recipients, "whole");
    let days = scale_bars(counts.days.iter().rev().map(day).collect(), None);
    OptOutsView { of_marketing: counts.of_marketing, of_campaigns: counts.of_campaigns, days }
}

fn replies_view(request: &PageRequest, replies: &RepliesToReview) -> RepliesView {
    let line = |ReplyToReview { run, zone, reply }: &ReplyToReview| ReplyLine {
        at: request.format_moment_in(zone, reply.at),
        to: request.format_number(reply.phone),
        text: request.mask_written_text(&reply.text, Some(reply.phone)),
        path: format!("/runs/{}/rows/{}", encode_path_segment(run), reply.row),
        run: run.clone(),
    };
    RepliesView { all: replies.all, newest: replies.newest.iter().map(line).collect() }
}

/// The number of days whose opt-outs are shown.
pub(super) const SHOWN_DAYS: i64 = 30;
/// The number of records per read.
const BATCH_SIZE: u32 = 10_000;
/// The maximum age of a run whose replies are read.
const MAX_RUN_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The maximum number of runs whose replies are read.
const MAX_RUNS: usize = 50;
/// The number of replies that are shown.
const SHOWN_REPLIES: usize = 20;

/// The policy for opt-outs and replies: reading them takes at most 1/50 of the time.
const OPT_OUT_POLICY: CachePolicy =
    CachePolicy { min_ttl: Duration::from_secs(10), ttl_factor: 50, timeout: Duration::from_secs(4), max_entries: 1 };

/// Cached opt-outs and replies.
pub(super) struct OptOutCache {
    days: SingleFlightCache<OptOutDays>,
    replies: SingleFlightCache<RepliesToReview>,
}

impl Default for OptOutCache {
    fn default() -> Self {
        Self { days: SingleFlightCache::new(OPT_OUT_POLICY), replies: SingleFlightCache::new(OPT_OUT_POLICY) }
    }
}

/// Figures of the suppression list.
#[derive(Clone, Debug, Default)]
pub(super) struct OptOutDays {
    /// The number of recipients who opted out on each of the last days. Days without an opt-out are missing.
    pub(super) days: BTreeMap<Date, u64>,
    /// The number of recipients who opted out of all marketing messages, or of all messages.
    pub(super) of_marketing: u64,
    /// The number of other recipients who opted out of single campaigns.
    pub(super) of_campaigns: u64,
}

/// Replies that look like opt-outs but were not recorded as such.
#[derive(Clone, Debug, Default)]
pub(super) struct RepliesToReview {
    /// The newest replies.
    pub(super) newest: Vec<ReplyToReview>,
    /// The number of replies.
    pub(super) all: usize,
}

/// A reply with the name and the time zone of its run.
#[derive(Clone, Debug)]
pub(super) struct ReplyToReview {
    pub(super) run: String,
    pub(super) zone: TimeZone,
    pub(super) reply: UnclearReply,
}

impl OptOutCache {
    /// Returns the opt-outs by day, or `None` while they are still being counted.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn read_opt_out_days(
        &self,
        ledger: &Arc<dyn Ledger>,
        now: Timestamp,
    ) -> Result<Option<Arc<OptOutDays>>, LedgerError> {
        let ledger = Arc::clone(ledger);
        self.days.get_or_load((), (), async move { count_opt_outs(ledger.as_ref(), now).await }).await
    }

    /// Returns the replies to review, or `None` while the replies are still being read.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub(super) async fn read_replies(
        &self,
        ledger: &Arc<dyn Ledger>,
        now: Timestamp,
    ) -> Result<Option<Arc<RepliesToReview>>, LedgerError> {
        let ledger = Arc::clone(ledger);
        self.replies.get_or_load((), (), async move { read_replies_to_review(ledger.as_ref(), now).await }).await
    }

    /// Clears the cached values, which are outdated after a page changes the suppression list.
    pub(super) async fn invalidate(&self) {
        self.days.clear().await;
        self.replies.clear().await;
    }
}

async fn count_opt_outs(ledger: &dyn Ledger, now: Timestamp) -> Result<OptOutDays, LedgerError> {
    let zone = TimeZone::system();
    let today = now.to_zoned(zone.clone()).date();
    let since = today.checked_sub((SHOWN_DAYS - 1).days()).unwrap_or(today);
    // A recipient can be on the list several times, with different scopes.
    let (mut of_marketing, mut of_campaigns) = (RoaringTreemap::new(), RoaringTreemap::new());
    let (mut days, mut next) = (BTreeMap::<Date, RoaringTreemap>::new(), None);
    loop {
        let part = ledger.list_opt_outs(OptOutFilter::Listed { behind: next, at_most: BATCH_SIZE }).await?;
        for OptOutRecord { opt_out, .. } in &part.entries {
            let day = opt_out.at.to_zoned(zone.clone()).date();
            let recipient = opt_out.who.to_u64();
            match opt_out.scope {
                OptOutScope::Marketing | OptOutScope::All => of_marketing.insert(recipient),
                OptOutScope::Campaign(_) => of_campaigns.insert(recipient),
            };
            if day >= since {
                days.entry(day).or_default().insert(recipient);
            }
        }
        match part.next {
            Some(following) => next = Some(following),
            None => break,
        }
    }
    of_campaigns -= &of_marketing;
    let days = days.into_iter().map(|(day, recipients)| (day, recipients.len())).collect();
    Ok(OptOutDays { days, of_marketing: of_marketing.len(), of_campaigns: of_campaigns.len() })
}

async fn read_replies_to_review(ledger: &dyn Ledger, now: Timestamp) -> Result<RepliesToReview, LedgerError> {
    // A damaged run is shown on the page of runs; the replies to other runs are still shown here.
    let stored = ledger.list_stored_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let mut runs: Vec<Run> = stored.into_iter().filter_map(Result::ok).collect();
    runs.retain(|run| run.receipts > 0 && run.purged_at.is_none() && now.duration_since(run.began_at) < MAX_RUN_AGE);
    runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.began_at));
    let mut replies = Vec::new();
    for run in runs.iter().take(MAX_RUNS) {
        let name = run.name();
        let unclear = match find_unclear_replies(ledger, run).await {
            Err(error) if error.concerns_records() => continue,
            result => result?,
        };
        if unclear.is_empty() {
            continue;
        }
        let zone = load_display_zone(ledger, run).await;
        let with_run = |reply| ReplyToReview { run: name.clone(), zone: zone.clone(), reply };
        replies.extend(unclear.into_iter().map(with_run));
    }
    replies.sort_by_key(|review| std::cmp::Reverse(review.reply.at));
    let all = replies.len();
    replies.truncate(SHOWN_REPLIES);
    Ok(RepliesToReview { newest: replies, all })
}
