//! Where messages go: to nobody, or through the gateway of a profile.

use super::{DeliverySettings, Profile, Rate, SANDBOX};

/// Where messages go.
#[derive(Clone, Debug)]
pub enum Destination {
    /// To the built-in sandbox, so to nobody.
    Rehearsal,
    /// To people, through the gateway of this profile.
    Live(Box<Profile>),
}

impl Destination {
    /// Whether people get messages.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self, Destination::Live(_))
    }

    /// The profile of a live one.
    #[must_use]
    pub fn profile(&self) -> Option<&Profile> {
        match self {
            Destination::Rehearsal => None,
            Destination::Live(profile) => Some(profile),
        }
    }

    /// The profile of a live one that leaves this machine: it is sent to after a yes, and from one host alone.
    #[must_use]
    pub fn remote_profile(&self) -> Option<&Profile> {
        self.profile().filter(|profile| !profile.is_loopback())
    }

    /// Whether it is live and stays on this machine: there nobody is a real person.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.profile().is_some_and(Profile::is_loopback)
    }

    /// The gateway's name.
    #[must_use]
    pub fn gateway_name(&self) -> &str {
        self.profile().map_or(SANDBOX, |profile| &profile.name)
    }

    /// The account that rate and guard belong to; the built-in sandbox is one.
    #[must_use]
    pub fn account_name(&self) -> &str {
        self.profile().map_or(SANDBOX, |profile| &profile.account)
    }

    /// The account's allowance.
    #[must_use]
    pub fn account_rate(&self) -> Rate {
        self.profile().map_or(Rate::Unlimited, |profile| profile.rate)
    }

    /// The most operations of an envelope to it.
    #[must_use]
    pub fn largest_envelope(&self) -> usize {
        self.profile().map_or(usize::MAX, Profile::max_envelope_size)
    }

    /// How a campaign is sent there: within what the profile allows.
    #[must_use]
    pub fn limit_delivery(&self, delivery: DeliverySettings) -> DeliverySettings {
        self.profile().map_or(delivery, |profile| delivery.limited_by_profile(profile))
    }
}
