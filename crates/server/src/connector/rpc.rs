//! JSON-RPC 2.0 in the revisions of the Model Context Protocol, and the contract's bare call (contract 4.4).
//!
//! Objects with a repeated member are rejected. This module does no I/O and is independent of the tools. Of HTTP, it
//! handles only the MCP headers and the status of an answer.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, json};

/// A message from a client.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) enum RpcMessage {
    /// A request that expects an answer.
    Request(RpcRequest),
    /// A notification or an unexpected answer, which gets no reply.
    NoReply,
}

#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) struct RpcRequest {
    /// The identifier: a text or a whole number.
    pub(in crate::connector) id: Value,
    pub(in crate::connector) method: String,
    /// The parameters.
    pub(in crate::connector) params: Map<String, Value>,
    /// The protocol era of the message, which determines the format of the answer.
    pub(in crate::connector) era: ProtocolEra,
}

/// Reads a message. `head` contains the HTTP headers that repeat parts of the message.
///
/// # Errors
/// The answer to an invalid message.
pub(in crate::connector) fn read_message(head: Option<RpcHeaders<'_>>, body: &[u8]) -> Result<RpcMessage, RpcReply> {
    let version = head.and_then(|head| head.version);
    // If the body cannot be read, only the headers show the protocol era.
    let guessed_era = if is_legacy(version) { ProtocolEra::Legacy } else { ProtocolEra::Modern };
    let refuse = |id: Option<&Value>, era, fault| error_reply(id, era, &fault);
    let document = read_document(body).map_err(|_| refuse(None, guessed_era, RpcError::parse_error()))?;
    let Value::Object(mut message) = document.value else {
        return Err(refuse(
            None,
            guessed_era,
            RpcError::invalid_request("the message must be one object; batches are not supported"),
        ));
    };
    let id = message.remove("id");
    let known_id = id.as_ref().filter(|id| is_id(id) && !document.repeated.has_outermost("id"));
    let invalid = |reason: &str| refuse(known_id, guessed_era, RpcError::invalid_request(reason));
    if let Some(problem) = document.repeated.describe_problem() {
        return Err(invalid(&problem));
    }
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    if !message.contains_key("method") && (message.contains_key("result") || message.contains_key("error")) {
        return Ok(RpcMessage::NoReply);
    }
    let Some(Value::String(method)) = message.remove("method") else {
        return Err(invalid("`method` must be a string"));
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(invalid("`params` must be an object")),
    };
    let era = ProtocolEra::from_message(version, &method, &params);
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

/// Checks the metadata and headers that the revision without a handshake requires.
fn check_modern_request(
    head: Option<RpcHeaders<'_>>,
    method: &str,
    params: &Map<String, Value>,
) -> Result<(), RpcError> {
    let meta = |key: &str| params.get("_meta").and_then(|meta| meta.get(key));
    let body_version = meta(VERSION).and_then(Value::as_str);
    let header_version = head.and_then(|head| head.version);
    if let (Some(body_version), Some(head)) = (body_version, head)
        && let Some(mismatch) = head.check_version(body_version)
    {
        return Err(RpcError::header_mismatch(mismatch));
    }
    // The metadata must not name a revision with a handshake; the header can.
    let is_supported =
        |version: &&str| *version == MODERN || (LEGACY.contains(version) && body_version != Some(*version));
    if let Some(version) = [body_version, header_version].into_iter().flatten().find(|version| !is_supported(version)) {
        return Err(RpcError::unsupported_version(version));
    }
    let version = body_version.ok_or_else(|| RpcError::missing_meta(VERSION))?;
    if !meta(CAPABILITIES).is_some_and(Value::is_object) {
        return Err(RpcError::missing_meta(CAPABILITIES));
    }
    match head.and_then(|head| head.check_headers(version, method, params.get("name"))) {
        Some(mismatch) => Err(RpcError::header_mismatch(mismatch)),
        None => Ok(()),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The revision without a handshake: each message names its revision.
pub(in crate::connector) const MODERN: &str = "2026-07-28";
/// The revisions with a handshake, newest first.
pub(in crate::connector) const LEGACY: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

/// The key of the revision in the metadata of a message.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key of the client's capabilities.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The way in which a message is read and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::connector) enum ProtocolEra {
    /// The message is read as in [`MODERN`].
    Modern,
    /// The message is read as in one of [`LEGACY`], or as the bare call of contract 4.4.
    Legacy,
}

impl ProtocolEra {
    /// Determines the protocol era of a message from the metadata, the headers, and methods that exist in one era only.
    fn from_message(header_version: Option<&str>, method: &str, params: &Map<String, Value>) -> Self {
        let meta = params.get("_meta");
        let has = |key| meta.and_then(|meta| meta.get(key)).is_some();
        let modern = has(VERSION) || has(CAPABILITIES) || !is_legacy(header_version) || method == "server/discover";
        if modern { ProtocolEra::Modern } else { ProtocolEra::Legacy }
    }
}

/// Whether the HTTP header of a message names no revision, or an old revision.
fn is_legacy(header_version: Option<&str>) -> bool {
    header_version.is_none_or(|version| LEGACY.contains(&version))
}

/// The HTTP headers that repeat parts of a message.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::connector) struct RpcHeaders<'a> {
    /// `MCP-Protocol-Version`.
    pub(in crate::connector) version: Option<&'a str>,
    /// `Mcp-Method`.
    pub(in crate::connector) method: Option<&'a str>,
    /// `Mcp-Name`.
    pub(in crate::connector) name: Option<&'a str>,
}

impl RpcHeaders<'_> {
    /// Returns a problem if the headers name another revision than the message does.
    ///
    /// Different revisions are a contradiction even if this server does not know them.
    fn check_version(self, version: &str) -> Option<String> {
        self.version.and_then(|value| check_header("MCP-Protocol-Version", Some(value), version))
    }

    /// Returns a problem if the headers differ from the message.
    fn check_headers(self, version: &str, method: &str, name: Option<&Value>) -> Option<String> {
        check_header("MCP-Protocol-Version", self.version, version)
            .or_else(|| check_header("Mcp-Method", self.method, method))
            .or_else(|| match method {
                "tools/call" => check_header("Mcp-Name", self.name, name?.as_str()?),
                _ => None,
            })
    }
}

/// Returns a problem if a header differs from its expected value.
fn check_header(header: &str, value: Option<&str>, expected: &str) -> Option<String> {
    match value.map(decode_header) {
        Some(Some(value)) if value == expected => None,
        Some(Some(_)) => Some(format!("`{header}` does not match the body")),
        Some(None) => Some(format!("`{header}` cannot be decoded")),
        None => Some(format!("`{header}` is missing")),
    }
}

/// Decodes a header: plain text, or Base64 for text that a header cannot contain.
fn decode_header(text: &str) -> Option<String> {
    match text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// An invalid message (JSON-RPC 2.0, 5.1): a protocol error, not a tool error.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) struct RpcError {
    /// The status of the HTTP answer.
    pub(in crate::connector) status: u16,
    code: i64,
    message: String,
    data: Option<Value>,
}

impl RpcError {
    /// The error for a body that is not JSON.
    fn parse_error() -> Self {
        Self::new(400, -32700, "Parse error")
    }

    /// The error for a message that is JSON, but not a valid request.
    pub(in crate::connector) fn invalid_request(reason: &str) -> Self {
        Self::new(400, -32600, format!("Invalid Request: {reason}"))
    }

    /// The error for a message that names a revision unknown to this server.
    fn unsupported_version(requested: &str) -> Self {
        let supported: Vec<&str> = [MODERN].into_iter().chain(LEGACY).collect();
        let data = json!({ "supported": supported, "requested": requested });
        Self { data: Some(data), ..Self::new(400, -32022, "Unsupported protocol version") }
    }

    /// The error for a message without metadata that its revision requires.
    fn missing_meta(key: &str) -> Self {
        Self::new(400, -32602, format!("Invalid params: `_meta` has no `{key}`"))
    }

    /// The error for an HTTP header that contradicts the body.
    fn header_mismatch(reason: String) -> Self {
        Self::new(400, -32020, format!("Header mismatch: {reason}"))
    }

    /// The error for a method that does not exist.
    pub(in crate::connector) fn unknown_method(era: ProtocolEra) -> Self {
        Self::new(if era == ProtocolEra::Modern { 404 } else { 200 }, -32601, "Method not found")
    }

    /// The error for parameters that do not fit the method.
    pub(in crate::connector) fn invalid_params(era: ProtocolEra, reason: impl Into<String>) -> Self {
        Self::new(if era == ProtocolEra::Modern { 400 } else { 200 }, -32602, reason)
    }

    fn new(status: u16, code: i64, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None }
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::connector) struct RpcReply {
    /// The status of the HTTP answer.
    pub(in crate::connector) status: u16,
    pub(in crate::connector) body: Value,
}

/// The answer to a request that succeeded; in the revision without a handshake, the answer names this server.
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

/// The answer to an invalid message or an unknown method.
pub(in crate::connector) fn error_reply(id: Option<&Value>, era: ProtocolEra, fault: &RpcError) -> RpcReply {
    let mut error = json!({ "code": fault.code, "message": fault.message });
    if let Some(data) = &fault.data {
        error["data"] = data.clone();
    }
    let mut body = json!({ "jsonrpc": "2.0", "error": error });
    // Without a known identifier, the older revisions write null, and the newest revision omits the member.
    match (id, era) {
        (Some(id), _) => body["id"] = id.clone(),
        (None, ProtocolEra::Legacy) => body["id"] = Value::Null,
        (None, ProtocolEra::Modern) => {}
    }
    RpcReply { status: fault.status, body }
}

/// The maximum length of a member name that an error repeats, in characters.
const MAX_NAME_LENGTH: usize = 64;

/// A parsed JSON document. If a member is repeated, its first value counts.
struct JsonDocument {
    value: Value,
    /// The repeated members, at any depth.
    repeated: RepeatedMembers,
}

/// Members that an object names more than once.
#[derive(Default)]
struct RepeatedMembers {
    /// The first repeated member.
    first: Option<String>,
    /// The repeated members of the outermost object.
    outermost: Vec<String>,
}

impl RepeatedMembers {
    /// Describes the repeated member for which a document is rejected; `None` if no member is repeated.
    fn describe_problem(&self) -> Option<String> {
        let name = self.first.as_ref()?;
        Some(match name.chars().count() {
            0..=MAX_NAME_LENGTH => {
                format!("the member `{}` appears twice", campaign_core::finding::escape_to_one_line(name))
            }
            _ => "a member appears twice".to_owned(),
        })
    }

    /// Whether the outermost object repeats this member.
    fn has_outermost(&self, name: &str) -> bool {
        self.outermost.iter().any(|repeated| repeated == name)
    }
}

/// Reads a JSON document and notes repeated members.
///
/// # Errors
/// If the body is not JSON.
fn read_document(body: &[u8]) -> serde_json::Result<JsonDocument> {
    let mut repeated = RepeatedMembers::default();
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = JsonReader { repeated: &mut repeated, depth: 0 }.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(JsonDocument { value, repeated })
}

/// Deserializes a JSON value and records repeated members.
struct JsonReader<'r> {
    repeated: &'r mut RepeatedMembers,
    /// The nesting depth of the value; 0 for the whole document.
    depth: usize,
}

impl JsonReader<'_> {
    fn nested(&mut self) -> JsonReader<'_> {
        JsonReader { repeated: self.repeated, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for JsonReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self.nested())? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self.nested())?;
            if !object.contains_key(&name) {
                object.insert(name, value);
                continue;
            }
            if self.depth == 0 {
                self.repeated.outermost.push(name.clone());
            }
            self.repeated.first.get_or_insert(name);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod json_tests {
    use proptest::prelude::*;
    use serde_json::json;

    use crate::connector::rpc::*;

    #[test]
    fn repeated_member_is_found_at_any_depth() {
        for (body, name) in [
            (r#"{"a": 1, "a": 1}"#, "`a`"),
            (r#"{"a": {"b": [{"c": 1, "d": 2, "c": 3}]}}"#, "`c`"),
            (r#"{"phone": 1, "ph\u006fne": 2}"#, "`phone`"),
            (r#"{"a\nb": 1, "a\nb": 2}"#, "`a⏎b`"),
        ] {
            let problem = read_document(body.as_bytes()).unwrap().repeated.describe_problem();
            assert_eq!(problem, Some(format!("the member {name} appears twice")), "{body}");
        }
        let long = format!(r#"{{"{0}": 1, "{0}": 2}}"#, "x".repeat(65));
        let problem = read_document(long.as_bytes()).unwrap().repeated.describe_problem();
        assert_eq!(problem.as_deref(), Some("a member appears twice"));
        let nested = read_document(br#"{"id": 1, "a": {"id": 1, "id": 2}}"#).unwrap().repeated;
        assert!(nested.describe_problem().is_some() && !nested.has_outermost("id"));
        assert!(read_document(br#"{"id": 1, "id": 2}"#).unwrap().repeated.has_outermost("id"));
        assert_eq!(read_document(br#"[{"a": 1}, {"a": 1}]"#).unwrap().repeated.describe_problem(), None);
    }

    #[test]
    fn invalid_json_is_rejected() {
        for body in [&b"{"[..], b"", b"{} {}", b"\"\xff\"", b"{\"a\": 1,}"] {
            assert!(read_document(body).is_err(), "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn document_without_duplicates_parses_as_in_serde_json(
            numbers in prop::collection::vec(any::<f64>(), 0..4),
            texts in prop::collection::btree_map(any::<String>(), any::<Option<i64>>(), 0..4),
        ) {
            let body = json!({ "numbers": numbers, "texts": texts, "yes": true }).to_string();
            let JsonDocument { value, repeated } = read_document(body.as_bytes()).unwrap();
            prop_assert_eq!(value, serde_json::from_str::<Value>(&body).unwrap());
            prop_assert_eq!(repeated.describe_problem(), None);
        }
    }
}
