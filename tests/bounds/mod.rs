//! Sending limits: budgets, frequency caps and daily limits across starts, processes and profiles.

mod budget;
mod caps;
#[cfg(target_os = "linux")]
mod days;

use crate::support::Finished;

/// The state word of a stopped run, the messages sent by this call, and the planned rows.
fn stop_summary(finished: &Finished) -> (String, u64, u64) {
    let report = finished.json();
    let planned = report["counts"]["planned"].as_u64().unwrap_or(0);
    (report["stopped"].as_str().unwrap_or("").to_owned(), report["sent"].as_u64().expect("a number"), planned)
}

/// The reason of the stop as text.
fn stop_reason(finished: &Finished) -> String {
    finished.json()["why"].as_str().unwrap_or("").to_owned()
}
