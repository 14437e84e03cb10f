//! What a campaign keeps within while it is sent, across starts, processes and profiles.

mod budget;
mod caps;
#[cfg(target_os = "linux")]
mod days;

use crate::support::Finished;

/// How a run stopped: the word for it, how many messages this call sent, and how many rows wait.
fn stopped(finished: &Finished) -> (String, u64, u64) {
    let told = finished.json();
    let planned = told["counts"]["planned"].as_u64().unwrap_or(0);
    (told["stopped"].as_str().unwrap_or("").to_owned(), told["sent"].as_u64().expect("a number"), planned)
}

/// The reason in words.
fn why(finished: &Finished) -> String {
    finished.json()["why"].as_str().unwrap_or("").to_owned()
}
