//! What the ledger decides, apart from where it is kept: every adapter stores and locks, and asks here. Pure.
//!
//! What an event may change is beside the events (`event.rs`), what state a row is in beside the states
//! (`row_state.rs`), and the pace beside the account (`pace.rs`).

mod block;
mod budget;
mod cap;
mod course;
mod day;
mod forgetting;
mod guard;
mod ids;
mod intent;
mod occurrence;
mod plan;
mod settlement;
mod share;

pub(super) use block::{HOUR, next_draw, next_rows, owns};
pub use budget::share_budget;
pub(super) use budget::{BudgetScope, given_back, is_out, over, spent, taken};
pub(super) use cap::{allowed, capped, contacts, counts_for_caps};
pub(super) use course::held;
pub(super) use day::{nearer, over_day};
pub(super) use forgetting::{Forgotten, forget_in_change, forget_in_receipt};
pub(super) use guard::Guard;
pub(super) use ids::candidates;
pub(super) use intent::{late, leaves, refusal, takes_slot};
pub(super) use occurrence::may_fire;
pub(super) use plan::plans_since;
pub(super) use settlement::{doubt, merge};
pub(super) use share::{Draws, draws};
