//! Sending limits: budgets, frequency caps and daily limits across runs, processes and profiles.

mod budget;
mod caps;
#[cfg(target_os = "linux")]
mod days;
#[cfg(target_os = "linux")]
mod retries;

use crate::support::{Finished, Folder};

/// The reason code of a stopped run, the number of messages that this command sent, and the number of planned rows.
fn stop_summary(finished: &Finished) -> (String, u64, u64) {
    let report = finished.json();
    let planned = report["counts"]["planned"].as_u64().unwrap_or(0);
    (report["stopped"].as_str().unwrap_or("").to_owned(), report["sent"].as_u64().expect("a number"), planned)
}

/// The reason for the stop, as text.
fn stop_reason(finished: &Finished) -> String {
    finished.json()["why"].as_str().unwrap_or("").to_owned()
}

/// Writes another campaign with the same message and list, and with this line under `delivery`.
fn write_other_campaign(sale: &Folder, name: &str, delivery: &str) -> String {
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("a campaign");
    let file = format!("{name}.yaml");
    let text = text.replace("name: sale\n", &format!("name: {name}\n"));
    sale.write(&file, &text.replace("delivery:\n", &format!("delivery:\n  {delivery}\n")));
    file
}
