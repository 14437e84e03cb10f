//! Operations in a request: the items of an envelope's `data`.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ClientId, ClientIdKey, OperationFields, SendRequest, stages};
use crate::platform::OperationError;
use campaign_core::domain::{Channel, Phone};

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
    Status(MessageQuery),
    /// A message to each of the item's phones; there is at least one.
    Send(SendRequest),
    /// A lookup of a number.
    Lookup(Phone),
    /// A call with a code.
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
    /// Delete the Viber template with that number, if its text matches the given text.
    DeleteViber { id: u64, text: Option<Box<str>> },
}

/// The identifier in a status request.
#[derive(Clone, Debug)]
pub(crate) enum MessageQuery {
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
        OperationType::Status => read_message_query(fields, id).map(RequestedOperation::Status),
        OperationType::Hlr => single_phone(phones).map(RequestedOperation::Lookup),
        OperationType::CallOtp => single_phone(phones).map(|_| RequestedOperation::CodeCall),
        OperationType::Pipeline => stages::read_pipeline(fields).map(RequestedOperation::Send),
        OperationType::TemplateCreate => read_create(fields).map(RequestedOperation::Template),
        OperationType::TemplateList => Ok(RequestedOperation::Template(TemplateCall::List)),
        OperationType::TemplateDelete => {
            read_template_id(fields, id).map(|id| RequestedOperation::Template(TemplateCall::Delete(id)))
        }
        OperationType::ViberTemplateCreate => read_create_viber(fields).map(RequestedOperation::Template),
        OperationType::ViberTemplateList => Ok(RequestedOperation::Template(TemplateCall::ListViber)),
        OperationType::ViberTemplateDelete => read_delete_viber(fields, id).map(RequestedOperation::Template),
        // Every other type is a message through the type's channels.
        _ => stages::read_combined(kind.channels(), fields).map(RequestedOperation::Send),
    }
}

fn read_create(fields: &OperationFields) -> Result<TemplateCall, OperationError> {
    let (name, text) = (fields.required_text("name")?.into(), fields.required_text("template")?.into());
    Ok(TemplateCall::Create { name, text })
}

fn read_create_viber(fields: &OperationFields) -> Result<TemplateCall, OperationError> {
    let (signature, text) = (fields.required_signature()?.into(), fields.required_text("template")?.into());
    Ok(TemplateCall::CreateViber { signature, text })
}

fn read_delete_viber(fields: &OperationFields, id: Option<&ClientId>) -> Result<TemplateCall, OperationError> {
    let text = fields.optional_text("template")?.map(Box::from);
    read_template_id(fields, id).map(|id| TemplateCall::DeleteViber { id, text })
}

/// The number of a template. Unlike a message's `id`, it is the gateway's own.
fn read_template_id(fields: &OperationFields, id: Option<&ClientId>) -> Result<u64, OperationError> {
    match id.ok_or_else(|| fields.missing_field("id"))?.to_key() {
        ClientIdKey::Number(number) => Ok(number),
        ClientIdKey::Text(_) => Err(fields.invalid_field("id")),
    }
}

/// The gateway's own identifier takes precedence: a client's might have been used twice.
fn read_message_query(fields: &OperationFields, id: Option<&ClientId>) -> Result<MessageQuery, OperationError> {
    match (fields.optional_id("msg_id")?, id) {
        (Some(msg_id), _) => Ok(MessageQuery::MsgId(msg_id)),
        (None, Some(id)) => Ok(MessageQuery::Id(id.clone())),
        (None, None) => Err(fields.missing_field("id")),
    }
}

/// The only phone of a lookup or verification call, which has a single result.
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
            /// The channels in order; a pipeline names its own.
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
    /// The word on the wire.
    pub(crate) fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// The type with this name; `whatsapp` is not a type (contract 2.1).
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// Whether the operation is a message, so that it may have a `hook` (contract 6.3).
    pub(crate) fn is_message(self) -> bool {
        self.reaches_a_phone() && !matches!(self, OperationType::CallOtp | OperationType::Hlr)
    }

    /// Whether the operation reaches a phone, so that it leaves a message with a status.
    pub(crate) fn reaches_a_phone(self) -> bool {
        self == OperationType::Pipeline || !self.channels().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::KINDS;
    use super::*;

    fn rejection_text(kind: OperationType, fields: Value) -> String {
        let item = RequestItem::from_json(kind, fields.as_object().expect("an object"));
        item.operation.expect_err("refused").text().to_owned()
    }

    #[test]
    fn only_operations_that_reach_a_phone_need_one() {
        for (kind, _) in KINDS.iter().copied() {
            let item = RequestItem::from_json(kind, json!({"id": 1}).as_object().expect("an object"));
            let refused_for_phone = matches!(&item.operation, Err(refusal) if *refusal == OperationError::PHONE);
            assert_eq!(refused_for_phone, kind.reaches_a_phone(), "{}", kind.name());
        }
    }

    #[test]
    fn lookup_and_code_call_take_one_number() {
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
    fn template_call_error_names_the_missing_field() {
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
        let letter = "https://A.example:8443/Hook?token=a%2Fb&run=1&&#x";
        assert_eq!(hook(OperationType::Sms, letter).as_deref(), Some(letter));
        for (kind, _) in KINDS.iter().copied() {
            assert_eq!(hook(kind, letter).is_some(), kind.is_message(), "{}", kind.name());
        }
        assert_eq!(hook(OperationType::Sms, "not an address"), None);
    }
}

#[cfg(test)]
mod kind_tests {
    use super::*;

    #[test]
    fn operation_type_tries_the_channels_of_the_client() {
        for kind in campaign_core::domain::OperationKind::ALL {
            let known = OperationType::from_name(kind.name()).map(OperationType::channels);
            assert_eq!(known, Some(kind.channels()), "{kind}");
        }
    }

    #[test]
    fn contract_types_are_known_but_whatsapp_is_not() {
        for (place, (kind, _)) in KINDS.iter().enumerate() {
            assert_eq!(OperationType::from_name(kind.name()), Some(*kind));
            assert_eq!(*kind as usize, place);
        }
        assert_eq!(OperationType::from_name("whatsapp"), None);
        assert_eq!(OperationType::from_name("SMS"), None);
    }
}
