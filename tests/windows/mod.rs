//! `delivery.window` and `delivery.until`: messages leave within them, on the clocks of whoever they are for.

mod checks;
#[cfg(target_os = "linux")]
mod hours;
mod until;
