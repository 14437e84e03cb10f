//! The operations that are asked for one at a time: a lookup, a code call, a message of an assistant, a test message.
//!
//! Each is a row of a run that they share, so that the ledger knows of it before it is sent and all
//! commands can name it. Nothing here sends; [`send_single`](super::send_single) does.

use std::path::Path;

use super::frozen::FrozenInputs;
use crate::domain::{CallOtp, Endpoint, ExtraProperties, Hlr, MessageContent, OperationKind, Purpose, Stage};
use crate::ledger::{Run, SharedRun};
use crate::manifest::{CampaignBrief, DuplicatePolicy, Percentage};

/// An operation that is asked for by itself (contract 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleKind {
    /// Finds out about a number; the subscriber notices nothing.
    Lookup,
    /// Calls a phone from a number whose last four digits are a code.
    CodeCall,
    /// A message that an assistant was told to send.
    Message,
    /// A campaign's message to somebody who wants to see it, and who is none of its recipients by that.
    Test,
}

impl SingleKind {
    /// All of them.
    pub const ALL: [SingleKind; 4] = [SingleKind::Lookup, SingleKind::CodeCall, SingleKind::Message, SingleKind::Test];

    /// What stands in the place of a campaign's name; no campaign can have a dot in its own.
    #[must_use]
    pub fn campaign_name(self) -> &'static str {
        match self {
            SingleKind::Lookup => "gateway.lookup",
            SingleKind::CodeCall => "gateway.otp",
            SingleKind::Message => SharedRun::ASSISTANT_MESSAGES,
            SingleKind::Test => "campaign.test",
        }
    }

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SingleKind::Lookup => "lookup",
            SingleKind::CodeCall => "verification call",
            SingleKind::Message => "message",
            SingleKind::Test => "test message",
        }
    }

    /// The operation that it is; a message may be of any kind, and its run is said to be of the one that has all channels.
    #[must_use]
    pub fn kind(self) -> OperationKind {
        match self {
            SingleKind::Lookup => OperationKind::Hlr,
            SingleKind::CodeCall => OperationKind::CallOtp,
            SingleKind::Message | SingleKind::Test => OperationKind::Pipeline,
        }
    }

    /// The endpoint that it goes to. The asynchronous one would answer a question with a `request_id` and never with what
    /// was asked for; a message goes through it, so that who sends it does not wait (contract 4.4). A test goes through its
    /// campaign's; this is that of a campaign which names none.
    #[must_use]
    pub fn endpoint(self) -> Endpoint {
        match self {
            SingleKind::Lookup | SingleKind::CodeCall | SingleKind::Test => Endpoint::Sync,
            SingleKind::Message => Endpoint::Async,
        }
    }

    /// What it is for: a service is asked for by the person itself, and held back by no opt-out. A test is for what its
    /// campaign is for; this is what that is unless it says so.
    #[must_use]
    pub fn purpose(self) -> Purpose {
        match self {
            SingleKind::Lookup | SingleKind::CodeCall => Purpose::Service,
            SingleKind::Message | SingleKind::Test => Purpose::Marketing,
        }
    }

    /// The single operation that a run is; nothing for a campaign's run.
    #[must_use]
    pub fn from_run(run: &Run) -> Option<Self> {
        Self::ALL.into_iter().find(|single| single.campaign_name() == run.campaign)
    }

    /// The single operation whose runs are called like this: `gateway.lookup`, `gateway.lookup@3`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let campaign = name.split_once('@').map_or(name, |(campaign, _)| campaign);
        Self::ALL.into_iter().find(|single| single.campaign_name() == campaign)
    }

    /// What its run freezes besides the number, whose list has this SHA-256; `today` is a date.
    #[must_use]
    pub fn frozen_inputs(self, gateway: &str, today: String, recipients_sha256: String) -> FrozenInputs {
        FrozenInputs {
            brief: self.brief(gateway),
            includes: Vec::new(),
            today,
            // It came from the command line, not from files.
            campaign_file: Path::new("").to_owned(),
            list: None,
            recipients_sha256,
            forgotten: Vec::new(),
            trims_cells: false,
        }
    }

    fn brief(self, gateway: &str) -> CampaignBrief {
        CampaignBrief {
            name: self.campaign_name().to_owned(),
            edition: None,
            purpose: self.purpose(),
            gateway: gateway.to_owned(),
            endpoint: self.endpoint(),
            timezone: None,
            columns: Vec::new(),
            region: None,
            language: None,
            duplicates: DuplicatePolicy::Allow,
            max_invalid: Percentage::WHOLE,
            // Whoever drew the first row may not have begun yet.
            condition: None,
            exclude: None,
            may_be_empty: true,
            vars: Vec::new(),
            tables: Vec::new(),
            content: self.content(),
            variants: Vec::new(),
            holdout: None,
        }
    }

    /// What it says; of messages, each of which says something else, nothing.
    #[must_use]
    pub fn content<T>(self) -> MessageContent<T> {
        let fields = ExtraProperties::new();
        let stages = match self {
            SingleKind::Lookup => vec![Stage::Hlr(Hlr { fields })],
            SingleKind::CodeCall => vec![Stage::CallOtp(CallOtp { fields })],
            SingleKind::Message | SingleKind::Test => Vec::new(),
        };
        MessageContent { kind: self.kind(), stages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::is_slug;

    #[test]
    fn campaign_cannot_have_the_name_of_a_single_operation() {
        for single in SingleKind::ALL {
            assert!(!is_slug(single.campaign_name()));
            assert_eq!(SingleKind::from_name(single.campaign_name()), Some(single));
            assert_eq!(SingleKind::from_name(&format!("{}@12", single.campaign_name())), Some(single));
        }
        assert_eq!(SingleKind::from_name("lookup@3"), None);
    }

    #[test]
    fn single_operation_has_the_kind_of_its_stage() {
        for single in [SingleKind::Lookup, SingleKind::CodeCall] {
            let content = single.content::<()>();
            let channels: Vec<_> = content.stages.iter().map(Stage::channel).collect();
            assert_eq!(OperationKind::for_channels(&channels), single.kind());
        }
    }
}
