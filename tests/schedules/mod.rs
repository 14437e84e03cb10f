//! Schedules: due times, activation and occurrences.

mod arming;
mod contradictions;
#[cfg(target_os = "linux")]
mod damage;
mod judge;
mod next;
mod serving;
#[cfg(target_os = "linux")]
mod skipped;
#[cfg(target_os = "linux")]
mod unattended;
