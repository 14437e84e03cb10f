//! The receipts' door of `campaign serve`: delivery-status webhooks in (contract 2.4 and 6).
//!
//! - `router`: what the door knows, which is `/h/` and `/n/` alone, and what it answers;
//! - `sender`: who a request is from, behind a proxy that is trusted or not;
//! - `strangers`: slows down who sends what nobody gave an address for;
//! - `upkeep`: what a server asks and writes by itself;
//! - `collector`: gathers what came and commits it together; nothing is answered before.
//!
//! It decides nothing about messages: `runs::Receiver` tells whose a webhook is, and the ledger what it moves.

mod collector;
mod router;
mod sender;
mod strangers;
mod upkeep;

pub use collector::{Collector, collector};
pub use router::{Hints, router};
pub use sender::Proxies;
pub use upkeep::{keep_asking, keep_fresh};
