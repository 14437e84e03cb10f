//! What a seed decides: the campaign, its pace, the faults that may happen, and who decides about doubt.

use std::time::Duration;

use super::chance::SimulationRandom;
use super::life::wall_now;
use crate::domain::{Endpoint, OperationKind, Row};
use crate::ledger::{ExcludedRows, NewRun, SuppressionPolicy};

/// Something that goes wrong between the engine and the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum WorldFault {
    NotConnected,
    Handshake,
    KeyRefused,
    EnvelopeRefused,
    Lost,
    TimedOut,
    Silence,
    Redirect,
    Throttled,
    ThrottledLong,
    Unavailable,
    ServerError,
    TooLong,
    Empty,
    Truncated,
    UnclearSuccess,
    FalseWithMsgIds,
    FalseWithoutError,
    TrueWithoutData,
    TooFew,
    TooMany,
    Foreign,
    Twice,
    NoMsgId,
    Reordered,
    NoIds,
    TextIds,
    SomeRejected,
    NoMoney,
    Late,
}

impl WorldFault {
    pub(super) const ALL: [WorldFault; 30] = [
        WorldFault::NotConnected,
        WorldFault::Handshake,
        WorldFault::KeyRefused,
        WorldFault::EnvelopeRefused,
        WorldFault::Lost,
        WorldFault::TimedOut,
        WorldFault::Silence,
        WorldFault::Redirect,
        WorldFault::Throttled,
        WorldFault::ThrottledLong,
        WorldFault::Unavailable,
        WorldFault::ServerError,
        WorldFault::TooLong,
        WorldFault::Empty,
        WorldFault::Truncated,
        WorldFault::UnclearSuccess,
        WorldFault::FalseWithMsgIds,
        WorldFault::FalseWithoutError,
        WorldFault::TrueWithoutData,
        WorldFault::TooFew,
        WorldFault::TooMany,
        WorldFault::Foreign,
        WorldFault::Twice,
        WorldFault::NoMsgId,
        WorldFault::Reordered,
        WorldFault::NoIds,
        WorldFault::TextIds,
        WorldFault::SomeRejected,
        WorldFault::NoMoney,
        WorldFault::Late,
    ];
}

/// What the platform answers when it is asked about messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StatusOracle {
    /// The truth, as late as each message's lag.
    Sees,
    /// It says of every identifier that it is accepted.
    KnowsAll,
    /// It denies every identifier.
    DeniesAll,
    /// It gives no usable answer.
    Mute,
}

/// What a person decides about rows that nothing more can be learnt about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FinalDecision {
    AssumeSent,
    NotSent,
    NotSentThenRetry,
    SendAgain,
}

/// Everything that a seed decides beforehand.
#[derive(Clone, Debug)]
pub(super) struct WorldPlan {
    pub(super) seed: u64,
    pub(super) rows: u32,
    pub(super) endpoint: Endpoint,
    pub(super) kind: OperationKind,
    pub(super) batch: usize,
    pub(super) in_flight: usize,
    pub(super) timeout: Duration,
    pub(super) rate: Option<f64>,
    pub(super) account_rate: Option<f64>,
    pub(super) trust_status: Vec<u16>,
    /// The faults that may happen in this world, and one in how many requests has one.
    pub(super) faults: Vec<WorldFault>,
    pub(super) fault_every: u64,
    pub(super) oracle: StatusOracle,
    /// The longest time until the platform knows what it took.
    pub(super) lag: Duration,
    /// How often a process is started while things go wrong.
    pub(super) starts: u64,
    /// Whether a campaign allows that rows which are not found go out again.
    pub(super) resend_if_not_found: bool,
    pub(super) decision: FinalDecision,
    /// Whether rejected rows are sent again as new messages in the end.
    pub(super) retry_rejected: bool,
    /// Rows that the platform's operator does not support, one in so many (code calls only).
    pub(super) unsupported: Option<u64>,
    /// How the run is sent by several processes; nothing where one does alone.
    pub(super) sharing: Option<SharingPlan>,
}

/// How several processes send a run together.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharingPlan {
    /// How many rows a process draws at once.
    pub(super) size: u32,
    /// How many workers there are at a time.
    pub(super) workers: u64,
}

impl SharingPlan {
    fn from_chance(chance: &mut SimulationRandom) -> Self {
        Self { size: 1 + chance.below(12) as u32, workers: 1 + chance.below(4) }
    }
}

impl WorldPlan {
    pub(super) fn from_seed(seed: u64) -> Self {
        let mut chance = SimulationRandom::new(seed);
        let endpoint = if chance.once_in(4) { Endpoint::Async } else { Endpoint::Sync };
        let kind = match endpoint {
            Endpoint::Sync if chance.once_in(6) => OperationKind::CallOtp,
            _ => OperationKind::Sms,
        };
        let rates = [None, Some(1.0), Some(10.0), Some(50.0), Some(200.0), Some(5_000.0)];
        let (account_rate, rate) = (chance.pick(&rates), chance.pick(&rates));
        // A campaign's rate is never above the account's.
        let rate = match (rate, account_rate) {
            (Some(rate), Some(account)) => Some(f64::min(rate, account)),
            (rate, account) => rate.or(account),
        };
        let oracle = chance.pick(&[
            StatusOracle::Sees,
            StatusOracle::Sees,
            StatusOracle::Sees,
            StatusOracle::KnowsAll,
            StatusOracle::DeniesAll,
            StatusOracle::Mute,
        ]);
        let faults = WorldFault::ALL.into_iter().filter(|_| chance.once_in(4)).collect();
        let plan = Self {
            seed,
            rows: 1 + chance.below(40) as u32,
            endpoint,
            kind,
            batch: 1 + chance.below(20) as usize,
            in_flight: 1 + chance.below(4) as usize,
            timeout: Duration::from_secs(1 + chance.below(30)),
            rate,
            account_rate,
            trust_status: if chance.once_in(2) { vec![429, 503] } else { Vec::new() },
            faults,
            fault_every: chance.pick(&[2, 4, 8]),
            oracle,
            lag: Duration::from_millis(chance.below(20_000)),
            starts: 1 + chance.below(4),
            resend_if_not_found: endpoint == Endpoint::Sync && kind == OperationKind::Sms && chance.once_in(2),
            decision: chance.pick(&[
                FinalDecision::AssumeSent,
                FinalDecision::NotSent,
                FinalDecision::NotSentThenRetry,
                FinalDecision::SendAgain,
            ]),
            retry_rejected: chance.once_in(2),
            unsupported: (kind == OperationKind::CallOtp && chance.once_in(2)).then(|| 2 + chance.below(6)),
            sharing: None,
        };
        let plan = plan.with_fallback();
        match chance.once_in(8) {
            true => plan.with_sharing(SharingPlan::from_chance(&mut chance)),
            false => plan,
        }
    }

    /// The same, with several channels in half of the worlds. Drawn apart, so that nothing else of a world changes.
    fn with_fallback(self) -> Self {
        let mut chance = self.random_for(9);
        match self.kind {
            OperationKind::Sms if chance.once_in(2) => {
                let kind = chance.pick(&[OperationKind::ViberSms, OperationKind::RcsViberSms]);
                Self { kind, ..self }
            }
            _ => self,
        }
    }

    /// Whether the platform leaves out which channel failed before the last one, so that it seems to be the message.
    pub(super) fn omits_failed_channel(&self) -> bool {
        self.random_for(10).once_in(4)
    }

    /// The same, sent by several processes. Whoever has to wait for an hour would have all of them wait.
    pub(super) fn with_sharing(mut self, sharing: SharingPlan) -> Self {
        self.faults.retain(|fault| *fault != WorldFault::ThrottledLong);
        Self { sharing: Some(sharing), ..self }
    }

    /// Whether the platform tells by itself what became of messages; nothing is told of code calls.
    pub(super) fn sends_webhooks(&self) -> bool {
        self.kind != OperationKind::CallOtp && !self.random_for(4).once_in(2)
    }

    /// The rows' chance is apart from the plan's, so that a plan can be changed by hand without changing the world.
    pub(super) fn random_for(&self, purpose: u64) -> SimulationRandom {
        SimulationRandom::new(self.seed.wrapping_mul(31).wrapping_add(purpose))
    }
}

impl WorldPlan {
    /// The run of the campaign.
    pub(super) fn new_run(&self, random: u64, left_out: ExcludedRows) -> NewRun {
        NewRun {
            campaign: "simulated".into(),
            edition: String::new(),
            gateway: "main".into(),
            account: "account".into(),
            endpoint: self.endpoint,
            kind: self.kind,
            live: true,
            round: 1,
            recipients: u64::from(self.rows),
            last_row: Row::new(self.rows + 1),
            excluded: left_out,
            suppression: SuppressionPolicy::default(),
            file: None,
            began_at: wall_now(),
            random,
        }
    }
}
