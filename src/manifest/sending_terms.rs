//! How a campaign is sent, as a process has to know it that sends a run of it and has no campaign file.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{Campaign, Delivery, Profile, SendingWindow, Until};
use crate::calendar::PerDay;
use crate::domain::Budget;

/// How a campaign is sent; may change between two starts of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendingTerms {
    /// How fast and how carefully.
    pub delivery: Delivery,
    /// The most that its edition may use.
    pub limits: Budget,
    /// How many messages of its edition leave on a day.
    pub per_day: Option<PerDay>,
    /// When its messages may leave.
    pub window: Option<SendingWindow>,
    /// When nothing leaves any more.
    pub until: Option<Until>,
    /// Whether its messages get an address for webhooks, where the profile has one.
    pub webhooks: bool,
    /// Whether rejections are only reported.
    pub keep_going: bool,
    /// Whether it waits until something may leave; else it stops.
    pub waits: bool,
}

impl SendingTerms {
    /// Those of a campaign, by a call that keeps going in spite of rejections or not, and waits for its hours or not.
    #[must_use]
    pub fn of(campaign: &Campaign, keep_going: bool, waits: bool) -> Self {
        Self {
            delivery: campaign.delivery,
            limits: campaign.limits.clone(),
            per_day: campaign.per_day.clone(),
            window: campaign.window.clone(),
            until: campaign.until,
            webhooks: campaign.receipts.takes_webhooks(),
            keep_going,
            waits,
        }
    }

    /// The windows that hold for it through a profile.
    pub fn windows<'t>(&'t self, profile: Option<&'t Profile>) -> impl Iterator<Item = &'t SendingWindow> {
        SendingWindow::holding(self.window.as_ref(), profile)
    }

    /// The moment from which nothing leaves of a run that began then.
    #[must_use]
    pub fn until(&self, home: &TimeZone, began_at: Timestamp) -> Option<Timestamp> {
        match self.until? {
            until @ Until::At(_) => until.at(home),
            Until::After(time) => Some(began_at.checked_add(time).unwrap_or(Timestamp::MAX)),
        }
    }
}
