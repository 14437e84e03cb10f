//! Recipient lists and message texts.
//!
//! - [`audience`]: recipient lists in every format, their columns and phone numbers
//! - [`message`]: templates, filters and the rendered operation

pub mod audience;
pub mod message;
