//! Parsing of requests into operations, from the contract and not from the client's encoder.
//!
//! This module reads the whole request: header, size, JSON, key and types.
//!
//! - `operation`: one item of `data` and its type;
//! - `stages`: messages and their stages;
//! - `fields`: the format of each value, and client identifiers, which are returned as they were sent.

pub(crate) mod fields;
pub(crate) mod operation;
pub(crate) mod stages;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::scenario::Scenario;

pub(crate) use fields::{ClientId, ClientIdKey, OperationFields};
pub(crate) use operation::{MessageQuery, OperationType, RequestItem, RequestedOperation, TemplateCall};
pub(crate) use stages::SendRequest;

/// The maximum size of a body, in bytes.
pub(crate) const BODY_LIMIT: usize = 8 << 20;

/// Why an envelope is rejected: the top-level `error` (contract 2.2 and 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnvelopeRejection {
    /// The text of the error.
    pub(crate) error: &'static str,
    /// The number of its operations, as far as known.
    pub(crate) operations: usize,
}

impl EnvelopeRejection {
    const fn new(error: &'static str) -> Self {
        Self { error, operations: 0 }
    }
}

/// A request from the network.
#[derive(Clone, Copy)]
pub(crate) struct RawRequest<'a> {
    /// The header, if present.
    pub(crate) content_type: Option<&'a str>,
    /// The body; `None` if it is larger than [`BODY_LIMIT`].
    pub(crate) body: Option<&'a [u8]>,
}

/// The API keys of a sandbox's accounts.
pub(crate) struct AccountKeys(Vec<Option<SecretString>>);

impl AccountKeys {
    /// The accounts' own keys; the first account without a key has the server's key.
    pub(crate) fn for_scenario(scenario: &Scenario, server: &SecretString) -> Self {
        let mut server = Some(server.clone());
        let keys = scenario.accounts.iter();
        Self(keys.map(|account| account.key.as_deref().map(Into::into).or_else(|| server.take())).collect())
    }

    /// Whether every key belongs to exactly one account.
    pub(crate) fn are_distinct(&self) -> bool {
        let keys: Vec<&str> = self.0.iter().flatten().map(ExposeSecret::expose_secret).collect();
        keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key))
    }

    /// The index of a key's account.
    fn find_account(&self, auth: &str) -> Option<u32> {
        let opens = |key: &Option<SecretString>| key.as_ref().is_some_and(|key| key.expose_secret() == auth);
        self.0.iter().position(opens).and_then(|index| u32::try_from(index).ok())
    }
}

/// A parsed request: its account and its operations.
pub(crate) struct ParsedEnvelope {
    /// The index of the account.
    pub(crate) account: u32,
    /// Its operations in order; at least one.
    pub(crate) items: Vec<RequestItem>,
}

impl ParsedEnvelope {
    /// Whether the envelope contains an operation that reaches a phone; only then do faults count it.
    pub(crate) fn holds_sends(&self) -> bool {
        self.items.iter().any(|item| item.kind.reaches_a_phone())
    }
}

/// Parses a request.
///
/// The checks are in this order: header, format, key, operations.
pub(crate) fn parse_envelope(request: RawRequest, keys: &AccountKeys) -> Result<ParsedEnvelope, EnvelopeRejection> {
    if !request.content_type.is_some_and(is_json_media_type) {
        return Err(EnvelopeRejection::new("Content-Type must be application/json"));
    }
    let body = request.body.ok_or(EnvelopeRejection::new("The request is larger than 8 MiB"))?;
    let envelope: Value =
        serde_json::from_slice(body).map_err(|_| EnvelopeRejection::new("The request is not valid JSON"))?;
    let account = envelope.get("auth").and_then(Value::as_str).and_then(|auth| keys.find_account(auth));
    let account = account.ok_or(EnvelopeRejection::new("Access denied"))?;
    let data = envelope.get("data").and_then(Value::as_array).filter(|data| !data.is_empty());
    let data = data.ok_or(EnvelopeRejection::new("data must be an array of at least one operation"))?;
    let typed = data.iter().map(parse_type).collect::<Option<Vec<_>>>();
    let typed = typed.ok_or(EnvelopeRejection { error: "Invalid message type", operations: data.len() })?;
    let items = typed.into_iter().map(|(kind, fields)| RequestItem::from_json(kind, fields)).collect();
    Ok(ParsedEnvelope { account, items })
}

fn parse_type(item: &Value) -> Option<(OperationType, &Map<String, Value>)> {
    let fields = item.as_object()?;
    Some((OperationType::from_name(fields.get("type")?.as_str()?)?, fields))
}

fn is_json_media_type(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default();
    media.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::AccountSettings;

    fn keys() -> AccountKeys {
        AccountKeys::for_scenario(&Scenario::default(), &"key".into())
    }

    fn read_json(body: &str) -> Result<usize, &'static str> {
        let request = RawRequest { content_type: Some("application/json; charset=utf-8"), body: Some(body.as_bytes()) };
        parse_envelope(request, &keys()).map(|envelope| envelope.items.len()).map_err(|rejection| rejection.error)
    }

    #[test]
    fn server_key_opens_first_account_without_a_key() {
        let account = |key: Option<&str>| AccountSettings { key: key.map(str::to_owned), ..AccountSettings::default() };
        let accounts = vec![account(Some("shop")), account(None), account(None), account(Some("shop"))];
        let keys = AccountKeys::for_scenario(&Scenario { accounts, ..Scenario::default() }, &"server".into());
        let opened = ["shop", "server", "", "Shop"].map(|key| keys.find_account(key));
        assert_eq!(opened, [Some(0), Some(1), None, None]);
    }

    #[test]
    fn envelope_is_rejected_with_its_first_error() {
        let denied = Err("Access denied");
        let no_data = Err("data must be an array of at least one operation");
        let bad_type = Err("Invalid message type");
        for (body, result) in [
            (r#"{"auth":"key","data":[{"type":"balance"}]}"#, Ok(1)),
            (r#"{"auth":"key","data":[{"type":"balance"},{"type":"sms"}]}"#, Ok(2)),
            ("", Err("The request is not valid JSON")),
            (r#"{"auth":"key","data":["#, Err("The request is not valid JSON")),
            ("null", denied),
            ("[]", denied),
            (r#"{"data":[{"type":"balance"}]}"#, denied),
            (r#"{"auth":"Key","data":[{"type":"balance"}]}"#, denied),
            (r#"{"auth":5,"data":[{"type":"balance"}]}"#, denied),
            (r#"{"auth":"wrong"}"#, denied),
            (r#"{"auth":"key"}"#, no_data),
            (r#"{"auth":"key","data":[]}"#, no_data),
            (r#"{"auth":"key","data":{"type":"balance"}}"#, no_data),
            (r#"{"auth":"key","data":[5]}"#, bad_type),
            (r#"{"auth":"key","data":[{}]}"#, bad_type),
            (r#"{"auth":"key","data":[{"type":"balance"},{"type":"whatsapp"}]}"#, bad_type),
        ] {
            assert_eq!(read_json(body), result, "{body}");
        }
    }

    #[test]
    fn valid_json_without_content_type_is_rejected() {
        let body = Some(br#"{"auth":"key","data":[{"type":"balance"}]}"#.as_slice());
        for content_type in [None, Some(""), Some("text/plain"), Some("application/jsonp")] {
            let rejection = parse_envelope(RawRequest { content_type, body }, &keys()).err().expect("refused");
            assert_eq!(rejection.error, "Content-Type must be application/json");
        }
    }

    #[test]
    fn body_over_the_limit_is_rejected() {
        let rejection = parse_envelope(RawRequest { content_type: Some("application/json"), body: None }, &keys())
            .err()
            .expect("refused");
        assert_eq!(rejection.error, "The request is larger than 8 MiB");
        assert_eq!(BODY_LIMIT, 8 * 1024 * 1024);
    }
}
