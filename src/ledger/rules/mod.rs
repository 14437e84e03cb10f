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

pub(super) use block::{HOUR, next_draw_time, next_rows, owns_rows};
pub use budget::share_budget;
pub(super) use budget::{
    BudgetScope, envelope_spending, find_exceeded_budget, intended_spending, may_have_been_sent, refunded_spending,
};
pub(super) use cap::{caps_allow, counted_messages, counts_for_caps, find_capped_rows};
pub(super) use course::check_lock;
pub(super) use day::{find_exceeded_day, tighter_bound};
pub(super) use forgetting::{NumberErasure, forget_in_change, forget_in_receipt};
pub(super) use guard::Guard;
pub(super) use ids::id_candidates;
pub(super) use intent::{check_deadline, departure_time, find_refusal, takes_slot};
pub(super) use occurrence::may_fire;
pub(super) use plan::oldest_kept_plan_time;
pub(super) use settlement::{in_doubt_outcomes, merge_outcomes};
pub(super) use share::{DrawReadiness, check_draw};
