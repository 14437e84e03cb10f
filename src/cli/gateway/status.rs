//! `campaign gateway status`: what the gateway knows of messages.

use serde_json::{Value, json};

use super::account;
use super::show::{id, id_json, moment, table};
use crate::cli::args::MessageArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::domain::{MessageId, MsgId};
use crate::gateway::{AskStatus, MessageRecord, Unanswered, UnansweredCause};

pub(super) async fn status(context: &Context, args: &MessageArgs) -> Result<u8, Failure> {
    let asked = args.ids.iter().map(|id| question(id, args.msg_id)).collect::<Result<Vec<_>, _>>()?;
    let account = account(context, &args.through).await?;
    let answers = account.ask_all(&asked).await?;
    let code = code(&answers);
    let answered = || asked.iter().zip(&answers);
    if context.output.json {
        let statuses: Vec<Value> = answered().map(object).collect();
        let mut object_of_all = json!({ "gateway": account.profile.name, "statuses": statuses, "exit": code });
        if let Some(failed) = answers.iter().find_map(|answer| answer.as_ref().err()) {
            object_of_all["error"] = failed.reason.as_str().into();
        }
        context.output.object(&object_of_all);
    } else {
        context.output.result(&table(["id", "msg_id", "type", "status", "updated"], answered().map(row)));
    }
    Ok(code)
}

/// The question about the message with this identifier, as a person typed it.
fn question(typed: &str, is_gateways: bool) -> Result<AskStatus, Failure> {
    let number = typed.parse().ok().filter(|_| typed.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.and_then(MessageId::new);
    // A number with leading zeros is a text, of which nothing may be lost.
    let plain = number.filter(|number| number.to_string() == typed).map(MessageId::get);
    match (is_gateways, number) {
        (true, _) if typed.trim().is_empty() => Err(Failure::wrong("an empty text identifies no message")),
        (true, _) => Ok(AskStatus::MsgId(plain.map_or_else(|| MsgId::Text(typed.to_owned()), MsgId::Number))),
        (false, Some(id)) => Ok(AskStatus::Id(id)),
        (false, None) => Err(Failure::wrong(format!(
            "`{typed}` is no identifier of ours, which are numbers in the column `id` of the results; say `--msg-id` \
             if it is the gateway's"
        ))),
    }
}

/// The worst of the answers decides: one that is none, then a refusal.
fn code(answers: &[Result<MessageRecord, Unanswered>]) -> u8 {
    let failures: Vec<&Unanswered> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    match failures.iter().all(|failed| failed.cause == UnansweredCause::Refused) {
        true if failures.is_empty() => exit::FINE,
        true => exit::REJECTIONS,
        false => exit::STOPPED,
    }
}

/// The identifiers that were asked with: ours, the gateway's.
fn asked_with(asked: &AskStatus) -> (Option<MsgId>, Option<MsgId>) {
    match asked {
        AskStatus::Id(id) => (Some(MsgId::Number(id.get())), None),
        AskStatus::MsgId(id) => (None, Some(id.clone())),
    }
}

fn row((asked, answer): (&AskStatus, &Result<MessageRecord, Unanswered>)) -> [String; 5] {
    let (ours, theirs) = asked_with(asked);
    match answer {
        Ok(record) => [
            id(record.id.as_ref().or(ours.as_ref())),
            id(record.msg_id.as_ref().or(theirs.as_ref())),
            record.channel.clone().unwrap_or_default(),
            record.status.to_string(),
            moment(record.updated.as_deref()),
        ],
        Err(failed) => [id(ours.as_ref()), id(theirs.as_ref()), String::new(), failed.reason.clone(), String::new()],
    }
}

fn object((asked, answer): (&AskStatus, &Result<MessageRecord, Unanswered>)) -> Value {
    let (ours, theirs) = asked_with(asked);
    match answer {
        Ok(record) => json!({
            "id": id_json(record.id.as_ref().or(ours.as_ref())),
            "msg_id": id_json(record.msg_id.as_ref().or(theirs.as_ref())),
            "type": record.channel,
            "status": record.status.name(),
            "updated": record.updated,
        }),
        Err(failed) => {
            json!({ "id": id_json(ours.as_ref()), "msg_id": id_json(theirs.as_ref()), "error": failed.reason })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_asked_about_as_what_it_is_said_to_be() {
        let ours = |number| Some(AskStatus::Id(MessageId::new(number).unwrap()));
        let number = |number| Some(AskStatus::MsgId(MsgId::Number(number)));
        let text = |text: &str| Some(AskStatus::MsgId(MsgId::Text(text.into())));
        let table = [
            ("7", false, ours(7)),
            ("007", false, ours(7)),
            ("9007199254740992", false, None),
            ("+7", false, None),
            ("a-1", false, None),
            ("", false, None),
            ("7", true, number(7)),
            ("007", true, text("007")),
            ("9007199254740993", true, text("9007199254740993")),
            ("a-1", true, text("a-1")),
            (" ", true, None),
        ];
        for (typed, is_gateways, expected) in table {
            assert_eq!(question(typed, is_gateways).ok(), expected, "{typed} {is_gateways}");
        }
    }
}
