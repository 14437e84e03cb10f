//! The emulated platform: a state machine that executes operations. No I/O, no clock of its own.
//!
//! - `execution`: an envelope is taken apart, executed in order, and answered; `answer`, `refusal`: in what words;
//! - `limit`: an envelope is turned away that is more than its account may send in a time;
//! - `intake`: a message is checked against the `account`, paid for and kept (`messages`, `plan`), or refused;
//! - `life`: what becomes of a message, from one state to the next; `agenda`: it happens when it is due; `chance`: to whom;
//! - `inquiries`: balance, sender names, statuses, `templates`; `lookup`: the record of a number;
//! - `counts`: what a rehearsal's summary shows; `moment`: times.

pub(crate) mod account;
pub(crate) mod agenda;
pub(crate) mod answer;
pub(crate) mod chance;
pub(crate) mod counts;
pub(crate) mod execution;
pub(crate) mod inquiries;
pub(crate) mod intake;
pub(crate) mod life;
mod limit;
pub(crate) mod lookup;
pub(crate) mod messages;
pub(crate) mod moment;
pub(crate) mod plan;
pub(crate) mod refusal;
pub(crate) mod templates;

pub(crate) use account::SandboxAccount;
pub(crate) use agenda::Agenda;
pub(crate) use answer::{
    ApiResponse, BalanceRecord, CodeCall, ReplyRecord, ResultData, ResultItem, SendResult, StatusRecord,
};
pub(crate) use chance::{EnvelopeFacts, MessageFacts, RandomDraw};
pub use counts::{ChannelTally, Counts, Funds, OperationTally};
pub(crate) use execution::{Charge, EnvelopeArrival, GatewayEmulator, ItemOutcome, OperationOrigin, format_request_id};
pub(crate) use life::{DeliveryFailure, LifecycleState, MessageLifecycle, Phase};
pub(crate) use lookup::lookup_record;
pub(crate) use messages::{MessageStore, SandboxMessage, msg_id_of};
pub(crate) use moment::{VirtualTime, WireTime};
pub(crate) use plan::{ChannelStage, StagePlans};
pub(crate) use refusal::OperationError;
pub(crate) use templates::Templates;
