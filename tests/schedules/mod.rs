//! Schedules: due times, activation and occurrences.

mod arming;
#[cfg(target_os = "linux")]
mod by_itself;
mod contradictions;
#[cfg(target_os = "linux")]
mod damage;
mod judge;
mod next;
mod serving;
#[cfg(target_os = "linux")]
mod skipped;
