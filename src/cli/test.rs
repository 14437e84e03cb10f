//! `campaign test`: sends the message of a row to a test number, outside the campaign.

use serde_json::{Value, json};

use super::args::TestArgs;
use super::consent;
use super::context::Context;
use super::exit::{self, graver_code};
use super::failure::CommandFailure;
use super::number::parse_campaign_number;
use super::single_report::SingleReport;
use super::suggested::{shell_path, with_gateway};
use crate::delivery::SingleKind;
use crate::domain::Phone;
use crate::report::{RowPreview, preview_json, render_message_preview};
use crate::runs::{TestOrder, load_test_message};

pub(super) async fn send_test(context: &Context, args: TestArgs) -> Result<u8, CommandFailure> {
    let inputs = context.load_campaign(&args.file, args.gateway.as_deref())?;
    let region = inputs.campaign.brief.region;
    let mut phones: Vec<Phone> = Vec::new();
    for typed in &args.to {
        let phone = parse_campaign_number(typed, region)?;
        if !phones.contains(&phone) {
            phones.push(phone);
        }
    }
    let Some(&first) = phones.first() else {
        return Err(CommandFailure::invalid("no recipient was given").with_help("add `--to PHONE`"));
    };
    let existing = context.open_existing_ledger().await?;
    let inputs = context.fetch_list(inputs, args.list.fetch, existing.as_deref()).await?;
    let message = load_test_message(&inputs, args.row, existing.as_deref(), &context.observer).await?;
    let (output, name) = (&context.output, &inputs.campaign.brief.name);
    if !output.json {
        output.print_result(format!(
            "test of {name}, row {} · {}",
            message.row,
            render_message_preview(first, &message.content)
        ));
    }
    let adapters = context.adapters(context.open_ledger().await?)?;
    let order = TestOrder { inputs: &inputs, message: &message, phones: &phones };
    let (consent, outside) =
        (consent::consent_for(output, args.yes), consent::consent_for(output, args.outside_window));
    // Kept until all are sent: tests of other processes wait to count these.
    let mut admitted = order.admit_all(adapters, consent.as_ref(), outside.as_ref()).await?;
    let confirmed = std::mem::take(&mut admitted.tests);
    let (mut code, mut told, mut stopped) = (exit::SUCCESS, Vec::new(), false);
    for (phone, single) in phones.iter().zip(confirmed) {
        if stopped {
            told.push(
                json!({ "to": phone.to_string(), "state": "not_sent", "error": "the previous test was stopped" }),
            );
            continue;
        }
        let ended = single.send(context.watch_signals()?).await?;
        let test = format!("test {} --to PHONE --row {}", shell_path(&args.file), message.row);
        let test = if args.list.fetch { test + " --fetch" } else { test };
        let again = output.command(with_gateway(test, args.gateway.as_deref()));
        let report = SingleReport::for_ended(context, SingleKind::Test, &ended, again);
        (code, stopped) = (graver_code(code, report.exit), ended.stop.is_some());
        if output.json {
            let mut object = report.to_json();
            object["to"] = phone.to_string().into();
            told.push(object);
        } else {
            output.print_result(report.render_text());
        }
    }
    if output.json {
        let shown = preview_json(message.row, RowPreview::Message { phone: first, content: message.content });
        output.print_object(&json!({
            "campaign": name,
            "row": message.row.get(),
            "operation": shown.get("operation").cloned().unwrap_or(Value::Null),
            "tests": told,
            "exit": code,
        }));
    } else if stopped && phones.len() > 1 {
        output.print_note("the remaining numbers got no message");
    }
    Ok(code)
}
