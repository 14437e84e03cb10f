//! Schedules without future dates.

use super::dates::{find_key_place, find_times_place};
use crate::check::timing::TimedCampaign;
use crate::finding::{Finding, Rule, RuleText};

pub(super) static RULE: Rule = Rule::warning(
    "schedule-over",
    RuleText {
        cause: "The schedule has no future dates. This is fine for a campaign that has already been sent, but a mistake in a \
                new one.",
        example: &["timezone: Europe/Kyiv", "schedule: { at: 2024-12-05 10:00 }"],
        fix: "set a future date, and check it with `campaign schedule next`; `run --now` sends immediately, so first \
              check in `campaign status` that the campaign has not been sent",
    },
);

const HELP: &str = "set a future date, and check it with `campaign schedule next`; to send immediately, use `run \
                    --now`, but first check in `campaign status` that the campaign has not been sent";

/// A warning about a schedule without future dates.
pub(in crate::check) fn schedule_over_finding(timed: &TimedCampaign<'_>) -> Finding {
    let once = timed.campaign.schedule.as_ref().and_then(|schedule| schedule.timing.single_time());
    let (message, place) = match once {
        Some(once) => {
            let message = format!("`at` has passed: {}", once.strftime("%a %Y-%m-%d %H:%M"));
            (message, find_times_place(timed))
        }
        None => (
            "`ends` has passed: the schedule has no future dates".to_owned(),
            find_key_place(timed, &["schedule.ends"]),
        ),
    };
    Finding::new(&RULE, message).help(HELP).at(place)
}
