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

pub(crate) use client_id::{ClientId, ClientIdKey};
pub(crate) use envelope::{AccountKeys, BODY_LIMIT, EnvelopeRejection, ParsedEnvelope, RawRequest};
pub(crate) use fields::OperationFields;
pub(crate) use kind::Kind;
pub(crate) use operation::{MessageQuery, RequestItem, RequestedOperation, TemplateCall};
pub(crate) use stages::SendRequest;
