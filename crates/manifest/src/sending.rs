//! The terms and the destination of a run, for processes that do not have the campaign file.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{
    Campaign, CampaignBrief, DeliverySettings, Profile, Rate, SANDBOX, SendingDeadline, SendingWindow, SuppressionFile,
};
use campaign_core::calendar::DailyLimits;
use campaign_core::domain::{Budget, CountrySet, FrequencyCap, intersect_countries};

/// The sending options of a campaign; they can change when a run is resumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendingTerms {
    /// Speed and safety settings.
    pub delivery: DeliverySettings,
    /// The budget of the edition.
    pub limits: Budget,
    /// The maximum number of messages of the edition per day.
    pub per_day: Option<DailyLimits>,
    /// The sending window.
    pub window: Option<SendingWindow>,
    /// The end of all sending.
    pub until: Option<SendingDeadline>,
    /// Whether messages get a webhook address, if the profile has one.
    pub webhooks: bool,
    /// Whether rejections are only reported and do not stop the run.
    pub keep_going: bool,
    /// Whether the run waits until messages can be sent; otherwise it stops.
    pub waits: bool,
    /// The policy under which a shared run was started. For other runs, it lacks the profile's window, cap and
    /// countries.
    #[serde(default)]
    pub policy: SharedPolicy,
}

/// The policy under which a shared run was started: that of the campaign, and of the profile on the machine that
/// started the run. A worker applies it in addition to the policy of its own profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedPolicy {
    /// The sending window.
    pub window: Option<SendingWindow>,
    /// The frequency cap over all campaigns.
    pub cap: Option<FrequencyCap>,
    /// Whether recipients without consent were skipped. Runs of earlier versions had no such condition.
    #[serde(default)]
    pub needs_consent: bool,
    /// The countries that messages may reach. `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub countries: Option<CountrySet>,
    /// The suppression files of the campaign and of the profile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppress: Vec<SuppressionFile>,
}

impl SendingTerms {
    /// The terms for sending a campaign through a profile. With `keep_going`, the run ignores rejections; with `waits`,
    /// it waits for its window.
    pub fn from_campaign(campaign: &Campaign, profile: Option<&Profile>, keep_going: bool, waits: bool) -> Self {
        let policy = SharedPolicy {
            needs_consent: campaign.needs_consent(profile),
            suppress: campaign.suppression_files(profile).cloned().collect(),
            ..SharedPolicy::default()
        };
        Self {
            delivery: campaign.delivery,
            limits: campaign.limits.clone(),
            per_day: campaign.per_day.clone(),
            window: campaign.window.clone(),
            until: campaign.until,
            webhooks: campaign.receipts.uses_webhooks(),
            keep_going,
            waits,
            policy,
        }
    }

    /// A copy of the terms for workers, with the policy of the profile.
    pub fn to_worker_terms(&self, profile: Option<&Profile>) -> Self {
        let mut terms = self.clone();
        if let Some(profile) = profile {
            terms.policy.window.clone_from(&profile.window);
            terms.policy.cap = profile.cap;
            terms.policy.countries.clone_from(&profile.countries);
        }
        terms
    }

    /// The windows of the run, of the profile, and of the shared policy.
    pub fn effective_windows<'t>(&'t self, profile: Option<&'t Profile>) -> impl Iterator<Item = &'t SendingWindow> {
        SendingWindow::effective_windows(self.window.as_ref(), profile).chain(&self.policy.window)
    }

    /// The countries that messages of this campaign may reach through a profile. `None` if all countries are allowed.
    pub fn allowed_countries(&self, brief: &CampaignBrief, profile: Option<&Profile>) -> Option<CountrySet> {
        intersect_countries([brief.allowed_countries(profile).as_ref(), self.policy.countries.as_ref()])
    }

    /// The time at which sending ends for a run that began at `began_at`. `None` if the run has no deadline.
    pub fn end_time(&self, home: &TimeZone, began_at: Timestamp) -> Option<Timestamp> {
        match self.until? {
            until @ SendingDeadline::At(_) => until.to_timestamp(home),
            SendingDeadline::After(time) => Some(began_at.checked_add(time).unwrap_or(Timestamp::MAX)),
        }
    }
}

/// The destination of messages.
#[derive(Clone, Debug)]
pub enum Destination {
    /// The built-in sandbox; recipients get no messages.
    Rehearsal,
    /// Real recipients, through the gateway of this profile.
    Live(Box<Profile>),
}

impl Destination {
    /// Whether messages go to a gateway, rather than to the built-in sandbox.
    pub fn is_live(&self) -> bool {
        matches!(self, Destination::Live(_))
    }

    /// The profile of a live destination. `None` for a rehearsal.
    pub fn profile(&self) -> Option<&Profile> {
        match self {
            Destination::Rehearsal => None,
            Destination::Live(profile) => Some(profile),
        }
    }

    /// The profile of a live destination on another machine, which needs confirmation and a single sending host.
    pub fn remote_profile(&self) -> Option<&Profile> {
        self.profile().filter(|profile| !profile.is_loopback())
    }

    /// Whether the destination is live and on this machine, where recipients are not real.
    pub fn is_loopback(&self) -> bool {
        self.profile().is_some_and(Profile::is_loopback)
    }

    /// The name of the profile, or [`SANDBOX`] for a rehearsal.
    pub fn gateway_name(&self) -> &str {
        self.profile().map_or(SANDBOX, |profile| &profile.name)
    }

    /// The account to which the rate limit and the guard apply; the built-in sandbox counts as an account.
    pub fn account_name(&self) -> &str {
        self.profile().map_or(SANDBOX, |profile| &profile.account)
    }

    /// The rate limit of the account.
    pub fn account_rate(&self) -> Rate {
        self.profile().map_or(Rate::Unlimited, |profile| profile.rate)
    }

    /// The maximum number of operations in an envelope.
    pub fn max_envelope_size(&self) -> usize {
        self.profile().map_or(usize::MAX, Profile::max_envelope_size)
    }

    /// The delivery settings within the limits of the profile.
    pub fn limit_delivery(&self, delivery: DeliverySettings) -> DeliverySettings {
        self.profile().map_or(delivery, |profile| delivery.with_profile_limits(profile))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::{CampaignDay, GatewaySearch, PathScope, load_campaign, load_campaign_within, load_gateways};

    #[test]
    fn worker_terms_keep_the_profile_policy() {
        let folder = TempDir::new().unwrap();
        let (file, profiles) = (folder.path().join("a.yaml"), folder.path().join("gateways.yaml"));
        let profile = "main:\n  base_url: http://127.0.0.1:9\n  api_key: { env: KEY }\n  rate: 1/s\n";
        fs::write(&profiles, format!("{profile}  policy: {{ window: 09:00-20:00, cap: 3/7d, countries: [UA] }}\n"))
            .unwrap();
        fs::write(&file, "timezone: Europe/Kyiv\nrecipients: { file: a.csv }\nchannels: [hlr]\n").unwrap();
        let search = GatewaySearch { explicit: Some(profiles), ..GatewaySearch::default() };
        let gateways = load_gateways(&search).value.unwrap();
        let profile = gateways.find_profile("main").unwrap();
        let campaign = load_campaign(&file, CampaignDay::Of(Timestamp::now())).value.unwrap();
        let terms = SendingTerms::from_campaign(&campaign, None, false, true);
        let stored = serde_json::to_string(&terms.to_worker_terms(Some(profile))).unwrap();
        let restored: SendingTerms = serde_json::from_str(&stored).unwrap();
        // The worker's own profile has no policy.
        assert_eq!(restored.effective_windows(None).collect::<Vec<_>>(), [profile.window.as_ref().unwrap()]);
        assert_eq!((restored.policy.cap, &restored.policy.countries), (profile.cap, &profile.countries));
        assert_eq!(restored.allowed_countries(&campaign.brief, None), profile.countries);
        // Terms of an earlier version have no policy.
        let earlier = stored.replace(",\"policy\":", ",\"other\":");
        assert_eq!(serde_json::from_str::<SendingTerms>(&earlier).unwrap(), terms);
    }

    #[test]
    fn stored_terms_keep_the_suppression_files() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().canonicalize().unwrap().join("a.yaml");
        let confined = PathScope::within(folder.path()).unwrap();
        for (purpose, scope, number) in
            [("marketing", PathScope::Anywhere, 1), ("marketing", confined, 1), ("service", PathScope::Anywhere, 0)]
        {
            let recipients = "{ file: a.csv, suppress: [{ file: stop.csv, phone: Tel, region: UA }] }";
            fs::write(&file, format!("purpose: {purpose}\nrecipients: {recipients}\nchannels: [hlr]\n")).unwrap();
            let campaign = load_campaign_within(&file, CampaignDay::Of(Timestamp::now()), scope).value.unwrap();
            let stored = serde_json::to_string(&SendingTerms::from_campaign(&campaign, None, false, true)).unwrap();
            let restored: SendingTerms = serde_json::from_str(&stored).unwrap();
            assert_eq!(restored.policy.suppress, campaign.suppress[..number], "{purpose}");
        }
    }
}
