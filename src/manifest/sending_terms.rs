//! How a campaign is sent, as a process has to know it that sends a run of it and has no campaign file.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{Campaign, Delivery, Profile, SendingWindow, Until};
use crate::calendar::PerDay;
use crate::domain::{Budget, Cap};

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
    /// The policy of the profile where the run was shared out; nothing where it was not.
    #[serde(default)]
    pub policy: SharedPolicy,
}

/// What the profile says where a run was shared out. It holds for a worker besides what the worker's own profile says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedPolicy {
    /// When messages may leave.
    pub window: Option<SendingWindow>,
    /// How often a number is written to by all campaigns.
    pub cap: Option<Cap>,
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
            policy: SharedPolicy::default(),
        }
    }

    /// The same for workers, with the policy of the profile here.
    #[must_use]
    pub fn for_workers(&self, profile: Option<&Profile>) -> Self {
        let policy = profile.map(|profile| SharedPolicy { window: profile.window.clone(), cap: profile.cap });
        Self { policy: policy.unwrap_or_default(), ..self.clone() }
    }

    /// The windows that hold for it through a profile.
    pub fn windows<'t>(&'t self, profile: Option<&'t Profile>) -> impl Iterator<Item = &'t SendingWindow> {
        SendingWindow::holding(self.window.as_ref(), profile).chain(&self.policy.window)
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

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::manifest::{Day, GatewaySearch, load_campaign, load_gateways};

    #[test]
    fn terms_for_workers_keep_the_policy_of_the_profile() {
        let folder = TempDir::new().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        let profile = "main:\n  base_url: http://127.0.0.1:9\n  api_key: { env: KEY }\n  rate: 1/s\n";
        fs::write(&profiles, format!("{profile}  policy: {{ window: 09:00-20:00, cap: 3/7d }}\n")).unwrap();
        fs::write(&file, "timezone: Europe/Kyiv\nrecipients: { file: a.csv }\nchannels: [hlr]\n").unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        let profile = gateways.profile("main").unwrap();
        let campaign = load_campaign(&file, Day::Of(Timestamp::now())).value.unwrap();
        let terms = SendingTerms::of(&campaign, false, true);
        let told = serde_json::to_string(&terms.for_workers(Some(profile))).unwrap();
        let read: SendingTerms = serde_json::from_str(&told).unwrap();
        // The worker's own profile has no policy.
        assert_eq!(read.windows(None).collect::<Vec<_>>(), [profile.window.as_ref().unwrap()]);
        assert_eq!(read.policy.cap, profile.cap);
        // Terms of an earlier version have no policy.
        let earlier = told.replace(",\"policy\":", ",\"other\":");
        assert_eq!(serde_json::from_str::<SendingTerms>(&earlier).unwrap(), terms);
    }
}
