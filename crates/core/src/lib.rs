//! Foundation crate: values that need neither an async runtime nor the network.
//!
//! - [`domain`]: the vocabulary of campaigns and messages
//! - [`calendar`]: schedules, sending windows and daily limits
//! - [`finding`]: errors, warnings and notes with a location, a cause and a remedy
//! - [`private`] and [`regular_file`]: files that only their owner can read, and files that users name
//! - [`panics`] and [`failpoint`]: caught panics, and the locations at which a test ends or suspends the process

pub mod calendar;
pub mod domain;
pub mod failpoint;
pub mod finding;
pub mod panics;
pub mod private;
pub mod regular_file;
