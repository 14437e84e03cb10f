//! The emulated gateway that a campaign is rehearsed against, over real HTTP.
//!
//! It answers both endpoints as the contract says, keeps what it took, and writes a journal that
//! shows a message sent twice. What the contract leaves open is decided once, in [`ASSUMPTIONS`].
//!
//! It must not use `gateway`, not even for a field's name: a name misspelt there has to fail here.
//! Nor does it protect its client: it repeats whatever it is told to repeat.
//!
//! From the outside in: [`Sandbox`] listens (`server`, `doorway`, `connections`), turns HTTP into
//! bytes and back (`shell`), reads the bytes into operations (`envelope`, `operation`, `stages`,
//! `fields`) and lets the `platform` execute them (`intake`, `inquiries`, with `account`,
//! `templates`, `plan`). Time (`clock`, `ticker`) moves the messages on (`events`, `life`) and tells
//! of it (`webhooks`, sent by `posting` over `plain_http`). What is played is a `scenario`, what goes wrong in it is
//! decided in `faults` and done in `spoil` and on the wire. `live` holds the platform, its clock and
//! its journal under one lock; everything below it is plain functions to which the clock is an argument.

mod account;
mod answer;
mod assumptions;
mod chance;
mod client_id;
mod clock;
mod connections;
mod counts;
mod doorway;
mod envelope;
mod events;
mod faults;
mod fields;
mod inquiries;
mod intake;
mod journal;
mod kind;
mod life;
mod limit;
mod live;
mod lookup;
mod messages;
mod moment;
mod money;
mod operation;
mod plain_http;
mod plan;
mod platform;
mod posting;
mod reaction;
mod refusal;
mod scenario;
mod server;
mod shell;
mod spoil;
mod stages;
mod templates;
mod ticker;
mod webhooks;

#[cfg(test)]
mod contract_pairs;
#[cfg(test)]
mod desk;
#[cfg(test)]
mod over_http;
#[cfg(test)]
mod receiver;
#[cfg(test)]
mod rehearsals;
#[cfg(test)]
mod robustness;

pub use assumptions::{ASSUMPTIONS, Assumption};
pub use counts::{ChannelTally, Counts, Funds, Tally};
pub use journal::Journal;
pub use money::{Money, NoAmount};
pub use posting::Hooks;
pub use scenario::{
    Account, Behaviour, Behaviours, Blindness, Effect, Exception, Fault, Prices, Read, Reply, Scenario, SenderStatus,
    WebhookFault, Webhooks, When, load_scenario,
};
pub use server::{Sandbox, Settings};
