//! Parsing requests into operations, written from the contract and not from the client's encoder.
//!
//! This module reads the whole request: header, size, JSON and key, and the items of `data` with their types.
//!
//! `fields` reads the fields of messages and their stages, the format of each value, and client identifiers, which are
//! returned as they were sent.

pub(crate) mod fields;

use std::sync::Arc;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use crate::platform::OperationError;
use crate::scenario::Scenario;
use campaign_core::domain::{Channel, Phone};

pub(crate) use fields::{ClientId, ClientIdKey, OperationFields, SendRequest};

/// The maximum size of a body, in bytes.
pub(crate) const BODY_LIMIT: usize = 8 << 20;

/// The reason why an envelope is rejected: the top-level `error` (contract 2.2 and 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnvelopeRejection {
    /// The text of the error.
    pub(crate) error: &'static str,
    /// The number of operations in the envelope; 0 if it is unknown.
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
    /// The `Content-Type` header, if present.
    pub(crate) content_type: Option<&'a str>,
    /// The body; `None` if it is larger than [`BODY_LIMIT`].
    pub(crate) body: Option<&'a [u8]>,
}

/// The API keys of a sandbox's accounts.
pub(crate) struct AccountKeys(Vec<Option<SecretString>>);

impl AccountKeys {
    /// Collects the keys of the accounts; the first account without a key gets the server's key.
    pub(crate) fn for_scenario(scenario: &Scenario, server_key: &SecretString) -> Self {
        let mut server_key = Some(server_key.clone());
        let keys = scenario.accounts.iter();
        Self(keys.map(|account| account.key.as_deref().map(Into::into).or_else(|| server_key.take())).collect())
    }

    /// Whether every key belongs to exactly one account.
    pub(crate) fn are_distinct(&self) -> bool {
        let keys: Vec<&str> = self.0.iter().flatten().map(ExposeSecret::expose_secret).collect();
        keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key))
    }

    /// Finds the index of the account to which a key belongs.
    fn find_account(&self, auth: &str) -> Option<u32> {
        let matches = |key: &Option<SecretString>| key.as_ref().is_some_and(|key| key.expose_secret() == auth);
        self.0.iter().position(matches).and_then(|index| u32::try_from(index).ok())
    }
}

/// A parsed request: its account and its operations.
pub(crate) struct ParsedEnvelope {
    /// The index of the account.
    pub(crate) account: u32,
    /// The operations of the envelope in order; at least one.
    pub(crate) items: Vec<RequestItem>,
}

impl ParsedEnvelope {
    /// Whether the envelope contains an operation that reaches a phone; faults count only such envelopes.
    pub(crate) fn contains_sends(&self) -> bool {
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

/// An item of an envelope: a valid operation, or the reason why it is rejected.
#[derive(Clone, Debug)]
pub(crate) struct RequestItem {
    pub(crate) kind: OperationType,
    /// The client's identifier.
    pub(crate) id: Option<ClientId>,
    /// The recipients; empty if the operation reaches no phone or a number is invalid.
    pub(crate) phones: Vec<Phone>,
    /// The address for statuses of its messages, if it is valid.
    pub(crate) hook: Option<Arc<str>>,
    pub(crate) operation: Result<RequestedOperation, OperationError>,
}

/// A valid operation.
#[derive(Clone, Debug)]
pub(crate) enum RequestedOperation {
    /// The account's balance.
    Balance,
    /// The account's sender names.
    Senders,
    /// The status of a message.
    Status(MessageInquiry),
    /// A message to each of the item's phones; there is at least one.
    Send(SendRequest),
    /// A lookup of a number.
    Lookup(Phone),
    CodeCall,
    /// An operation on the account's templates.
    Template(TemplateCall),
}

/// An operation on templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateCall {
    /// Create an SMS template.
    Create { name: Box<str>, text: Box<str> },
    /// List the SMS templates.
    List,
    /// Delete the SMS template with this number.
    Delete(u64),
    /// Create a Viber template.
    CreateViber { signature: Box<str>, text: Box<str> },
    /// List the Viber templates.
    ListViber,
    /// Delete the Viber template with this number; if `text` is given, only if the template has this text.
    DeleteViber { id: u64, text: Option<Box<str>> },
}

/// The identifier in a status request.
#[derive(Clone, Debug)]
pub(crate) enum MessageInquiry {
    /// The client's identifier.
    Id(ClientId),
    /// The gateway's identifier.
    MsgId(ClientId),
}

impl RequestItem {
    /// Reads the fields of an operation of this type.
    pub(crate) fn from_json(kind: OperationType, map: &Map<String, Value>) -> Self {
        let fields = OperationFields::from_map(map);
        let id = fields.optional_id("id");
        // Other operations ignore `phone`, like any additional property.
        let phones = if kind.reaches_a_phone() { fields.read_phones() } else { Ok(Vec::new()) };
        let operation = match (&id, &phones) {
            (Err(refusal), _) | (_, Err(refusal)) => Err(refusal.clone()),
            (Ok(id), Ok(phones)) => read_operation(kind, &fields, id.as_ref(), phones),
        };
        let hook = if kind.is_message() { fields.usable_url("hook").map(Arc::from) } else { None };
        Self { kind, id: id.unwrap_or_default(), phones: phones.unwrap_or_default(), hook, operation }
    }
}

fn read_operation(
    kind: OperationType,
    fields: &OperationFields,
    id: Option<&ClientId>,
    phones: &[Phone],
) -> Result<RequestedOperation, OperationError> {
    match kind {
        OperationType::Balance => Ok(RequestedOperation::Balance),
        OperationType::Sender => Ok(RequestedOperation::Senders),
        OperationType::Status => read_message_inquiry(fields, id).map(RequestedOperation::Status),
        OperationType::Hlr => single_phone(phones).map(RequestedOperation::Lookup),
        OperationType::CallOtp => single_phone(phones).map(|_| RequestedOperation::CodeCall),
        OperationType::Pipeline => fields::read_pipeline(fields).map(RequestedOperation::Send),
        OperationType::TemplateCreate => read_template_create(fields).map(RequestedOperation::Template),
        OperationType::TemplateList => Ok(RequestedOperation::Template(TemplateCall::List)),
        OperationType::TemplateDelete => {
            read_template_id(fields, id).map(|id| RequestedOperation::Template(TemplateCall::Delete(id)))
        }
        OperationType::ViberTemplateCreate => read_viber_template_create(fields).map(RequestedOperation::Template),
        OperationType::ViberTemplateList => Ok(RequestedOperation::Template(TemplateCall::ListViber)),
        OperationType::ViberTemplateDelete => read_viber_template_delete(fields, id).map(RequestedOperation::Template),
        // Every other type sends a message through its channels.
        _ => fields::read_combined(kind.channels(), fields).map(RequestedOperation::Send),
    }
}

fn read_template_create(fields: &OperationFields) -> Result<TemplateCall, OperationError> {
    let (name, text) = (fields.required_text("name")?.into(), fields.required_text("template")?.into());
    Ok(TemplateCall::Create { name, text })
}

fn read_viber_template_create(fields: &OperationFields) -> Result<TemplateCall, OperationError> {
    let (signature, text) = (fields.required_signature()?.into(), fields.required_text("template")?.into());
    Ok(TemplateCall::CreateViber { signature, text })
}

fn read_viber_template_delete(fields: &OperationFields, id: Option<&ClientId>) -> Result<TemplateCall, OperationError> {
    let text = fields.optional_text("template")?.map(Box::from);
    read_template_id(fields, id).map(|id| TemplateCall::DeleteViber { id, text })
}

/// Reads the number of a template. Unlike the `id` of a message, this number is assigned by the gateway.
fn read_template_id(fields: &OperationFields, id: Option<&ClientId>) -> Result<u64, OperationError> {
    match id.ok_or_else(|| fields.missing_field("id"))?.to_key() {
        ClientIdKey::Number(number) => Ok(number),
        ClientIdKey::Text(_) => Err(fields.invalid_field("id")),
    }
}

/// Reads which message the request asks about. The gateway's identifier takes precedence, because a client's identifier
/// might have been used twice.
fn read_message_inquiry(fields: &OperationFields, id: Option<&ClientId>) -> Result<MessageInquiry, OperationError> {
    match (fields.optional_id("msg_id")?, id) {
        (Some(msg_id), _) => Ok(MessageInquiry::MsgId(msg_id)),
        (None, Some(id)) => Ok(MessageInquiry::Id(id.clone())),
        (None, None) => Err(fields.missing_field("id")),
    }
}

/// Returns the only phone number of a lookup or verification call; several phone numbers are an error.
fn single_phone(phones: &[Phone]) -> Result<Phone, OperationError> {
    match phones {
        [phone] => Ok(*phone),
        _ => Err(OperationError::PHONE),
    }
}

/// Declares the types with their names on the wire and their channels in order.
macro_rules! kinds {
    ($($kind:ident = $word:literal $(tries [$($channel:ident),*])?;)*) => {
        /// The `type` of an operation (contract 2.1).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum OperationType { $($kind),* }

        /// Every type with its name, in the order of the discriminants.
        pub(crate) const KINDS: &[(OperationType, &str)] = &[$((OperationType::$kind, $word)),*];

        impl OperationType {
            /// The channels of an operation, in order; a pipeline names its channels in the request.
            pub(crate) fn channels(self) -> &'static [Channel] {
                match self {
                    $(OperationType::$kind => &[$($(Channel::$channel),*)?],)*
                }
            }
        }
    };
}

kinds! {
    Balance = "balance";
    CallOtp = "call/otp" tries [CallOtp];
    Hlr = "hlr" tries [Hlr];
    Pipeline = "pipeline";
    Rcs = "rcs" tries [Rcs];
    RcsSms = "rcs+sms" tries [Rcs, Sms];
    RcsViberSms = "rcs+viber+sms" tries [Rcs, Viber, Sms];
    Sender = "sender";
    Sms = "sms" tries [Sms];
    Status = "status";
    Telegram = "telegram" tries [Telegram];
    TemplateCreate = "template/create";
    TemplateDelete = "template/delete";
    TemplateList = "template/list";
    ViberTemplateCreate = "template/viber/create";
    ViberTemplateDelete = "template/viber/delete";
    ViberTemplateList = "template/viber/list";
    Viber = "viber" tries [Viber];
    ViberSms = "viber+sms" tries [Viber, Sms];
    Voice = "voice" tries [Voice];
}

impl OperationType {
    /// The name of the operation type in requests.
    pub(crate) fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The type with this name; `whatsapp` is not a type (contract 2.1).
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Whether the operation is a message, which can have a `hook` (contract 6.3).
    pub(crate) fn is_message(self) -> bool {
        self.reaches_a_phone() && !matches!(self, OperationType::CallOtp | OperationType::Hlr)
    }

    /// Whether the operation reaches a phone, and therefore creates a message with a status.
    pub(crate) fn reaches_a_phone(self) -> bool {
        self == OperationType::Pipeline || !self.channels().is_empty()
    }
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
    fn server_key_grants_access_to_the_first_keyless_account() {
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
    fn body_without_a_json_content_type_is_rejected() {
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

#[cfg(test)]
mod operation_tests {
    use serde_json::json;

    use super::KINDS;
    use super::*;

    fn rejection_text(kind: OperationType, fields: Value) -> String {
        let item = RequestItem::from_json(kind, fields.as_object().expect("an object"));
        item.operation.expect_err("refused").text().to_owned()
    }

    #[test]
    fn only_operations_sent_to_a_phone_require_a_phone_number() {
        for (kind, _) in KINDS.iter().copied() {
            let item = RequestItem::from_json(kind, json!({"id": 1}).as_object().expect("an object"));
            let refused_for_phone = matches!(&item.operation, Err(refusal) if *refusal == OperationError::PHONE);
            assert_eq!(refused_for_phone, kind.reaches_a_phone(), "{}", kind.name());
        }
    }

    #[test]
    fn lookup_and_code_call_accept_only_one_number() {
        for kind in [OperationType::Hlr, OperationType::CallOtp] {
            let two = json!({"phone": "380501234567,380671234567"});
            assert_eq!(rejection_text(kind, two), "Please enter valid receiver phone number");
        }
    }

    #[test]
    fn invalid_id_is_rejected() {
        assert_eq!(rejection_text(OperationType::Status, json!({"id": [1]})), "Error in id");
        assert_eq!(rejection_text(OperationType::Status, json!({"msg_id": true})), "Error in msg_id");
        assert_eq!(rejection_text(OperationType::Status, json!({})), "Please enter id");
    }

    #[test]
    fn template_call_error_names_the_missing_or_invalid_field() {
        for (kind, fields, message) in [
            (OperationType::TemplateCreate, json!({"template": "Hi"}), "Please enter name"),
            (OperationType::TemplateCreate, json!({"name": "hello"}), "Please enter template"),
            (OperationType::TemplateDelete, json!({}), "Please enter id"),
            (OperationType::TemplateDelete, json!({"id": "seven"}), "Error in id"),
            (OperationType::ViberTemplateCreate, json!({"template": "Hi"}), "Error in Alpha-name"),
            (
                OperationType::ViberTemplateCreate,
                json!({"signature": "OlenaCo", "template": " "}),
                "Please enter template",
            ),
            (OperationType::ViberTemplateDelete, json!({"template": "Hi"}), "Please enter id"),
            (OperationType::ViberTemplateDelete, json!({"id": 1, "template": 2}), "Error in template"),
        ] {
            assert_eq!(rejection_text(kind, fields.clone()), message, "{} {fields}", kind.name());
        }
    }

    #[test]
    fn hook_is_stored_unchanged_and_only_for_messages() {
        let hook = |kind, hook: &str| {
            RequestItem::from_json(kind, json!({"hook": hook}).as_object().expect("an object"))
                .hook
                .as_deref()
                .map(str::to_owned)
        };
        let url = "https://A.example:8443/Hook?token=a%2Fb&run=1&&#x";
        assert_eq!(hook(OperationType::Sms, url).as_deref(), Some(url));
        for (kind, _) in KINDS.iter().copied() {
            assert_eq!(hook(kind, url).is_some(), kind.is_message(), "{}", kind.name());
        }
        assert_eq!(hook(OperationType::Sms, "not an address"), None);
    }
}

#[cfg(test)]
mod kind_tests {
    use super::*;

    #[test]
    fn operation_type_has_the_same_channels_as_in_the_client() {
        for kind in campaign_core::domain::OperationKind::ALL {
            let known = OperationType::from_name(kind.name()).map(OperationType::channels);
            assert_eq!(known, Some(kind.channels()), "{kind}");
        }
    }

    #[test]
    fn only_operation_types_in_the_contract_are_known() {
        for (place, (kind, _)) in KINDS.iter().enumerate() {
            assert_eq!(OperationType::from_name(kind.name()), Some(*kind));
            assert_eq!(*kind as usize, place);
        }
        assert_eq!(OperationType::from_name("whatsapp"), None);
        assert_eq!(OperationType::from_name("SMS"), None);
    }
}
