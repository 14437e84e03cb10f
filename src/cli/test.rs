//! `campaign test`: sends the message of a row to a test number, outside the campaign.

use serde_json::{Value, json};

use super::args::TestArgs;
use super::consent;
use super::context::Context;
use super::exit::{self, graver};
use super::failure::Failure;
use super::number::number_of;
use super::single_report::SingleReport;
use super::suggested::{file, through};
use crate::delivery::SingleKind;
use crate::domain::Phone;
use crate::report::{RowPreview, message_preview, preview_json};
use crate::runs::{TestOrder, test_message};

pub(super) async fn test(context: &Context, args: TestArgs) -> Result<u8, Failure> {
    let inputs = context.load(&args.file, args.gateway.as_deref())?;
    let region = inputs.campaign.brief.region;
    let mut phones: Vec<Phone> = Vec::new();
    for typed in &args.to {
        let phone = number_of(typed, region)?;
        if !phones.contains(&phone) {
            phones.push(phone);
        }
    }
    let Some(&first) = phones.first() else {
        return Err(Failure::wrong("no recipient was given").with_help("add `--to PHONE`"));
    };
    let existing = context.existing_ledger().await?;
    let inputs = context.listed(inputs, args.list.fetch, existing.as_deref()).await?;
    let message = test_message(&inputs, args.row, existing.as_deref(), &context.observer).await?;
    let (output, name) = (&context.output, &inputs.campaign.brief.name);
    if !output.json {
        output.result(format!("test of {name}, row {} · {}", message.row, message_preview(first, &message.content)));
    }
    let adapters = context.adapters(context.ledger().await?)?;
    let order = TestOrder { inputs: &inputs, message: &message, phones: &phones };
    let (consent, outside) = (consent::of(output, args.yes), consent::of(output, args.outside_window));
    // Kept until all are sent: tests of other processes wait to count these.
    let mut admitted = order.admit(adapters, consent.as_ref(), outside.as_ref()).await?;
    let confirmed = std::mem::take(&mut admitted.tests);
    let (mut code, mut told, mut stopped) = (exit::FINE, Vec::new(), false);
    for (phone, single) in phones.iter().zip(confirmed) {
        if stopped {
            told.push(
                json!({ "to": phone.to_string(), "state": "not_sent", "error": "the previous test was stopped" }),
            );
            continue;
        }
        let ended = single.send(context.interrupt()?).await?;
        let test = format!("test {} --to PHONE --row {}", file(&args.file), message.row);
        let test = if args.list.fetch { test + " --fetch" } else { test };
        let again = output.command(through(test, args.gateway.as_deref()));
        let report = SingleReport::of(context, SingleKind::Test, &ended, again);
        (code, stopped) = (graver(code, report.exit), ended.stop.is_some());
        if output.json {
            let mut object = report.object();
            object["to"] = phone.to_string().into();
            told.push(object);
        } else {
            output.result(report.text());
        }
    }
    if output.json {
        let shown = preview_json(message.row, RowPreview::Message { phone: first, content: message.content });
        output.object(&json!({
            "campaign": name,
            "row": message.row.get(),
            "operation": shown.get("operation").cloned().unwrap_or(Value::Null),
            "tests": told,
            "exit": code,
        }));
    } else if stopped && phones.len() > 1 {
        output.note("the remaining numbers got no message");
    }
    Ok(code)
}
