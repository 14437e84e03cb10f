//! What the pages of files have in common: figures, who is left out, where a campaign goes.

use serde::Serialize;

use super::messages::LeftOutView;
use crate::ledger::ExcludedRows;
use crate::runs::Inputs;
use crate::web::words::PageWords;

/// How many reasons are named; the rest are counted together.
const MAX_REASONS: usize = 12;

/// Who is left out for one reason.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LeftOutCount {
    #[serde(flatten)]
    why: LeftOutView,
    rows: u64,
}

/// Who is left out, by reason.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct LeftOutTable {
    reasons: Vec<LeftOutCount>,
    /// How many are left out for reasons that are not named.
    others: u64,
    /// How many are left out at all.
    pub(super) all: u64,
}

impl LeftOutTable {
    pub(super) fn from_left_out(words: &PageWords, left_out: &ExcludedRows) -> Self {
        let sets = left_out.sets().filter(|(_, _, rows)| !rows.is_empty());
        let count = |(state, reason, rows): (_, &str, &roaring::RoaringBitmap)| LeftOutCount {
            why: LeftOutView::from_reason(words, state, reason),
            rows: rows.len(),
        };
        let mut reasons: Vec<LeftOutCount> = sets.map(count).collect();
        reasons.sort_by_key(|count| std::cmp::Reverse(count.rows));
        let all = reasons.iter().map(|count| count.rows).sum();
        let named = reasons.iter().take(MAX_REASONS).map(|count| count.rows).sum::<u64>();
        reasons.truncate(MAX_REASONS);
        Self { reasons, others: all - named, all }
    }
}

/// The figures at the top of a page.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CampaignFigures {
    pub(super) rows: u64,
    pub(super) messages: u64,
    pub(super) parts: u64,
    pub(super) left_out: u64,
    pub(super) cost: Option<String>,
}

/// Where a campaign goes, in words.
pub(super) fn describe_destination(words: &PageWords, inputs: &Inputs) -> String {
    match inputs.destination.profile() {
        Some(profile) => words.say_with("way.live", &[("gateway", &profile.name), ("host", &profile.format_hosts())]),
        None => words.say("way.rehearsal").to_owned(),
    }
}
