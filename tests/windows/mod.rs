//! `delivery.window` and `delivery.until`: messages are sent within them, by the recipient's clock.

mod checks;
#[cfg(target_os = "linux")]
mod hours;
mod until;
