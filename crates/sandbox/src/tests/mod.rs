//! Tests of the sandbox as a whole. `bench` replaces the server, `receiver` is a receiver of webhooks.

pub(crate) mod bench;
pub(crate) mod receiver;

mod contract_pairs;
mod lifecycle;
mod over_http;
mod platform;
mod rehearsals;
mod robustness;
mod scenario;
mod webhooks;
