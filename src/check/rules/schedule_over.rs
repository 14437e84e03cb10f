//! Schedules without future dates.

use super::dates::{place, place_of_times};
use crate::check::timing::TimedCampaign;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "schedule-over",
    "A schedule without future dates sends nothing more. That is fine for a campaign that was sent, but a mistake in a new one.",
    "Set a future date; `campaign schedule next` then shows when the campaign is due. `campaign schedule add` refuses a schedule without one. `run --now` sends immediately; before that, check in `campaign status` that the campaign was not sent.",
);

const HELP: &str = "to send it, set a future date; `campaign schedule next` then shows it. `run --now` sends it \
                    immediately; first check in `campaign status` that it was not sent";

/// A warning about a schedule without future dates.
pub(in crate::check) fn schedule_over(timed: &TimedCampaign<'_>) -> Finding {
    let once = timed.campaign.schedule.as_ref().and_then(|schedule| schedule.timing.once());
    let (message, place) = match once {
        Some(once) => {
            let message = format!("`at` has passed: {}", once.strftime("%a %Y-%m-%d %H:%M"));
            (message, place_of_times(timed))
        }
        None => ("`ends` has passed: the schedule has no future dates".to_owned(), place(timed, &["schedule.ends"])),
    };
    Finding::new(&RULE, message).help(HELP).at(place)
}
