//! Why a message is not understood.

use serde_json::{Value, json};

use super::revision::{LEGACY, MODERN, ProtocolEra};

/// A message that is not understood (JSON-RPC 2.0, 5.1): the protocol's errors, not those of tools.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) struct RpcError {
    /// The status of the HTTP answer.
    pub(in crate::connector) status: u16,
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
}

impl RpcError {
    /// The body is no JSON.
    pub(super) fn parse_error() -> Self {
        Self::new(400, -32700, "Parse error")
    }

    /// It is JSON, but no request.
    pub(in crate::connector) fn invalid_request(why: &str) -> Self {
        Self::new(400, -32600, format!("Invalid Request: {why}"))
    }

    /// It is to be read by a revision that is not known here.
    pub(super) fn unsupported_version(requested: &str) -> Self {
        let supported: Vec<&str> = [MODERN].into_iter().chain(LEGACY).collect();
        let data = json!({ "supported": supported, "requested": requested });
        Self { data: Some(data), ..Self::new(400, -32022, "Unsupported protocol version") }
    }

    /// It does not say of itself what its revision requires.
    pub(super) fn missing_meta(key: &str) -> Self {
        Self::new(400, -32602, format!("Invalid params: `_meta` has no `{key}`"))
    }

    /// Its head says something else than its body.
    pub(super) fn header_mismatch(why: String) -> Self {
        Self::new(400, -32020, format!("Header mismatch: {why}"))
    }

    /// There is no such method.
    pub(in crate::connector) fn unknown_method(era: ProtocolEra) -> Self {
        Self::new(if era == ProtocolEra::Modern { 404 } else { 200 }, -32601, "Method not found")
    }

    /// Its parameters are not those of its method.
    pub(in crate::connector) fn invalid_params(era: ProtocolEra, why: impl Into<String>) -> Self {
        Self::new(if era == ProtocolEra::Modern { 400 } else { 200 }, -32602, why)
    }

    fn new(status: u16, code: i64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }
}
