//! How a campaign is sent, as a process has to know it that sends a run of it and has no campaign file.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{Campaign, DeliverySettings, Profile, SendingDeadline, SendingWindow};
use crate::calendar::DailyLimits;
use crate::domain::{Budget, FrequencyCap};

/// How a campaign is sent; may change between two starts of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendingTerms {
    /// How fast and how carefully.
    pub delivery: DeliverySettings,
    /// The most that its edition may use.
    pub limits: Budget,
    /// How many messages of its edition leave on a day.
    pub per_day: Option<DailyLimits>,
    /// When its messages may leave.
    pub window: Option<SendingWindow>,
    /// When nothing leaves any more.
    pub until: Option<SendingDeadline>,
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
    pub cap: Option<FrequencyCap>,
}

impl SendingTerms {
    /// Those of a campaign, by a call that keeps going in spite of rejections or not, and waits for its hours or not.
    #[must_use]
    pub fn from_campaign(campaign: &Campaign, keep_going: bool, waits: bool) -> Self {
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
    pub fn to_worker_terms(&self, profile: Option<&Profile>) -> Self {
        let policy = profile.map(|profile| SharedPolicy { window: profile.window.clone(), cap: profile.cap });
        Self { policy: policy.unwrap_or_default(), ..self.clone() }
    }

    /// The windows that hold for it through a profile.
    pub fn effective_windows<'t>(&'t self, profile: Option<&'t Profile>) -> impl Iterator<Item = &'t SendingWindow> {
        SendingWindow::effective_windows(self.window.as_ref(), profile).chain(&self.policy.window)
    }

    /// The moment from which nothing leaves of a run that began then.
    #[must_use]
    pub fn end_time(&self, home: &TimeZone, began_at: Timestamp) -> Option<Timestamp> {
        match self.until? {
            until @ SendingDeadline::At(_) => until.to_timestamp(home),
            SendingDeadline::After(time) => Some(began_at.checked_add(time).unwrap_or(Timestamp::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::manifest::{CampaignDay, GatewaySearch, load_campaign, load_gateways};

    #[test]
    fn worker_terms_keep_the_profile_policy() {
        let folder = TempDir::new().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        let profile = "main:\n  base_url: http://127.0.0.1:9\n  api_key: { env: KEY }\n  rate: 1/s\n";
        fs::write(&profiles, format!("{profile}  policy: {{ window: 09:00-20:00, cap: 3/7d }}\n")).unwrap();
        fs::write(&file, "timezone: Europe/Kyiv\nrecipients: { file: a.csv }\nchannels: [hlr]\n").unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        let profile = gateways.find_profile("main").unwrap();
        let campaign = load_campaign(&file, CampaignDay::Of(Timestamp::now())).value.unwrap();
        let terms = SendingTerms::from_campaign(&campaign, false, true);
        let told = serde_json::to_string(&terms.to_worker_terms(Some(profile))).unwrap();
        let read: SendingTerms = serde_json::from_str(&told).unwrap();
        // The worker's own profile has no policy.
        assert_eq!(read.effective_windows(None).collect::<Vec<_>>(), [profile.window.as_ref().unwrap()]);
        assert_eq!(read.policy.cap, profile.cap);
        // Terms of an earlier version have no policy.
        let earlier = told.replace(",\"policy\":", ",\"other\":");
        assert_eq!(serde_json::from_str::<SendingTerms>(&earlier).unwrap(), terms);
    }
}
