//! Checks, delivery and reports of campaigns.
//!
//! - [`check`]: the survey before sending
//! - [`delivery`]: intents, envelopes, rate, circuit breaker, resuming
//! - [`report`]: projections of the ledger: results, summaries, previews, progress

pub mod check;
pub mod delivery;
pub mod report;
