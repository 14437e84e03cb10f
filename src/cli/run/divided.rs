//! How the people of a list are divided, in lines: who is left out and why, and how many get which variant. Pure.

use crate::check::Survey;
use crate::manifest::Brief;
use crate::report::thousands;
use crate::runs::ListSurvey;

/// Who is left out and why, a line per reason.
pub(in crate::cli) fn left_out(surveyed: &ListSurvey) -> Vec<String> {
    let mut sets: Vec<_> = surveyed.survey.left_out.sets().collect();
    sets.sort_by_key(|(_, _, rows)| std::cmp::Reverse(rows.len()));
    let shown = sets.iter().take(8).map(|(state, reason, rows)| {
        format!("{} {state}: {reason} (first in row {})", thousands(rows.len()), rows.min().unwrap_or_default())
    });
    shown.collect()
}

/// How many people get each variant; nothing without variants.
pub(in crate::cli) fn variants(brief: &Brief, survey: &Survey) -> Option<String> {
    let number =
        |arm: usize| survey.by_size.iter().filter(|(size, _)| size.arm == arm).map(|(_, rows)| rows.len()).sum();
    let arms = brief.arms().into_iter().enumerate();
    let each = arms.filter_map(|(index, arm)| Some(format!("{} {}", thousands(number(index)), arm.name?)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("variants: {}", each.join(" · ")))
}
