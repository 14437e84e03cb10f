//! What a seed decides: the campaign, its pace, the faults that may happen, and who decides about doubt.

use std::time::Duration;

use super::chance::Chance;
use super::life::wall;
use crate::domain::{Endpoint, OperationKind, Row};
use crate::ledger::{Heed, LeftOut, NewRun};

/// Something that goes wrong between the engine and the platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Fault {
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

impl Fault {
    pub(super) const ALL: [Fault; 30] = [
        Fault::NotConnected,
        Fault::Handshake,
        Fault::KeyRefused,
        Fault::EnvelopeRefused,
        Fault::Lost,
        Fault::TimedOut,
        Fault::Silence,
        Fault::Redirect,
        Fault::Throttled,
        Fault::ThrottledLong,
        Fault::Unavailable,
        Fault::ServerError,
        Fault::TooLong,
        Fault::Empty,
        Fault::Truncated,
        Fault::UnclearSuccess,
        Fault::FalseWithMsgIds,
        Fault::FalseWithoutError,
        Fault::TrueWithoutData,
        Fault::TooFew,
        Fault::TooMany,
        Fault::Foreign,
        Fault::Twice,
        Fault::NoMsgId,
        Fault::Reordered,
        Fault::NoIds,
        Fault::TextIds,
        Fault::SomeRejected,
        Fault::NoMoney,
        Fault::Late,
    ];
}

/// What the platform answers when it is asked about messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Oracle {
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
pub(super) enum Decision {
    AssumeSent,
    NotSent,
    NotSentThenRetry,
    SendAgain,
}

/// Everything that a seed decides beforehand.
#[derive(Clone, Debug)]
pub(super) struct Plan {
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
    pub(super) faults: Vec<Fault>,
    pub(super) fault_every: u64,
    pub(super) oracle: Oracle,
    /// The longest time until the platform knows what it took.
    pub(super) lag: Duration,
    /// How often a process is started while things go wrong.
    pub(super) starts: u64,
    /// Whether a campaign allows that rows which are not found go out again.
    pub(super) resend_if_not_found: bool,
    pub(super) decision: Decision,
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
    fn of(chance: &mut Chance) -> Self {
        Self { size: 1 + chance.below(12) as u32, workers: 1 + chance.below(4) }
    }
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let endpoint = if chance.once_in(4) { Endpoint::Async } else { Endpoint::Sync };
        let kind = match endpoint {
            Endpoint::Sync if chance.once_in(6) => OperationKind::CallOtp,
            _ => OperationKind::Sms,
        };
        let rates = [None, Some(1.0), Some(10.0), Some(50.0), Some(200.0), Some(5_000.0)];
        let (account_rate, rate) = (chance.of(&rates), chance.of(&rates));
        // A campaign's rate is never above the account's.
        let rate = match (rate, account_rate) {
            (Some(rate), Some(account)) => Some(f64::min(rate, account)),
            (rate, account) => rate.or(account),
        };
        let oracle =
            chance.of(&[Oracle::Sees, Oracle::Sees, Oracle::Sees, Oracle::KnowsAll, Oracle::DeniesAll, Oracle::Mute]);
        let faults = Fault::ALL.into_iter().filter(|_| chance.once_in(4)).collect();
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
            fault_every: chance.of(&[2, 4, 8]),
            oracle,
            lag: Duration::from_millis(chance.below(20_000)),
            starts: 1 + chance.below(4),
            resend_if_not_found: endpoint == Endpoint::Sync && kind == OperationKind::Sms && chance.once_in(2),
            decision: chance.of(&[
                Decision::AssumeSent,
                Decision::NotSent,
                Decision::NotSentThenRetry,
                Decision::SendAgain,
            ]),
            retry_rejected: chance.once_in(2),
            unsupported: (kind == OperationKind::CallOtp && chance.once_in(2)).then(|| 2 + chance.below(6)),
            sharing: None,
        };
        let plan = plan.falling_back();
        match chance.once_in(8) {
            true => plan.shared(SharingPlan::of(&mut chance)),
            false => plan,
        }
    }

    /// The same, with several channels in half of the worlds. Drawn apart, so that nothing else of a world changes.
    fn falling_back(self) -> Self {
        let mut chance = self.chance(9);
        match self.kind {
            OperationKind::Sms if chance.once_in(2) => {
                let kind = chance.of(&[OperationKind::ViberSms, OperationKind::RcsViberSms]);
                Self { kind, ..self }
            }
            _ => self,
        }
    }

    /// Whether the platform leaves out which channel failed before the last one, so that it seems to be the message.
    pub(super) fn names_no_channel(&self) -> bool {
        self.chance(10).once_in(4)
    }

    /// The same, sent by several processes. Whoever has to wait for an hour would have all of them wait.
    pub(super) fn shared(mut self, sharing: SharingPlan) -> Self {
        self.faults.retain(|fault| *fault != Fault::ThrottledLong);
        Self { sharing: Some(sharing), ..self }
    }

    /// Whether the platform tells by itself what became of messages; nothing is told of code calls.
    pub(super) fn tells(&self) -> bool {
        self.kind != OperationKind::CallOtp && !self.chance(4).once_in(2)
    }

    /// The rows' chance is apart from the plan's, so that a plan can be changed by hand without changing the world.
    pub(super) fn chance(&self, purpose: u64) -> Chance {
        Chance::new(self.seed.wrapping_mul(31).wrapping_add(purpose))
    }
}

impl Plan {
    /// The run of the campaign.
    pub(super) fn new_run(&self, random: u64, left_out: LeftOut) -> NewRun {
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
            left_out,
            heed: Heed::default(),
            file: None,
            began_at: wall(),
            random,
        }
    }
}
