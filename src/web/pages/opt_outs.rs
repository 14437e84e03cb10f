//! Opt-outs on the front page: how many there were on each of the last days, and the replies that a person should read.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};

use super::remembered::CachedValue;
use crate::ledger::{Ledger, LedgerError, Run, RunFilter};
use crate::report::{UnclearReply, find_unclear_replies, load_display_zone};

/// How many days are shown.
pub(super) const SHOWN_DAYS: i64 = 30;
/// How many records are read at once.
const BATCH_SIZE: u32 = 10_000;
/// How old a run is at most whose replies are read, and how many runs those are at most.
const MAX_RUN_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);
const MAX_RUNS: usize = 50;
/// How many replies are shown.
const SHOWN_REPLIES: usize = 20;

/// Opt-outs and replies, as they were a moment ago.
#[derive(Default)]
pub(super) struct OptOutCache {
    days: CachedValue<OptOutDays>,
    replies: CachedValue<RepliesToReview>,
}

/// Who is on the list.
#[derive(Clone, Debug, Default)]
pub(super) struct OptOutDays {
    /// How many came on each of the last days, the first first; only days with an opt-out.
    pub(super) days: BTreeMap<Date, u64>,
    /// How many are on the list.
    pub(super) all: u64,
}

/// Replies that look like an opt-out and were not taken as one.
#[derive(Clone, Debug, Default)]
pub(super) struct RepliesToReview {
    /// The newest.
    pub(super) newest: Vec<ReplyToReview>,
    /// How many there are.
    pub(super) all: usize,
}

/// A reply with the name and the clock of its run.
#[derive(Clone, Debug)]
pub(super) struct ReplyToReview {
    pub(super) run: String,
    pub(super) zone: TimeZone,
    pub(super) reply: UnclearReply,
}

impl OptOutCache {
    /// The opt-outs by day; nothing while counting takes long.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read_days(
        &self,
        ledger: &Arc<dyn Ledger>,
        now: Timestamp,
    ) -> Result<Option<Arc<OptOutDays>>, LedgerError> {
        let ledger = Arc::clone(ledger);
        self.days.get_or_make(async move { count_opt_outs(ledger.as_ref(), now).await }).await
    }

    /// The replies to review; nothing while reading them takes long.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub(super) async fn read_replies(
        &self,
        ledger: &Arc<dyn Ledger>,
        now: Timestamp,
    ) -> Result<Option<Arc<RepliesToReview>>, LedgerError> {
        let ledger = Arc::clone(ledger);
        self.replies.get_or_make(async move { read_replies_to_review(ledger.as_ref(), now).await }).await
    }

    /// Reads both again at the next visit, since a page recorded an opt-out.
    pub(super) async fn invalidate(&self) {
        self.days.invalidate().await;
        self.replies.invalidate().await;
    }
}

async fn count_opt_outs(ledger: &dyn Ledger, now: Timestamp) -> Result<OptOutDays, LedgerError> {
    let zone = TimeZone::system();
    let today = now.to_zoned(zone.clone()).date();
    let since = today.checked_sub((SHOWN_DAYS - 1).days()).unwrap_or(today);
    let (mut counted, mut behind) = (OptOutDays::default(), None);
    loop {
        let part = ledger.list_opt_outs(behind, BATCH_SIZE).await?;
        for opt_out in &part.entries {
            let day = opt_out.at.to_zoned(zone.clone()).date();
            counted.all += 1;
            if day >= since {
                *counted.days.entry(day).or_default() += 1;
            }
        }
        match part.next {
            Some(next) => behind = Some(next),
            None => return Ok(counted),
        }
    }
}

async fn read_replies_to_review(ledger: &dyn Ledger, now: Timestamp) -> Result<RepliesToReview, LedgerError> {
    // A damaged run is shown among the runs; the replies to others are shown all the same.
    let stored = ledger.list_stored_runs(RunFilter { live: true, ..RunFilter::all() }).await?;
    let mut runs: Vec<Run> = stored.into_iter().filter_map(Result::ok).collect();
    runs.retain(|run| run.receipts > 0 && run.purged_at.is_none() && now.duration_since(run.began_at) < MAX_RUN_AGE);
    runs.sort_unstable_by_key(|run| std::cmp::Reverse(run.began_at));
    let mut replies = Vec::new();
    for run in runs.iter().take(MAX_RUNS) {
        let name = run.name();
        let unclear = match find_unclear_replies(ledger, run).await {
            Err(error) if error.concerns_records() => continue,
            unclear => unclear?,
        };
        if unclear.is_empty() {
            continue;
        }
        let zone = load_display_zone(ledger, run).await;
        let of_run = |reply| ReplyToReview { run: name.clone(), zone: zone.clone(), reply };
        replies.extend(unclear.into_iter().map(of_run));
    }
    replies.sort_by_key(|review| std::cmp::Reverse(review.reply.at));
    let all = replies.len();
    replies.truncate(SHOWN_REPLIES);
    Ok(RepliesToReview { newest: replies, all })
}
