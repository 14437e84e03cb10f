//! What goes back.

use serde_json::{Map, Value, json};

use super::fault::RpcError;
use super::message::RpcRequest;
use super::revision::ProtocolEra;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) struct RpcReply {
    /// The status of the HTTP answer.
    pub(in crate::connector) status: u16,
    /// The body.
    pub(in crate::connector) body: Value,
}

/// The answer to a request that was carried out; the revision without a handshake has who answers in it.
pub(in crate::connector) fn result_reply(
    request: &RpcRequest,
    mut result: Map<String, Value>,
    server: &Value,
) -> RpcReply {
    if request.era == ProtocolEra::Modern {
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("_meta".to_owned(), json!({ "io.modelcontextprotocol/serverInfo": server }));
    }
    RpcReply { status: 200, body: json!({ "jsonrpc": "2.0", "id": request.id, "result": result }) }
}

/// The answer to what was not understood, or does not exist.
pub(in crate::connector) fn error_reply(id: Option<&Value>, era: ProtocolEra, fault: &RpcError) -> RpcReply {
    let mut error = json!({ "code": fault.code, "message": fault.message });
    if let Some(data) = &fault.data {
        error["data"] = data.clone();
    }
    let mut body = json!({ "jsonrpc": "2.0", "error": error });
    // Where no identifier is known the older revisions have a null in its place, and the newest has nothing.
    match (id, era) {
        (Some(id), _) => body["id"] = id.clone(),
        (None, ProtocolEra::Legacy) => body["id"] = Value::Null,
        (None, ProtocolEra::Modern) => {}
    }
    RpcReply { status: fault.status, body }
}
