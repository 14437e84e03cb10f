//! The promises of the sandbox as a whole. `bench` stands in for its doors, `receiver` for whoever gets webhooks.

pub(crate) mod bench;
pub(crate) mod receiver;

mod contract_pairs;
mod life;
mod over_http;
mod platform;
mod rehearsals;
mod robustness;
mod scenario;
mod webhooks;
