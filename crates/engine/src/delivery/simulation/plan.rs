//! Plan of a world, decided by its seed: the campaign, its rates, the possible faults, and the decisions about rows in
//! doubt.

use std::time::Duration;

use super::process::wall_now;
use campaign_core::domain::{Endpoint, OperationKind, Row};
use campaign_ledger::{ExcludedRows, NewRun, SuppressionPolicy};

/// A fault between the engine and the platform.
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

/// The platform's behaviour when it answers status inquiries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StatusOracle {
    /// The platform tells the truth, but only after each message's lag.
    Sees,
    /// The platform reports every identifier as accepted.
    KnowsAll,
    /// The platform denies every identifier.
    DeniesAll,
    /// The platform gives no usable answer.
    Mute,
}

/// A person's decision about rows that cannot be reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FinalDecision {
    AssumeSent,
    NotSent,
    NotSentThenRetry,
    SendAgain,
}

/// The facts that the seed decides in advance.
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
    /// The possible faults of this world.
    pub(super) faults: Vec<WorldFault>,
    /// One in this many requests can have a fault.
    pub(super) fault_every: u64,
    pub(super) oracle: StatusOracle,
    /// The maximum delay until the platform knows a message.
    pub(super) lag: Duration,
    /// The number of starts in the faulty phase.
    pub(super) starts: u64,
    /// Whether the campaign allows resending rows that were not found.
    pub(super) resend_if_not_found: bool,
    pub(super) decision: FinalDecision,
    /// Whether rejected rows are sent again as new messages in the end.
    pub(super) retry_rejected: bool,
    /// One in this many rows has an unsupported operator (verification calls only).
    pub(super) unsupported: Option<u64>,
    /// The plan for several workers that send the run. `None` if one process sends alone.
    pub(super) sharing: Option<SharingPlan>,
}

// The purposes of random generators, for `WorldPlan::random_for`.
pub(super) const PLATFORM: u64 = 2;
pub(super) const PROCESSES: u64 = 3;
pub(super) const WEBHOOKS: u64 = 4;
const FALLBACK: u64 = 9;
const OMITTED_CHANNEL: u64 = 10;

/// The plan for several workers that share a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharingPlan {
    /// The number of rows per draw.
    pub(super) size: u32,
    /// The number of concurrent workers.
    pub(super) workers: u64,
}

impl SharingPlan {
    fn from_random(chance: &mut SimulationRandom) -> Self {
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
            true => plan.with_sharing(SharingPlan::from_random(&mut chance)),
            false => plan,
        }
    }

    /// Uses several channels in half of the SMS worlds. The choice has its own random generator, so that nothing else
    /// in the plan changes.
    fn with_fallback(self) -> Self {
        let mut chance = self.random_for(FALLBACK);
        match self.kind {
            OperationKind::Sms if chance.once_in(2) => {
                let kind = chance.pick(&[OperationKind::ViberSms, OperationKind::RcsViberSms]);
                Self { kind, ..self }
            }
            _ => self,
        }
    }

    /// Whether the platform's reports omit the name of a failed channel before the last channel, so that the whole
    /// message seems to have failed.
    pub(super) fn omits_failed_channel(&self) -> bool {
        self.random_for(OMITTED_CHANNEL).once_in(4)
    }

    /// Lets several workers send the run. Long throttling is excluded, because a worker that waits for an hour would
    /// make all workers wait.
    pub(super) fn with_sharing(mut self, sharing: SharingPlan) -> Self {
        self.faults.retain(|fault| *fault != WorldFault::ThrottledLong);
        Self { sharing: Some(sharing), ..self }
    }

    /// Whether the platform sends webhooks. Verification calls have no webhooks.
    pub(super) fn sends_webhooks(&self) -> bool {
        self.kind != OperationKind::CallOtp && !self.random_for(WEBHOOKS).once_in(2)
    }

    /// A random generator for one purpose. It depends only on the seed, so that a plan can be changed by hand without
    /// changing the random events.
    pub(super) fn random_for(&self, purpose: u64) -> SimulationRandom {
        SimulationRandom::new(self.seed.wrapping_mul(31).wrapping_add(purpose))
    }
}

impl WorldPlan {
    /// A new run of the simulated campaign, without the rows in `excluded`.
    pub(super) fn new_run(&self, random: u64, excluded: ExcludedRows) -> NewRun {
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
            excluded,
            suppression: SuppressionPolicy::default(),
            file: None,
            began_at: wall_now(),
            random,
        }
    }
}

/// A small random number generator (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct SimulationRandom(u64);

impl SimulationRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next_bits() % end.max(1)
    }

    /// Returns true once in `times` calls, on average.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A random element.
    pub(super) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}
