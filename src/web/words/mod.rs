//! The words of pages, in the languages that pages speak.
//!
//! A message has a key, and stands in `en.yaml` and `uk.yaml`; a test holds the two against each other and against the
//! code and the templates that use them. Numbers, money and moments are written here as each language writes them.
//!
//! Nothing here reads a clock or the environment, or knows HTML: what it gives is text, and whoever shows it escapes it.

mod figures;
mod language;
mod moments;
mod table;
#[cfg(test)]
mod whole;

pub use language::PageLanguage;
pub use moments::zone_name;
pub use table::PageWords;
