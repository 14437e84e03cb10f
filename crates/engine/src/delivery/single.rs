//! Single operations outside a campaign: lookups, verification calls, assistant messages and tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use roaring::RoaringBitmap;

use super::breaker::BreakerLimits;
use super::engine::send_operations;
use super::feed::Feed;
use super::frozen::FrozenInputs;
use super::tally::{SendEnding, Stop, StopKind};
use super::{RunOptOuts, SendContext, SendOptions};
use campaign_core::domain::{
    CallOtp, Endpoint, ExtraProperties, Hlr, MessageContent, OperationKind, OperationOutcome, Purpose, Stage,
};
use campaign_gateway::EncodedOperation;
use campaign_ledger::{Allowance, CAPPED, Lease, OPTED_OUT, RowState, Run, SharedRun, StateCounts};
use campaign_manifest::{CampaignBrief, DuplicatePolicy, Percentage};

/// The result of a single operation.
#[derive(Clone, Debug)]
pub struct SingleEnding {
    /// The stored outcome, or `NotSent` if nothing was sent. `None` if the intent was left without an outcome, or if
    /// the recipient was skipped.
    pub outcome: Option<OperationOutcome>,
    /// The reason why the operation was not sent or was abandoned.
    pub stopped: Option<Stop>,
    /// The reason why the recipient was skipped: [`OPTED_OUT`] or [`CAPPED`]. `None` if the recipient was not skipped.
    pub skipped: Option<&'static str>,
}

/// Sends one operation. The operation is retried only if it was proven unsent.
pub async fn send_single(options: SendOptions, context: SendContext, operation: EncodedOperation) -> SingleEnding {
    let mut counts = StateCounts::default();
    counts.add(RowState::Planned, 1);
    to_single_ending(send_operations(options, context, Feed::from_groups(vec![vec![operation]]), counts).await)
}

/// Converts the result of a run to the result of a single operation. If the operation has an outcome other than
/// `NotSent`, only a stop of this process, such as an interrupt, is kept.
fn to_single_ending(SendEnding { outcome, stopped, counts, opted_out, .. }: SendEnding) -> SingleEnding {
    let unsent = || OperationOutcome::NotSent { reason: stopped.as_ref().map_or("", |stop| &stop.reason).into() };
    // Without an intent, or after a withdrawal, nothing was sent.
    let outcome = outcome.or_else(|| (counts.get(RowState::Planned) > 0).then(unsent));
    let keeps_stop = |stop: &Stop| match stop.kind {
        StopKind::Interrupted(_) | StopKind::Ledger | StopKind::ResultsUnwritten | StopKind::LeaseLost => true,
        StopKind::KeyRefused
        | StopKind::StopRequested
        | StopKind::Breaker
        | StopKind::Unreachable
        | StopKind::OffContract
        | StopKind::Credit
        | StopKind::Budget
        | StopKind::Window
        | StopKind::Halted
        | StopKind::DeadlineReached
        | StopKind::Limit
        | StopKind::Inconsistent
        | StopKind::Internal => matches!(outcome, None | Some(OperationOutcome::NotSent { .. })),
    };
    let stopped = stopped.clone().filter(keeps_stop);
    let skipped = if !opted_out.is_empty() { OPTED_OUT } else { CAPPED };
    let skipped = (counts.get(RowState::Skipped) > 0).then_some(skipped);
    SingleEnding { outcome, stopped, skipped }
}

impl SendOptions {
    /// Options for a single operation, without bounds. An unreachable gateway is retried for `patience`.
    pub fn for_single(lease: Lease, allowance: Allowance, timeout: Duration, patience: Duration) -> Self {
        Self {
            lease,
            repeated: RoaringBitmap::new(),
            rate: None,
            allowance,
            bounds: None,
            waits_at_bounds: true,
            batch: 1,
            in_flight: 1,
            timeout,
            proven: false,
            // After the answer to a single message, there is nothing left to stop.
            limits: BreakerLimits {
                doubtful_envelopes: u32::MAX,
                same_error_in_a_row: u32::MAX,
                rejected: 1.0,
                opted_out: None,
                unreachable: patience,
                keep_going: true,
            },
            first_messages_timeout: Duration::ZERO,
            sharing: None,
            opt_outs: Arc::new(RunOptOuts::without_errors(String::new())),
            is_attended: true,
        }
    }
}

/// A single operation (contract 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SingleKind {
    /// A number lookup, which the subscriber does not notice.
    Lookup,
    /// A call from a number whose last four digits are a code.
    CodeCall,
    /// A message from an assistant.
    Message,
    /// A test message of a campaign, to a person who does not become a recipient of the campaign.
    Test,
}

impl SingleKind {
    /// All kinds.
    pub const ALL: [SingleKind; 4] = [SingleKind::Lookup, SingleKind::CodeCall, SingleKind::Message, SingleKind::Test];

    /// The name that a run of single operations has instead of a campaign name. Campaign names cannot contain a dot.
    pub fn campaign_name(self) -> &'static str {
        match self {
            SingleKind::Lookup => "gateway.lookup",
            SingleKind::CodeCall => "gateway.otp",
            SingleKind::Message => SharedRun::ASSISTANT_MESSAGES,
            SingleKind::Test => "campaign.test",
        }
    }

    /// The display name.
    pub fn name(self) -> &'static str {
        match self {
            SingleKind::Lookup => "lookup",
            SingleKind::CodeCall => "verification call",
            SingleKind::Message => "message",
            SingleKind::Test => "test message",
        }
    }

    /// The kind of the operation. A message can have any kind; its run has the kind with all channels.
    pub fn kind(self) -> OperationKind {
        match self {
            SingleKind::Lookup => OperationKind::Hlr,
            SingleKind::CodeCall => OperationKind::CallOtp,
            SingleKind::Message | SingleKind::Test => OperationKind::Pipeline,
        }
    }

    /// The default endpoint. The asynchronous endpoint would answer a lookup with only a `request_id`. Messages use the
    /// asynchronous endpoint, so that the sender does not wait (contract 4.4). A test uses its campaign's endpoint.
    pub fn endpoint(self) -> Endpoint {
        match self {
            SingleKind::Lookup | SingleKind::CodeCall | SingleKind::Test => Endpoint::Sync,
            SingleKind::Message => Endpoint::Async,
        }
    }

    /// The default purpose. Lookups and verification calls are services, so opt-outs do not apply to them. A test has
    /// its campaign's purpose.
    pub fn purpose(self) -> Purpose {
        match self {
            SingleKind::Lookup | SingleKind::CodeCall => Purpose::Service,
            SingleKind::Message | SingleKind::Test => Purpose::Marketing,
        }
    }

    /// The kind of single operation that a run contains. `None` for runs of campaigns.
    pub fn from_run(run: &Run) -> Option<Self> {
        Self::ALL.into_iter().find(|single| single.campaign_name() == run.campaign)
    }

    /// The kind of single operation that the name of a run stands for: `gateway.lookup`, `gateway.lookup@3`.
    pub fn from_name(name: &str) -> Option<Self> {
        let campaign = name.split_once('@').map_or(name, |(campaign, _)| campaign);
        Self::ALL.into_iter().find(|single| single.campaign_name() == campaign)
    }

    /// The frozen inputs of a run of these single operations. `today` is the date on which the run began, and
    /// `recipients_sha256` is the hash of the run's list.
    pub fn frozen_inputs(self, gateway: &str, today: String, recipients_sha256: String) -> FrozenInputs {
        FrozenInputs {
            brief: self.brief(gateway),
            includes: Vec::new(),
            today,
            // A single operation has no campaign file of its own.
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
            title: None,
            edition: None,
            purpose: self.purpose(),
            mandatory: false,
            gateway: gateway.to_owned(),
            endpoint: self.endpoint(),
            timezone: None,
            columns: Vec::new(),
            region: None,
            language: None,
            duplicates: DuplicatePolicy::Allow,
            max_invalid: Percentage::WHOLE,
            condition: None,
            exclude: None,
            countries: None,
            may_be_empty: true,
            vars: Vec::new(),
            tables: Vec::new(),
            content: self.content(),
            variants: Vec::new(),
            holdout: None,
        }
    }

    /// The content of the operation. Empty for messages, because each message has its own content.
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
    use crate::delivery::fixtures::outcome;

    #[test]
    fn single_operation_ending_follows_from_outcome_and_stop() {
        let stop = |kind| Some(Stop::new(kind, "why"));
        let unsent = Some(OperationOutcome::NotSent { reason: "why".into() });
        let (accepted, rejected, doubt, not_sent) =
            (Some(outcome(0)), Some(outcome(2)), Some(outcome(4)), Some(outcome(3)));
        let (planned, sending) = (RowState::Planned, RowState::Sending);
        for (known, state, stopped, expected, keeps) in [
            (&accepted, RowState::Accepted, None, &accepted, false),
            (&accepted, RowState::Accepted, stop(StopKind::Interrupted(2)), &accepted, true),
            (&rejected, RowState::Rejected, stop(StopKind::OffContract), &rejected, false),
            (&doubt, RowState::InDoubt, stop(StopKind::OffContract), &doubt, false),
            (&not_sent, planned, stop(StopKind::KeyRefused), &not_sent, true),
            (&not_sent, planned, stop(StopKind::OffContract), &not_sent, true),
            // The message was recalled before its intent, or another process took over the run.
            (&None, planned, stop(StopKind::Interrupted(2)), &unsent, true),
            (&None, planned, stop(StopKind::LeaseLost), &unsent, true),
            // The intent stays without an outcome.
            (&None, sending, stop(StopKind::Interrupted(2)), &None, true),
            (&None, RowState::InDoubt, stop(StopKind::OffContract), &None, true),
        ] {
            let mut counts = StateCounts::default();
            counts.add(state, 1);
            let case = format!("{known:?} {state} {stopped:?}");
            let ending = to_single_ending(SendEnding {
                stopped: stopped.clone(),
                counts,
                outcome: known.clone(),
                ..SendEnding::default()
            });
            assert_eq!(&ending.outcome, expected, "{case}");
            assert_eq!(ending.stopped, stopped.filter(|_| keeps), "{case}");
        }
    }
}

#[cfg(test)]
mod single_kind_tests {
    use super::*;
    use campaign_manifest::is_slug;

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
