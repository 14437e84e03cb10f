//! The receipts' door of `campaign serve`: delivery-status webhooks in (contract 2.4 and 6).
//!
//! - `router`: what the door knows, which is `/h/` and `/n/` alone, and what it answers;
//! - `sender`: who a request is from, behind a proxy that is trusted or not;
//! - `strangers`: slows down who sends what nobody gave an address for;
//! - `upkeep`: what a server asks and writes by itself;
//!
//! It decides nothing about messages: `runs::Receiver` tells whose a webhook is, `runs::Collector` has what came together kept,
//! before anything is answered, and the ledger tells what it moves.

mod router;
mod sender;
mod strangers;
mod upkeep;

pub use router::{Hints, router};
pub use sender::TrustedProxies;
pub use upkeep::{poll_statuses_until, update_results_until};
