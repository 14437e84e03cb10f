//! The gateway's JSON API (contract 2, 4 and 7): encoding, HTTP, and the reading of answers.

mod conceal;
mod encode;
mod exchange;
mod http;
mod loose;
mod members;
mod read;
mod read_items;
#[cfg(test)]
mod read_tests;
mod status;

pub use encode::encode;
pub use http::{Address, JsonApi, JsonApiError};
pub use read::Rules;
