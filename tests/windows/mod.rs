//! Sending windows (`delivery.window`), by the recipient's clock, and the end time of a run (`delivery.until`).

mod checks;
#[cfg(target_os = "linux")]
mod hours;
mod until;
