//! The emulated gateway judged by the contract, table by table, over real HTTP.
//!
//! The requests are written from the contract alone, as a program would write them that knows
//! nothing of this crate. Each test names the section that it reads.

mod envelopes;
mod errors;
mod examples;
mod mutations;
mod operations;
mod records;
mod stand;
mod webhooks;

use stand::Stand;
