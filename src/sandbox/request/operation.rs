//! One item of an envelope's `data`, read.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{ClientId, Fields, Key, Kind, Load, stages};
use crate::domain::Phone;
use crate::sandbox::platform::Refusal;

/// An item of an envelope: what is asked, or why it cannot be.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub kind: Kind,
    /// The client's identifier.
    pub id: Option<ClientId>,
    /// The recipients; none if it reaches no phone or one of them is no number.
    pub phones: Vec<Phone>,
    /// Where the statuses of its messages go, if it names a usable address.
    pub hook: Option<Arc<str>>,
    pub operation: Result<Operation, Refusal>,
}

/// What an item asks for, valid by construction.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// The account's balance.
    Balance,
    /// The account's sender names.
    Senders,
    /// The status of a message.
    Status(Question),
    /// A message to each of the item's phones, of which there is at least one.
    Send(Load),
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
pub(crate) enum Question {
    /// By the client's identifier.
    Id(ClientId),
    /// By the gateway's identifier.
    MsgId(ClientId),
}

impl Item {
    /// Reads the fields of an operation of that kind.
    pub(crate) fn read(kind: Kind, map: &Map<String, Value>) -> Self {
        let fields = Fields::of(map);
        let id = fields.id("id");
        // Elsewhere `phone` is an extra property, and those mean nothing.
        let phones = if kind.reaches_a_phone() { fields.phones() } else { Ok(Vec::new()) };
        let operation = match (&id, &phones) {
            (Err(refusal), _) | (_, Err(refusal)) => Err(refusal.clone()),
            (Ok(id), Ok(phones)) => read(kind, &fields, id.as_ref(), phones),
        };
        let hook = if kind.is_message() { fields.usable_url("hook").map(Arc::from) } else { None };
        Self { kind, id: id.unwrap_or_default(), phones: phones.unwrap_or_default(), hook, operation }
    }
}

fn read(kind: Kind, fields: &Fields, id: Option<&ClientId>, phones: &[Phone]) -> Result<Operation, Refusal> {
    match kind {
        Kind::Balance => Ok(Operation::Balance),
        Kind::Sender => Ok(Operation::Senders),
        Kind::Status => question(fields, id).map(Operation::Status),
        Kind::Hlr => one(phones).map(Operation::Lookup),
        Kind::CallOtp => one(phones).map(|_| Operation::CodeCall),
        Kind::Pipeline => stages::pipeline(fields).map(Operation::Send),
        Kind::TemplateCreate => create(fields).map(Operation::Template),
        Kind::TemplateList => Ok(Operation::Template(TemplateCall::List)),
        Kind::TemplateDelete => template_id(fields, id).map(|id| Operation::Template(TemplateCall::Delete(id))),
        Kind::ViberTemplateCreate => create_viber(fields).map(Operation::Template),
        Kind::ViberTemplateList => Ok(Operation::Template(TemplateCall::ListViber)),
        Kind::ViberTemplateDelete => delete_viber(fields, id).map(Operation::Template),
        // Every other type is a message through channels of its own.
        _ => stages::combined(kind.channels(), fields).map(Operation::Send),
    }
}

fn create(fields: &Fields) -> Result<TemplateCall, Refusal> {
    let (name, text) = (fields.text("name")?.into(), fields.text("template")?.into());
    Ok(TemplateCall::Create { name, text })
}

fn create_viber(fields: &Fields) -> Result<TemplateCall, Refusal> {
    let (signature, text) = (fields.signature()?.into(), fields.text("template")?.into());
    Ok(TemplateCall::CreateViber { signature, text })
}

fn delete_viber(fields: &Fields, id: Option<&ClientId>) -> Result<TemplateCall, Refusal> {
    let text = fields.optional_text("template")?.map(Box::from);
    template_id(fields, id).map(|id| TemplateCall::DeleteViber { id, text })
}

/// The number of a template: unlike a message's it is the gateway's own.
fn template_id(fields: &Fields, id: Option<&ClientId>) -> Result<u64, Refusal> {
    match id.ok_or_else(|| fields.missing("id"))?.key() {
        Key::Number(number) => Ok(number),
        Key::Text(_) => Err(fields.wrong("id")),
    }
}

/// The gateway's own identifier wins: a client's may have been used twice.
fn question(fields: &Fields, id: Option<&ClientId>) -> Result<Question, Refusal> {
    match (fields.id("msg_id")?, id) {
        (Some(msg_id), _) => Ok(Question::MsgId(msg_id)),
        (None, Some(id)) => Ok(Question::Id(id.clone())),
        (None, None) => Err(fields.missing("id")),
    }
}

/// The only phone: a lookup and a code call have one result, so they take one number.
fn one(phones: &[Phone]) -> Result<Phone, Refusal> {
    match phones {
        [phone] => Ok(*phone),
        _ => Err(Refusal::PHONE),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sandbox::request::kind::KINDS;

    fn error(kind: Kind, fields: Value) -> String {
        let item = Item::read(kind, fields.as_object().expect("an object"));
        item.operation.expect_err("refused").text().to_owned()
    }

    #[test]
    fn a_phone_is_needed_by_what_reaches_one_and_by_nothing_else() {
        for (kind, _) in KINDS.iter().copied() {
            let item = Item::read(kind, json!({"id": 1}).as_object().expect("an object"));
            let refused_for_phone = matches!(&item.operation, Err(refusal) if *refusal == Refusal::PHONE);
            assert_eq!(refused_for_phone, kind.reaches_a_phone(), "{}", kind.name());
        }
    }

    #[test]
    fn what_has_one_result_takes_one_number() {
        for kind in [Kind::Hlr, Kind::CallOtp] {
            let two = json!({"phone": "380501234567,380671234567"});
            assert_eq!(error(kind, two), "Please enter valid receiver phone number");
        }
    }

    #[test]
    fn an_id_that_is_no_id_is_refused() {
        assert_eq!(error(Kind::Status, json!({"id": [1]})), "Error in id");
        assert_eq!(error(Kind::Status, json!({"msg_id": true})), "Error in msg_id");
        assert_eq!(error(Kind::Status, json!({})), "Please enter id");
    }

    #[test]
    fn a_template_call_names_what_it_lacks() {
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
            assert_eq!(error(kind, fields.clone()), told, "{} {fields}", kind.name());
        }
    }

    #[test]
    fn a_hook_is_kept_to_the_letter_and_only_by_messages() {
        let hook = |kind, hook: &str| {
            Item::read(kind, json!({"hook": hook}).as_object().expect("an object")).hook.as_deref().map(str::to_owned)
        };
        let letter = "https://A.example:8443/Hook?token=a%2Fb&run=1&&#x";
        assert_eq!(hook(Kind::Sms, letter).as_deref(), Some(letter));
        for (kind, _) in KINDS.iter().copied() {
            assert_eq!(hook(kind, letter).is_some(), kind.is_message(), "{}", kind.name());
        }
        assert_eq!(hook(Kind::Sms, "not an address"), None);
    }
}
