//! One item of an envelope's `data`, read.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ClientId, ClientIdKey, Kind, OperationFields, SendRequest, stages};
use crate::domain::Phone;
use crate::sandbox::platform::OperationError;

/// An item of an envelope: what is asked, or why it cannot be.
#[derive(Clone, Debug)]
pub(crate) struct RequestItem {
    pub kind: Kind,
    /// The client's identifier.
    pub id: Option<ClientId>,
    /// The recipients; none if it reaches no phone or one of them is no number.
    pub phones: Vec<Phone>,
    /// Where the statuses of its messages go, if it names a usable address.
    pub hook: Option<Arc<str>>,
    pub operation: Result<RequestedOperation, OperationError>,
}

/// What an item asks for, valid by construction.
#[derive(Clone, Debug)]
pub(crate) enum RequestedOperation {
    /// The account's balance.
    Balance,
    /// The account's sender names.
    Senders,
    /// The status of a message.
    Status(MessageQuery),
    /// A message to each of the item's phones, of which there is at least one.
    Send(SendRequest),
    /// A lookup of a number.
    Lookup(Phone),
    /// A call with a code.
    CodeCall,
    /// Something with the account's templates.
    Template(TemplateCall),
}

/// What is done with templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateCall {
    /// Keep an SMS template.
    Create { name: Box<str>, text: Box<str> },
    /// List the SMS templates.
    List,
    /// Delete the SMS template with that number.
    Delete(u64),
    /// Keep a Viber template.
    CreateViber { signature: Box<str>, text: Box<str> },
    /// List the Viber templates.
    ListViber,
    /// Delete the Viber template with that number and, where it is given, that text.
    DeleteViber { id: u64, text: Option<Box<str>> },
}

/// How a message is asked for.
#[derive(Clone, Debug)]
pub(crate) enum MessageQuery {
    /// By the client's identifier.
    Id(ClientId),
    /// By the gateway's identifier.
    MsgId(ClientId),
}

impl RequestItem {
    /// Reads the fields of an operation of that kind.
    pub(crate) fn from_json(kind: Kind, map: &Map<String, Value>) -> Self {
        let fields = OperationFields::from_map(map);
        let id = fields.optional_id("id");
        // Elsewhere `phone` is an extra property, and those mean nothing.
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
    kind: Kind,
    fields: &OperationFields,
    id: Option<&ClientId>,
    phones: &[Phone],
) -> Result<RequestedOperation, OperationError> {
    match kind {
        Kind::Balance => Ok(RequestedOperation::Balance),
        Kind::Sender => Ok(RequestedOperation::Senders),
        Kind::Status => read_message_query(fields, id).map(RequestedOperation::Status),
        Kind::Hlr => single_phone(phones).map(RequestedOperation::Lookup),
        Kind::CallOtp => single_phone(phones).map(|_| RequestedOperation::CodeCall),
        Kind::Pipeline => stages::read_pipeline(fields).map(RequestedOperation::Send),
        Kind::TemplateCreate => read_create(fields).map(RequestedOperation::Template),
        Kind::TemplateList => Ok(RequestedOperation::Template(TemplateCall::List)),
        Kind::TemplateDelete => {
            read_template_id(fields, id).map(|id| RequestedOperation::Template(TemplateCall::Delete(id)))
        }
        Kind::ViberTemplateCreate => read_create_viber(fields).map(RequestedOperation::Template),
        Kind::ViberTemplateList => Ok(RequestedOperation::Template(TemplateCall::ListViber)),
        Kind::ViberTemplateDelete => read_delete_viber(fields, id).map(RequestedOperation::Template),
        // Every other type is a message through channels of its own.
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

/// The number of a template: unlike a message's it is the gateway's own.
fn read_template_id(fields: &OperationFields, id: Option<&ClientId>) -> Result<u64, OperationError> {
    match id.ok_or_else(|| fields.missing_field("id"))?.to_key() {
        ClientIdKey::Number(number) => Ok(number),
        ClientIdKey::Text(_) => Err(fields.invalid_field("id")),
    }
}

/// The gateway's own identifier wins: a client's may have been used twice.
fn read_message_query(fields: &OperationFields, id: Option<&ClientId>) -> Result<MessageQuery, OperationError> {
    match (fields.optional_id("msg_id")?, id) {
        (Some(msg_id), _) => Ok(MessageQuery::MsgId(msg_id)),
        (None, Some(id)) => Ok(MessageQuery::Id(id.clone())),
        (None, None) => Err(fields.missing_field("id")),
    }
}

/// The only phone: a lookup and a code call have one result, so they take one number.
fn single_phone(phones: &[Phone]) -> Result<Phone, OperationError> {
    match phones {
        [phone] => Ok(*phone),
        _ => Err(OperationError::PHONE),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sandbox::request::kind::KINDS;

    fn rejection_text(kind: Kind, fields: Value) -> String {
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
        for kind in [Kind::Hlr, Kind::CallOtp] {
            let two = json!({"phone": "380501234567,380671234567"});
            assert_eq!(rejection_text(kind, two), "Please enter valid receiver phone number");
        }
    }

    #[test]
    fn invalid_id_is_rejected() {
        assert_eq!(rejection_text(Kind::Status, json!({"id": [1]})), "Error in id");
        assert_eq!(rejection_text(Kind::Status, json!({"msg_id": true})), "Error in msg_id");
        assert_eq!(rejection_text(Kind::Status, json!({})), "Please enter id");
    }

    #[test]
    fn template_call_error_names_the_missing_field() {
        for (kind, fields, told) in [
            (Kind::TemplateCreate, json!({"template": "Hi"}), "Please enter name"),
            (Kind::TemplateCreate, json!({"name": "hello"}), "Please enter template"),
            (Kind::TemplateDelete, json!({}), "Please enter id"),
            (Kind::TemplateDelete, json!({"id": "seven"}), "Error in id"),
            (Kind::ViberTemplateCreate, json!({"template": "Hi"}), "Error in Alpha-name"),
            (Kind::ViberTemplateCreate, json!({"signature": "OlenaCo", "template": " "}), "Please enter template"),
            (Kind::ViberTemplateDelete, json!({"template": "Hi"}), "Please enter id"),
            (Kind::ViberTemplateDelete, json!({"id": 1, "template": 2}), "Error in template"),
        ] {
            assert_eq!(rejection_text(kind, fields.clone()), told, "{} {fields}", kind.name());
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
        assert_eq!(hook(Kind::Sms, letter).as_deref(), Some(letter));
        for (kind, _) in KINDS.iter().copied() {
            assert_eq!(hook(kind, letter).is_some(), kind.is_message(), "{}", kind.name());
        }
        assert_eq!(hook(Kind::Sms, "not an address"), None);
    }
}
