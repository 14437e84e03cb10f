//! `campaign gateway status`: the delivery status of messages at the gateway.

use serde_json::{Value, json};

use super::open_account;
use super::show::{format_id, format_time};
use crate::cli::args::MessageArgs;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::table::{TableCell, TerminalTable};
use crate::cli::text::{Span, SpanMeaning, bad, dim, plain, span, strong};
use crate::domain::DeliveryState;
use crate::gateway::{AskStatus, FailureCause, InquiryFailure, MessageRecord};
use crate::report::message_json;

pub(super) async fn show_delivery_status(context: &Context, args: &MessageArgs) -> Result<u8, CommandFailure> {
    let asked = args.ids.iter().map(|id| status_question(id, args.msg_id)).collect::<Result<Vec<_>, _>>()?;
    let account = open_account(context, &args.through).await?;
    let waiting = context.output.show_spinner("Asking the gateway…");
    let answers = account.ask_all(&asked).await?;
    drop(waiting);
    let code = exit_code(&answers);
    let answered = || asked.iter().zip(&answers);
    if context.output.json {
        let statuses: Vec<Value> = answered().map(|(asked, answer)| message_json(asked, answer)).collect();
        let mut object_of_all = json!({ "gateway": account.profile.name, "statuses": statuses, "exit": code });
        if let Some(failed) = answers.iter().find_map(|answer| answer.as_ref().err()) {
            object_of_all["error"] = failed.reason.as_str().into();
        }
        context.output.print_object(&object_of_all);
    } else {
        let header = ["id", "msg_id", "type", "status", "updated"];
        context.output.print_result(TerminalTable::new(header, answered().map(status_row)));
    }
    Ok(code)
}

/// The question about the message with this identifier, as a person typed it.
fn status_question(typed: &str, is_gateways: bool) -> Result<AskStatus, CommandFailure> {
    match is_gateways {
        true => {
            AskStatus::from_gateway_id(typed).ok_or_else(|| CommandFailure::invalid("the message identifier is empty"))
        }
        false => AskStatus::from_own_id(typed).ok_or_else(|| {
            CommandFailure::invalid(format!("`{typed}` is not a number from the `id` column of the results"))
                .with_help("add `--msg-id` if it is the gateway's own identifier")
        }),
    }
}

/// The exit code by the worst answer: a missing answer before a rejected one.
fn exit_code(answers: &[Result<MessageRecord, InquiryFailure>]) -> u8 {
    let failures: Vec<&InquiryFailure> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
    match failures.iter().all(|failed| failed.cause == FailureCause::Refused) {
        true if failures.is_empty() => exit::SUCCESS,
        true => exit::REJECTIONS,
        false => exit::STOPPED,
    }
}

/// The status of a message, coloured by its meaning.
fn status_span(record: &MessageRecord) -> Span {
    let meaning = match record.status.delivery_state() {
        DeliveryState::Delivered | DeliveryState::Read => SpanMeaning::Good,
        DeliveryState::Failed => SpanMeaning::Bad,
        DeliveryState::Pending => SpanMeaning::Plain,
    };
    span(meaning, record.status.to_string())
}

fn status_row((asked, answer): (&AskStatus, &Result<MessageRecord, InquiryFailure>)) -> [TableCell; 5] {
    let (ours, theirs) = (asked.own_id(), asked.gateway_id());
    match answer {
        Ok(record) => [
            strong(format_id(record.id.as_ref().or(ours.as_ref()))).into(),
            format_id(record.msg_id.as_ref().or(theirs.as_ref())).into(),
            record.channel.clone().unwrap_or_default().into(),
            status_span(record).into(),
            dim(format_time(record.updated.as_deref())).into(),
        ],
        Err(failed) => [
            strong(format_id(ours.as_ref())).into(),
            format_id(theirs.as_ref()).into(),
            plain("").into(),
            bad(failed.reason.as_str()).into(),
            plain("").into(),
        ],
    }
}
