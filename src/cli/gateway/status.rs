//! `campaign gateway status`: what the gateway knows of messages.

use serde_json::{Value, json};

use super::account;
use super::show::{id, moment};
use crate::cli::args::MessageArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::table::table;
use crate::gateway::{AskStatus, FailureCause, InquiryFailure, MessageRecord};
use crate::report::message_json;

pub(super) async fn status(context: &Context, args: &MessageArgs) -> Result<u8, Failure> {
    let asked = args.ids.iter().map(|id| question(id, args.msg_id)).collect::<Result<Vec<_>, _>>()?;
    let account = account(context, &args.through).await?;
    let answers = account.ask_all(&asked).await?;
    let code = code(&answers);
    let answered = || asked.iter().zip(&answers);
    if context.output.json {
        let statuses: Vec<Value> = answered().map(|(asked, answer)| message_json(asked, answer)).collect();
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
    match is_gateways {
        true => AskStatus::about_theirs(typed).ok_or_else(|| Failure::wrong("an empty text identifies no message")),
        false => AskStatus::about_ours(typed).ok_or_else(|| {
            Failure::wrong(format!(
                "`{typed}` is no identifier of ours, which are numbers in the column `id` of the results; say \
                 `--msg-id` if it is the gateway's"
            ))
        }),
    }
}

/// The worst of the answers decides: one that is none, then a refusal.
fn code(answers: &[Result<MessageRecord, InquiryFailure>]) -> u8 {
    let failures: Vec<&InquiryFailure> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    match failures.iter().all(|failed| failed.cause == FailureCause::Refused) {
        true if failures.is_empty() => exit::FINE,
        true => exit::REJECTIONS,
        false => exit::STOPPED,
    }
}

fn row((asked, answer): (&AskStatus, &Result<MessageRecord, InquiryFailure>)) -> [String; 5] {
    let (ours, theirs) = (asked.ours(), asked.theirs());
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
