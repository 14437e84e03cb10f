//! One item of an envelope's `data`, read.

use serde_json::{Map, Value};

use super::client_id::ClientId;
use super::fields::Fields;
use super::kind::Kind;
use super::refusal::Refusal;
use super::stages::{self, Load};
use crate::domain::{Channel, Phone};

/// An item of an envelope: what is asked, or why it cannot be.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub kind: Kind,
    /// The client's identifier.
    pub id: Option<ClientId>,
    /// The recipients; none if it reaches no phone or one of them is no number.
    pub phones: Vec<Phone>,
    pub operation: Result<Operation, Refusal>,
}

/// What an item asks for, valid by construction.
#[derive(Clone, Debug)]
pub(super) enum Operation {
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
}

/// How a message is asked for.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// By the client's identifier.
    Id(ClientId),
    /// By the gateway's identifier.
    MsgId(ClientId),
}

impl Item {
    /// Reads the fields of an operation of that kind.
    pub(super) fn read(kind: Kind, map: &Map<String, Value>) -> Self {
        let fields = Fields::of(map);
        let id = fields.id("id");
        // Elsewhere `phone` is an extra property, and those mean nothing.
        let phones = if kind.reaches_a_phone() { fields.phones() } else { Ok(Vec::new()) };
        let operation = match (&id, &phones) {
            (Err(refusal), _) | (_, Err(refusal)) => Err(refusal.clone()),
            (Ok(id), Ok(phones)) => read(kind, &fields, id.as_ref(), phones),
        };
        Self { kind, id: id.unwrap_or_default(), phones: phones.unwrap_or_default(), operation }
    }
}

fn read(kind: Kind, fields: &Fields, id: Option<&ClientId>, phones: &[Phone]) -> Result<Operation, Refusal> {
    let send = |first, fallbacks: &[Channel]| stages::combined(first, fallbacks, fields).map(Operation::Send);
    match kind {
        Kind::Balance => Ok(Operation::Balance),
        Kind::Sender => Ok(Operation::Senders),
        Kind::Status => question(fields, id).map(Operation::Status),
        Kind::Hlr => one(phones).map(Operation::Lookup),
        Kind::CallOtp => one(phones).map(|_| Operation::CodeCall),
        Kind::Sms => send(Channel::Sms, &[]),
        Kind::Viber => send(Channel::Viber, &[]),
        Kind::Rcs => send(Channel::Rcs, &[]),
        Kind::Voice => send(Channel::Voice, &[]),
        Kind::Telegram => send(Channel::Telegram, &[]),
        Kind::ViberSms => send(Channel::Viber, &[Channel::Sms]),
        Kind::RcsSms => send(Channel::Rcs, &[Channel::Sms]),
        Kind::RcsViberSms => send(Channel::Rcs, &[Channel::Viber, Channel::Sms]),
        Kind::Pipeline => stages::pipeline(fields).map(Operation::Send),
        Kind::TemplateCreate
        | Kind::TemplateDelete
        | Kind::TemplateList
        | Kind::ViberTemplateCreate
        | Kind::ViberTemplateDelete
        | Kind::ViberTemplateList => Err(Refusal::UNSUPPORTED),
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

    fn error(kind: Kind, fields: Value) -> String {
        let item = Item::read(kind, fields.as_object().expect("an object"));
        item.operation.expect_err("refused").text().to_owned()
    }

    #[test]
    fn a_phone_is_needed_by_what_reaches_one_and_by_nothing_else() {
        for kind in Kind::ALL {
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
}
