//! A time after which nothing leaves, and that is over before anything did.

use jiff::Timestamp;

use crate::finding::{Finding, rules};
use crate::manifest::Campaign;

/// What is said where `until` has come before a run begins, which would skip everybody.
#[must_use]
pub fn until_over(campaign: &Campaign, now: Timestamp) -> Option<Finding> {
    let until = campaign.until_at().filter(|until| *until <= now)?;
    let time = until.to_zoned(campaign.home()).strftime("%Y-%m-%d %H:%M").to_string();
    let finding = Finding::new(&rules::UNTIL, format!("`until` has passed: {time}"));
    Some(finding.help("write a later date, or a duration such as `12h`").at(campaign.places.of_key("delivery.until")))
}
