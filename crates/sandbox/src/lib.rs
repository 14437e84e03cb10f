//! The emulated gateway for rehearsals, over real HTTP.
//!
//! The sandbox serves both endpoints of the contract and writes a journal that shows duplicate messages. Questions
//! that the contract leaves open are decided once, in [`assumptions()`].
//!
//! The sandbox must not use `gateway`, not even for a field's name, so that a misspelt name fails here. The sandbox
//! does not protect its client: it executes duplicate requests.
//!
//! | module | contents |
//! |---|---|
//! | `server` | I/O and real time: port, connections, HTTP, clock, webhook client |
//! | `request` | parsing requests into operations |
//! | `platform` | the gateway itself: envelopes, messages and money; pure, in virtual time |
//! | `faults` | faults of envelopes, answers and connections |
//! | `webhooks` | which statuses are sent to which address, their payload, and retries |
//! | `journal` | the record of requests, messages and webhooks |
//! | `scenario` | the behaviour of a sandbox, and reading it from a file |
//! | `assumptions` | decisions where the contract is silent |
//! | `tests` | tests of the sandbox as a whole, with a test client and receiver |
//!
//! A request arrives in `server/http.rs`, is parsed by `request/mod.rs` and executed by `platform/mod.rs`.
//! `server/live.rs` holds the platform, its clock and its journal under one lock. The modules that it calls
//! consist of plain functions that take the time as an argument.

mod journal;
mod platform;
mod request;
mod scenario;

mod assumptions;
mod faults;
mod server;
#[cfg(test)]
mod tests;
mod webhooks;

pub use assumptions::{Assumption, assumptions};
pub use journal::Journal;
pub use platform::{ChannelTally, Counts, Funds, OperationTally};
pub use scenario::{
    AccountSettings, Behaviour, Behaviours, Blindness, Exception, FaultEffect, OperationLimit, PartPrices,
    ReadBehaviour, ReplyBehaviour, Scenario, ScenarioCondition, ScenarioFault, SenderStatus, WebhookBehaviour,
    WebhookFault, load_scenario, load_scenario_within, scenario_schema, top_of_scenario,
};
pub use server::{LocalReceiver, Sandbox, SandboxSettings, WebhookPolicy};
