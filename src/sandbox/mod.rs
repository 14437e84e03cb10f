//! The emulated gateway that a campaign is rehearsed against, over real HTTP.
//!
//! It answers both endpoints as the contract says, keeps what it took, and writes a journal that
//! shows a message sent twice. What the contract leaves open is decided once, in [`assumptions()`].
//!
//! It must not use `gateway`, not even for a field's name: a name misspelt there has to fail here.
//! Nor does it protect its client: it repeats whatever it is told to repeat.
//!
//! | folder | what is in it |
//! |---|---|
//! | `doors` | I/O and real time: the port, connections, HTTP, the clock, the sending of webhooks |
//! | `request` | from the bytes of a request to its operations, each read for itself |
//! | `platform` | the gateway itself: what becomes of an envelope, of a message, of money; pure, in virtual time |
//! | `faults` | what goes wrong with an envelope, its answer (a 429, a lost one) and its connection |
//! | `webhooks` | which statuses are told to whom, in what words, and when again |
//! | `scenario` | what is played, and reading it from a file |
//! | `assumptions` | what is decided where the contract is silent |
//! | `tests` | the promises of the whole, and what stands in for a client and a receiver |
//!
//! A request comes in by `doors/server.rs`, `connections.rs` and `shell.rs`, is read by `request/envelope.rs` and
//! executed by `platform/execution.rs`; `doors/live.rs` holds the platform, its clock and its journal under one
//! lock. Everything below it is plain functions to which the clock is an argument.

mod assumptions;
mod doors;
mod faults;
mod journal;
mod platform;
mod request;
mod scenario;
mod webhooks;

#[cfg(test)]
mod tests;

pub use assumptions::{Assumption, assumptions};
pub use doors::{LocalReceiver, Sandbox, SandboxSettings, WebhookPolicy};
pub use journal::Journal;
pub use platform::{ChannelTally, Counts, Funds, OperationTally};
pub use scenario::{
    AccountSettings, Behaviour, Behaviours, Blindness, Exception, FaultEffect, OperationLimit, PartPrices,
    ReadBehaviour, ReplyBehaviour, Scenario, ScenarioCondition, ScenarioFault, SenderStatus, WebhookBehaviour,
    WebhookFault, load_scenario, scenario_schema,
};
