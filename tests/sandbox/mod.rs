//! The sandbox checked against the gateway's contract, over real HTTP.
//!
//! The requests are written from the contract alone, without this crate's client. Each test names the section of
//! the contract that it checks.

mod envelopes;
mod errors;
mod examples;
mod in_process;
mod mutations;
mod operations;
mod records;
mod webhooks;

use in_process::TestSandbox;
