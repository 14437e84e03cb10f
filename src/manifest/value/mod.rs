//! The small values of campaign and gateway files: how they are written, and what they mean.

mod cap;
mod rate;
mod seconds;
mod share;

pub(crate) use cap::parse_cap;
pub use rate::Rate;
pub(crate) use seconds::Seconds;
pub use share::Percentage;

/// Why a value cannot be read; what to write instead follows from the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseValueError;
