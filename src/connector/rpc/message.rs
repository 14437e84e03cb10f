//! What came, read and judged in the order that the published suites check.

use serde_json::{Map, Value};

use super::fault::RpcError;
use super::header::RpcHeaders;
use super::json::read_document;
use super::reply::{RpcReply, error_reply};
use super::revision::{CAPABILITIES, LEGACY, MODERN, ProtocolEra, VERSION, is_legacy};

/// A message of a client.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) enum RpcMessage {
    /// One that waits for an answer.
    Request(RpcRequest),
    /// A notification, or an answer to something that was never asked: nothing is answered.
    NoReply,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) struct RpcRequest {
    /// Its identifier: a text or a whole number.
    pub(in crate::connector) id: Value,
    /// What is wanted.
    pub(in crate::connector) method: String,
    /// With what.
    pub(in crate::connector) params: Map<String, Value>,
    /// How it is answered.
    pub(in crate::connector) era: ProtocolEra,
}

/// Reads a message; `head` is what its request repeats of it, where it came by HTTP.
///
/// # Errors
/// What to answer to one that is not understood.
pub(in crate::connector) fn read_message(head: Option<RpcHeaders<'_>>, body: &[u8]) -> Result<RpcMessage, RpcReply> {
    let version = head.and_then(|head| head.version);
    // Of what cannot be read nothing but the head tells the era.
    let guessed = if is_legacy(version) { ProtocolEra::Legacy } else { ProtocolEra::Modern };
    let refuse = |id: Option<&Value>, era, fault| error_reply(id, era, &fault);
    let document = read_document(body).map_err(|_| refuse(None, guessed, RpcError::parse_error()))?;
    let Value::Object(mut message) = document.value else {
        return Err(refuse(
            None,
            guessed,
            RpcError::invalid_request("the message must be one object; batches are not supported"),
        ));
    };
    let id = message.remove("id");
    let known = id.as_ref().filter(|id| is_id(id) && !document.repeated.has_outermost("id"));
    let shape = |why: &str| refuse(known, guessed, RpcError::invalid_request(why));
    if let Some(problem) = document.repeated.describe_problem() {
        return Err(shape(&problem));
    }
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(shape("`jsonrpc` must be \"2.0\""));
    }
    if !message.contains_key("method") && (message.contains_key("result") || message.contains_key("error")) {
        return Ok(RpcMessage::NoReply);
    }
    let Some(Value::String(method)) = message.remove("method") else { return Err(shape("`method` must be a string")) };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(shape("`params` must be an object")),
    };
    let era = ProtocolEra::of_message(version, &method, &params);
    let id = match id {
        None => return Ok(RpcMessage::NoReply),
        Some(id) if is_id(&id) => id,
        Some(_) => return Err(refuse(None, era, RpcError::invalid_request("`id` must be a string or a whole number"))),
    };
    if era == ProtocolEra::Modern {
        check_modern_request(head, &method, &params).map_err(|fault| refuse(Some(&id), era, fault))?;
    }
    Ok(RpcMessage::Request(RpcRequest { id, method, params, era }))
}

/// Whether a request says of itself what the revision without a handshake wants.
fn check_modern_request(
    head: Option<RpcHeaders<'_>>,
    method: &str,
    params: &Map<String, Value>,
) -> Result<(), RpcError> {
    let meta = |key: &str| params.get("_meta").and_then(|meta| meta.get(key));
    let named = meta(VERSION).and_then(Value::as_str);
    let in_head = head.and_then(|head| head.version);
    if let (Some(named), Some(head)) = (named, head)
        && let Some(why) = head.check_version(named)
    {
        return Err(RpcError::header_mismatch(why));
    }
    // A revision with a handshake is known, but no message that says this of itself is read by it.
    let known = |version: &&str| *version == MODERN || (LEGACY.contains(version) && named != Some(*version));
    if let Some(foreign) = [named, in_head].into_iter().flatten().find(|version| !known(version)) {
        return Err(RpcError::unsupported_version(foreign));
    }
    let version = named.ok_or_else(|| RpcError::missing_meta(VERSION))?;
    if !meta(CAPABILITIES).is_some_and(Value::is_object) {
        return Err(RpcError::missing_meta(CAPABILITIES));
    }
    match head.and_then(|head| head.check_headers(version, method, params.get("name"))) {
        Some(why) => Err(RpcError::header_mismatch(why)),
        None => Ok(()),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}
