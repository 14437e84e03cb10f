//! Why a message is not understood.

use serde_json::{Value, json};

use super::revision::{Era, LEGACY, MODERN};

/// A message that is not understood (JSON-RPC 2.0, 5.1): the protocol's errors, not those of tools.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) struct Fault {
    /// The status of the HTTP answer.
    pub(in crate::connector) status: u16,
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl Fault {
    /// The body is no JSON.
    pub(super) fn unreadable() -> Self {
        Self::new(400, -32700, "Parse error")
    }

    /// It is JSON, but no request.
    pub(in crate::connector) fn shape(why: &str) -> Self {
        Self::new(400, -32600, format!("Invalid Request: {why}"))
    }

    /// It is to be read by a revision that is not known here.
    pub(super) fn revision(requested: &str) -> Self {
        let supported: Vec<&str> = [MODERN].into_iter().chain(LEGACY).collect();
        let data = json!({ "supported": supported, "requested": requested });
        Self { data: Some(data), ..Self::new(400, -32022, "Unsupported protocol version") }
    }

    /// It does not say of itself what its revision requires.
    pub(super) fn meta(key: &str) -> Self {
        Self::new(400, -32602, format!("Invalid params: `_meta` has no `{key}`"))
    }

    /// Its head says something else than its body.
    pub(super) fn header(why: String) -> Self {
        Self::new(400, -32020, format!("Header mismatch: {why}"))
    }

    /// There is no such method.
    pub(in crate::connector) fn method(era: Era) -> Self {
        Self::new(if era == Era::Modern { 404 } else { 200 }, -32601, "Method not found")
    }

    /// Its parameters are not those of its method.
    pub(in crate::connector) fn params(era: Era, why: impl Into<String>) -> Self {
        Self::new(if era == Era::Modern { 400 } else { 200 }, -32602, why)
    }

    fn new(status: u16, code: i64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }
}
