//! A time after which nothing leaves, and that is over before anything did.

use jiff::Timestamp;

use crate::finding::{Finding, rules};
use crate::manifest::Campaign;

/// What is said where `until` has come before a run begins, which would skip everybody.
#[must_use]
pub fn check_until_over(campaign: &Campaign, now: Timestamp) -> Option<Finding> {
    let until = campaign.deadline().filter(|until| *until <= now)?;
    let time = until.to_zoned(campaign.home_zone()).strftime("%Y-%m-%d %H:%M").to_string();
    let finding = Finding::new(&rules::UNTIL, format!("`until` has passed: {time}"));
    Some(
        finding
            .help("write a later date, or a duration such as `12h`")
            .at(campaign.places.locate_key("delivery.until")),
    )
}
