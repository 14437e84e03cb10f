//! What goes back.

use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::message::Request;
use super::revision::Era;

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) struct Reply {
    /// The status of the HTTP answer.
    pub(in crate::connector) status: u16,
    /// The body.
    pub(in crate::connector) body: Value,
}

/// The answer to a request that was carried out; the revision without a handshake has who answers in it.
pub(in crate::connector) fn complete(request: &Request, mut result: Map<String, Value>, server: &Value) -> Reply {
    if request.era == Era::Modern {
        result.insert("resultType".to_owned(), json!("complete"));
        result.insert("_meta".to_owned(), json!({ "io.modelcontextprotocol/serverInfo": server }));
    }
    Reply { status: 200, body: json!({ "jsonrpc": "2.0", "id": request.id, "result": result }) }
}

/// The answer to what was not understood, or does not exist.
pub(in crate::connector) fn failed(id: Option<&Value>, era: Era, fault: &Fault) -> Reply {
    let mut error = json!({ "code": fault.code, "message": fault.message });
    if let Some(data) = &fault.data {
        error["data"] = data.clone();
    }
    let mut body = json!({ "jsonrpc": "2.0", "error": error });
    // Where no identifier is known the older revisions have a null in its place, and the newest has nothing.
    match (id, era) {
        (Some(id), _) => body["id"] = id.clone(),
        (None, Era::Legacy) => body["id"] = Value::Null,
        (None, Era::Modern) => {}
    }
    Reply { status: fault.status, body }
}
