//! `campaign gateway status`: the delivery status of messages at the gateway.

use serde_json::{Value, json};

use super::account;
use super::show::{id, moment};
use crate::cli::args::MessageArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::table::{Cell, Table};
use crate::cli::text::{Meaning, Span, bad, dim, plain, span, strong};
use crate::domain::Arrival;
use crate::gateway::{AskStatus, FailureCause, InquiryFailure, MessageRecord};
use crate::report::message_json;

pub(super) async fn status(context: &Context, args: &MessageArgs) -> Result<u8, Failure> {
    let asked = args.ids.iter().map(|id| question(id, args.msg_id)).collect::<Result<Vec<_>, _>>()?;
    let account = account(context, &args.through).await?;
    let waiting = context.output.waiting("Asking the gateway…");
    let answers = account.ask_all(&asked).await?;
    drop(waiting);
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
        let header = ["id", "msg_id", "type", "status", "updated"];
        context.output.result(Table::new(header, answered().map(row)));
    }
    Ok(code)
}

/// The question about the message with this identifier, as a person typed it.
fn question(typed: &str, is_gateways: bool) -> Result<AskStatus, Failure> {
    match is_gateways {
        true => AskStatus::about_theirs(typed).ok_or_else(|| Failure::wrong("the message identifier is empty")),
        false => AskStatus::about_ours(typed).ok_or_else(|| {
            Failure::wrong(format!("`{typed}` is not a number from the `id` column of the results"))
                .with_help("add `--msg-id` if it is the gateway's own identifier")
        }),
    }
}

/// The exit code by the worst answer: a missing answer before a rejected one.
fn code(answers: &[Result<MessageRecord, InquiryFailure>]) -> u8 {
    let failures: Vec<&InquiryFailure> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    match failures.iter().all(|failed| failed.cause == FailureCause::Refused) {
        true if failures.is_empty() => exit::FINE,
        true => exit::REJECTIONS,
        false => exit::STOPPED,
    }
}

/// The status of a message, coloured by its meaning.
fn status_span(record: &MessageRecord) -> Span {
    let meaning = match record.status.arrival() {
        Arrival::Delivered | Arrival::Read => Meaning::Good,
        Arrival::Failed => Meaning::Bad,
        Arrival::Pending => Meaning::Plain,
    };
    span(meaning, record.status.to_string())
}

fn row((asked, answer): (&AskStatus, &Result<MessageRecord, InquiryFailure>)) -> [Cell; 5] {
    let (ours, theirs) = (asked.ours(), asked.theirs());
    match answer {
        Ok(record) => [
            strong(id(record.id.as_ref().or(ours.as_ref()))).into(),
            id(record.msg_id.as_ref().or(theirs.as_ref())).into(),
            record.channel.clone().unwrap_or_default().into(),
            status_span(record).into(),
            dim(moment(record.updated.as_deref())).into(),
        ],
        Err(failed) => [
            strong(id(ours.as_ref())).into(),
            id(theirs.as_ref()).into(),
            plain("").into(),
            bad(failed.reason.as_str()).into(),
            plain("").into(),
        ],
    }
}
