//! From the bytes of a request to its operations, read from the contract and not from the client's encoder.
//!
//! - `envelope`: the whole request: header, size, JSON, key, types;
//! - `operation`: one item of `data`, of a `kind`; `stages`: the messages among them; `fields`: the form of each value;
//! - `client_id`: identifiers in the form in which they were sent.

pub(crate) mod client_id;
pub(crate) mod envelope;
pub(crate) mod fields;
pub(crate) mod kind;
pub(crate) mod operation;
pub(crate) mod stages;

pub(crate) use client_id::{ClientId, Key};
pub(crate) use envelope::{BODY_LIMIT, Envelope, Keys, Rejection, Request};
pub(crate) use fields::Fields;
pub(crate) use kind::Kind;
pub(crate) use operation::{Item, Operation, Question, TemplateCall};
pub(crate) use stages::Load;
