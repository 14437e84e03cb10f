//! A schedule whose dates are past.

use super::dates::{place, place_of_times};
use crate::check::timing::TimedCampaign;
use crate::finding::{Finding, Rule};

pub(super) static RULE: Rule = Rule::warning(
    "schedule-over",
    "A schedule whose dates are past sends nothing more. That is fine for a campaign that was sent, and a mistake for a new one.",
    "Write a date to come; `campaign schedule next` shows when the campaign is due then. `campaign schedule add` refuses a schedule without a date to come. `run --now` sends at once: look in `campaign status` first whether the campaign was sent.",
);

const HELP: &str = "to send it, write a date to come, which `campaign schedule next` then shows; `run --now` sends it \
                    at once: look in `campaign status` first whether it was sent";

/// What is said of a schedule without a date to come.
pub(in crate::check) fn schedule_over(timed: &TimedCampaign<'_>) -> Finding {
    let once = timed.campaign.schedule.as_ref().and_then(|schedule| schedule.timing.once());
    let (message, place) = match once {
        Some(once) => {
            let message = format!("`at` has passed: {}", once.strftime("%a %Y-%m-%d %H:%M"));
            (message, place_of_times(timed))
        }
        None => ("`ends` has passed: the schedule has no date to come".to_owned(), place(timed, &["schedule.ends"])),
    };
    Finding::new(&RULE, message).help(HELP).at(place)
}
