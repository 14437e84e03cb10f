//! How the people of a list are divided, in lines: who is left out and why, and how many get which variant. Pure.

use roaring::RoaringBitmap;

use crate::check::Survey;
use crate::ledger::ExcludedRows;
use crate::manifest::CampaignBrief;
use crate::report::format_thousands;

/// Who is left out and why, a line per reason.
pub(super) fn describe_left_out(left_out: &ExcludedRows) -> Vec<String> {
    let mut sets: Vec<_> = left_out.sets().filter(|(_, _, rows)| !rows.is_empty()).collect();
    sets.sort_by_key(|(_, _, rows)| std::cmp::Reverse(rows.len()));
    let shown = sets.iter().take(8).map(|(state, reason, rows)| {
        format!("{} {state}: {reason} (first in row {})", format_thousands(rows.len()), rows.min().unwrap_or_default())
    });
    shown.collect()
}

/// How many recipients of these rows get each variant; empty without variants.
pub(in crate::cli) fn describe_variants(
    brief: &CampaignBrief,
    survey: &Survey,
    rows: &RoaringBitmap,
) -> Option<String> {
    let of_arm = |arm: usize| survey.by_size.iter().filter(move |(size, _)| size.arm == arm);
    let number = |arm: usize| of_arm(arm).map(|(_, sized)| sized.intersection_len(rows)).sum();
    let arms = brief.list_arms().into_iter().enumerate();
    let each = arms.filter_map(|(index, arm)| Some(format!("{} {}", format_thousands(number(index)), arm.name?)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join(" · "))
}
