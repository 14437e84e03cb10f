//! `campaign gateway`: balance, sender names, delivery status, message templates, webhook address and trusted host of
//! an account.

mod add;

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::args::{
    GatewayCommand, GatewayOption, HookArgs, MessageArgs, SmsTemplatesCommand, TextArgs, ViberTemplatesCommand,
};
use super::context::Context;
use super::exit::CommandFailure;
use super::prompt::{CANCELLED, ConfirmationPrompt, ExpectedAnswer};
use super::state_folder::LedgerPurpose;
use super::text::{
    Span, SpanMeaning, StyledLine, StyledText, TableCell, TerminalTable, bad, copyable, dim, plain, render_records,
    span, strong,
};
use super::{consent, exit, output};
use campaign_core::domain::{Amount, DeliveryState, GatewayMessageId};
use campaign_engine::delivery::SingleKind;
use campaign_engine::report::{format_local_minute, message_json, sender_json, template_json};
use campaign_gateway::{
    AskBalance, AskSenders, AskStatus, CreateTemplate, DeleteTemplate, FailureCause, InquiryFailure, ListTemplates,
    MessageRecord, MessageTemplate, TemplateChannel, WebhookTestAnswer, WebhookUrls, test_webhook,
};
use campaign_ledger::HostChange;
use campaign_manifest::read_text_file;
use campaign_runs::{
    GatewayAccount, WeakerRule, describe_host, find_weaker_rules, has_other_secret, load_hook, record_rule,
};

/// The timeout of a request to the gateway.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn run_gateway_command(context: &Context, command: GatewayCommand) -> Result<u8, CommandFailure> {
    match command {
        GatewayCommand::Balance(gateway_option) => show_balance(context, &gateway_option).await,
        GatewayCommand::Senders(gateway_option) => list_senders(context, &gateway_option).await,
        GatewayCommand::Status(args) => show_delivery_status(context, &args).await,
        GatewayCommand::Lookup(args) => super::single::run_single_operation(context, SingleKind::Lookup, args).await,
        GatewayCommand::Otp(args) => super::single::run_single_operation(context, SingleKind::CodeCall, args).await,
        GatewayCommand::Templates(command) => run_sms_templates_command(context, command).await,
        GatewayCommand::ViberTemplates(command) => run_viber_templates_command(context, command).await,
        GatewayCommand::Add(args) => add::add_profile(context, args).await,
        GatewayCommand::Hook(args) => show_hook(context, &args).await,
        GatewayCommand::Trust { name } => trust_host(context, &name).await,
    }
}

/// Opens the account of the named profile, without a request to the gateway.
async fn open_account(context: &Context, option: &GatewayOption) -> Result<GatewayAccount, CommandFailure> {
    let profile = context.profiles().find_for_inquiry(option.gateway.as_deref(), &context.observer)?;
    let adapters = context.adapters(context.open_ledger(LedgerPurpose::SharedRecords).await?)?;
    Ok(GatewayAccount::open(&adapters, &profile, ANSWER_TIMEOUT).await?)
}

/// The JSON output of `balance`. The amount keeps the gateway's digits.
#[derive(Serialize)]
struct BalanceObject<'a> {
    gateway: &'a str,
    amount: Amount,
    currency: &'a str,
    exit: u8,
}

async fn show_balance(context: &Context, option: &GatewayOption) -> Result<u8, CommandFailure> {
    let account = open_account(context, option).await?;
    let spinner = context.output.show_spinner("Asking the gateway…");
    let balance = account.ask(&AskBalance).await?;
    drop(spinner);
    let gateway = &account.profile.name;
    if context.output.json {
        let (amount, currency) = (balance.amount, balance.currency.as_str());
        context.output.print_object(&BalanceObject { gateway, amount, currency, exit: exit::SUCCESS });
    } else {
        context.output.print_result(StyledLine::new([plain(format!("{gateway}: ")), strong(balance.to_string())]));
    }
    Ok(exit::SUCCESS)
}

async fn list_senders(context: &Context, option: &GatewayOption) -> Result<u8, CommandFailure> {
    let account = open_account(context, option).await?;
    let spinner = context.output.show_spinner("Asking the gateway…");
    let senders = account.ask(&AskSenders).await?;
    drop(spinner);
    let gateway = &account.profile.name;
    if context.output.json {
        let senders: Vec<Value> = senders.iter().map(sender_json).collect();
        context.output.print_object(&json!({ "gateway": gateway, "senders": senders, "exit": exit::SUCCESS }));
    } else if senders.is_empty() {
        context.output.print_result(format!("{gateway} has no sender names\n"));
    } else {
        let rows = senders.into_iter().map(|sender| [strong(sender.name), plain(sender.status)]);
        context.output.print_result(TerminalTable::new(["sender", "status"], rows));
    }
    Ok(exit::SUCCESS)
}

async fn show_delivery_status(context: &Context, args: &MessageArgs) -> Result<u8, CommandFailure> {
    let inquiries = args.ids.iter().map(|id| status_inquiry(id, args.msg_id)).collect::<Result<Vec<_>, _>>()?;
    let account = open_account(context, &args.gateway_option).await?;
    let spinner = context.output.show_spinner("Asking the gateway…");
    let answers = account.ask_all(&inquiries).await?;
    drop(spinner);
    let code = exit_code_of_answers(&answers);
    let pairs = || inquiries.iter().zip(&answers);
    if context.output.json {
        let statuses: Vec<Value> = pairs().map(|(inquiry, answer)| message_json(inquiry, answer)).collect();
        let mut object = json!({ "gateway": account.profile.name, "statuses": statuses, "exit": code });
        if let Some(failed) = answers.iter().find_map(|answer| answer.as_ref().err()) {
            object["error"] = failed.reason.as_str().into();
        }
        context.output.print_object(&object);
    } else {
        let header = ["id", "msg_id", "type", "status", "updated"];
        context
            .output
            .print_result(TerminalTable::new(header, pairs().map(|(inquiry, answer)| status_row(inquiry, answer))));
    }
    Ok(code)
}

/// Builds the status request for a typed message identifier.
fn status_inquiry(typed: &str, is_gateway_id: bool) -> Result<AskStatus, CommandFailure> {
    match is_gateway_id {
        true => {
            AskStatus::from_gateway_id(typed).ok_or_else(|| CommandFailure::invalid("the message identifier is empty"))
        }
        false => AskStatus::from_own_id(typed).ok_or_else(|| {
            CommandFailure::invalid(format!("`{typed}` is not a number from the `id` column of the results"))
                .with_help("add `--msg-id` if it is the gateway's own identifier")
        }),
    }
}

/// The exit code of the worst answer. A missing answer is worse than a rejection.
fn exit_code_of_answers(answers: &[Result<MessageRecord, InquiryFailure>]) -> u8 {
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

fn status_row(inquiry: &AskStatus, answer: &Result<MessageRecord, InquiryFailure>) -> [TableCell; 5] {
    let (own_id, gateway_id) = (inquiry.own_id(), inquiry.gateway_id());
    match answer {
        Ok(record) => [
            strong(format_id(record.id.as_ref().or(own_id.as_ref()))).into(),
            format_id(record.msg_id.as_ref().or(gateway_id.as_ref())).into(),
            record.channel.clone().unwrap_or_default().into(),
            status_span(record).into(),
            dim(format_time(record.updated.as_deref())).into(),
        ],
        Err(failed) => [
            strong(format_id(own_id.as_ref())).into(),
            format_id(gateway_id.as_ref()).into(),
            plain("").into(),
            bad(failed.reason.as_str()).into(),
            plain("").into(),
        ],
    }
}

async fn show_hook(context: &Context, args: &HookArgs) -> Result<u8, CommandFailure> {
    let name = &args.name;
    let profile = context.profiles().find_profile(name, None, &context.observer)?;
    let Some(hook) = load_hook(&profile)? else {
        return Err(CommandFailure::invalid(format!(
            "the profile `{name}` has no `hook`; add `hook: {{ public_url: …, secret: {{ env: NAME }} }}`"
        )));
    };
    if args.test {
        return test_hook(context, name, &hook).await;
    }
    let address = hook.account_url();
    if context.output.json {
        context.output.print_object(&json!({ "gateway": name, "address": address, "exit": exit::SUCCESS }));
    } else {
        let mut text = StyledText::new();
        text.push(StyledLine::new([strong(address)]).unbroken());
        text.push(StyledLine::from_prose(
            "Enter this as the notification address in the gateway's settings. It contains a secret: do not share it.",
        ));
        context.output.print_result(text);
    }
    Ok(exit::SUCCESS)
}

/// Sends a test request to the public address of the webhook endpoint, and reports the answer.
async fn test_hook(context: &Context, name: &str, hook: &WebhookUrls) -> Result<u8, CommandFailure> {
    let answer = test_webhook(hook, &format!("{:032x}", rand::random::<u128>())).await;
    if answer == WebhookTestAnswer::Ours {
        let public = hook.public_url();
        if context.output.json {
            let object = json!({ "gateway": name, "public_url": public, "reached": true, "exit": exit::SUCCESS });
            context.output.print_object(&object);
        } else {
            let reached = format!(" reaches `campaign serve`, and the secret matches the profile `{name}`");
            context.output.print_result(StyledLine::success([copyable(public.to_string()), plain(reached)]));
        }
        return Ok(exit::SUCCESS);
    }
    let code = if matches!(answer, WebhookTestAnswer::OtherServer(_)) { exit::INVALID } else { exit::STOPPED };
    let is_secret_different = match context.open_existing_ledger().await? {
        Some(ledger) => has_other_secret(ledger.as_ref(), hook).await?,
        None => false,
    };
    Err(CommandFailure::new(
        code,
        format!("{}: {}", hook.public_url(), describe_hook_answer(&answer, is_secret_different)),
    ))
}

/// Describes the answer from the public address of the webhook endpoint, and the remedy.
pub(super) fn describe_hook_answer(answer: &WebhookTestAnswer, is_secret_different: bool) -> String {
    match answer {
        WebhookTestAnswer::Ours => "it reaches `campaign serve`".to_owned(),
        WebhookTestAnswer::OtherServer(_) if is_secret_different => {
            "`campaign serve` has a different secret than this profile; use the same secret in both, or restart `serve`"
                .to_owned()
        }
        WebhookTestAnswer::OtherServer(404) => {
            "the response was 404: another server answered, a proxy does not forward `/n/` and `/h/` to `campaign \
             serve --hooks`, or `serve` uses a different secret"
                .to_owned()
        }
        WebhookTestAnswer::OtherServer(429) => {
            "the response was 429: this machine sent too many requests with a wrong secret; try again in a minute"
                .to_owned()
        }
        WebhookTestAnswer::OtherServer(status @ 300..=399) => format!(
            "the response was {status}, a redirect that the gateway might not follow; set `public_url` to its target"
        ),
        WebhookTestAnswer::OtherServer(status @ (502..=504)) => format!(
            "the response was {status}, from a proxy with no server behind it; start `campaign serve` and forward \
             requests to its `--hooks` address"
        ),
        WebhookTestAnswer::OtherServer(status) => format!(
            "the response was {status} and did not come from `campaign serve`; check which server or proxy responds \
             at that address"
        ),
        WebhookTestAnswer::NoName(cause) => {
            format!("unknown host name ({cause}); correct `public_url` or add the name to your DNS")
        }
        WebhookTestAnswer::NoConnection(cause) => {
            format!(
                "connection refused ({cause}); start `campaign serve` and the proxy in front of it, and open the port"
            )
        }
        WebhookTestAnswer::NoHandshake(cause) => format!(
            "the TLS handshake failed ({cause}); use a valid certificate for this name from a public certificate \
             authority"
        ),
        WebhookTestAnswer::Silence => {
            "no response within 10 seconds; a firewall might be blocking the connection".to_owned()
        }
        WebhookTestAnswer::Broken(cause) => format!("the connection was lost ({cause}); see the proxy's log"),
    }
}

async fn trust_host(context: &Context, name: &str) -> Result<u8, CommandFailure> {
    let profile = context.profiles().find_profile(name, None, &context.observer)?;
    let host = profile.trusted_hosts();
    let ledger = context.open_ledger(LedgerPurpose::SharedRecords).await?;
    let adapters = context.adapters(ledger.clone())?;
    let changes = find_weaker_rules(&adapters, &profile).await?;
    if !changes.is_empty() {
        confirm_weaker_approval(context, &changes).await?;
    }
    ledger.remember_host(name, &host, HostChange::Replace).await?;
    record_rule(&adapters, &profile).await?;
    if context.output.json {
        context.output.print_object(&serde_json::json!({ "gateway": name, "host": host, "exit": exit::SUCCESS }));
    } else {
        context
            .output
            .print_done(format!("the profile `{name}` {} is now trusted\n", describe_host(&host)), exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Asks the operator at the terminal to accept a weaker `approval`. No option answers this prompt.
async fn confirm_weaker_approval(context: &Context, changes: &[WeakerRule]) -> Result<(), CommandFailure> {
    if !context.output.can_ask() {
        let needs: Vec<String> =
            changes.iter().map(|WeakerRule { account, known, .. }| format!("`{account}` needs {known}")).collect();
        let now = changes.first().map_or("", |change| &change.now);
        return Err(CommandFailure::invalid(format!(
            "the account {}, but the profile now requires {now}; nothing was changed",
            needs.join(" and the account ")
        ))
        .with_help("restore `approval`, or accept the change at a terminal"));
    }
    let mut prompt =
        ConfirmationPrompt::new("Accept a weaker approval rule?", ExpectedAnswer::Word("weaken"), "accept");
    for WeakerRule { account, known, by, at, .. } in changes {
        let before = format!("{known} for account `{account}`, recorded by {by} on {}", format_local_minute(*at));
        prompt.add_fact("before", [before.into()]);
    }
    if let Some(WeakerRule { now, .. }) = changes.first() {
        prompt.add_fact("now", [now.as_str().into()]);
    }
    match prompt.with_note("Your name and the time are recorded.").ask_operator(&context.output).await? {
        true => Ok(()),
        false => Err(CommandFailure::invalid(format!("{CANCELLED}Nothing was changed."))),
    }
}

/// Formats a time from the gateway (ISO 8601 with offset) as local time. A text in another format is returned
/// unchanged.
fn format_time(text: Option<&str>) -> String {
    output::format_timestamp(text.unwrap_or_default())
}

/// Formats an identifier. Returns an empty string if there is no identifier.
fn format_id(id: Option<&GatewayMessageId>) -> String {
    id.map(GatewayMessageId::to_string).unwrap_or_default()
}

async fn run_sms_templates_command(context: &Context, command: SmsTemplatesCommand) -> Result<u8, CommandFailure> {
    let channel = TemplateChannel::Sms;
    match command {
        SmsTemplatesCommand::List(gateway_option) => list_templates(context, &gateway_option, channel).await,
        SmsTemplatesCommand::Create { name: label, text, confirmation, gateway_option } => {
            let draft = CreateTemplate { channel, label, text: read_template_text(&text)? };
            create_template(context, &gateway_option, draft, confirmation.yes).await
        }
        SmsTemplatesCommand::Delete { id, confirmation, gateway_option } => {
            delete_template(context, &gateway_option, DeleteTemplate { channel, id, text: None }, confirmation.yes)
                .await
        }
    }
}

async fn run_viber_templates_command(context: &Context, command: ViberTemplatesCommand) -> Result<u8, CommandFailure> {
    let channel = TemplateChannel::Viber;
    match command {
        ViberTemplatesCommand::List(gateway_option) => list_templates(context, &gateway_option, channel).await,
        ViberTemplatesCommand::Create { signature: label, text, confirmation, gateway_option } => {
            let draft = CreateTemplate { channel, label, text: read_template_text(&text)? };
            create_template(context, &gateway_option, draft, confirmation.yes).await
        }
        ViberTemplatesCommand::Delete { id, text, confirmation, gateway_option } => {
            delete_template(context, &gateway_option, DeleteTemplate { channel, id, text }, confirmation.yes).await
        }
    }
}

async fn list_templates(
    context: &Context,
    option: &GatewayOption,
    channel: TemplateChannel,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, option).await?;
    let templates = account.ask(&ListTemplates { channel }).await?;
    let gateway = &account.profile.name;
    if context.output.json {
        let templates: Vec<Value> = templates.iter().map(template_json).collect();
        context.output.print_object(&json!({ "gateway": gateway, "templates": templates, "exit": exit::SUCCESS }));
    } else if templates.is_empty() {
        context.output.print_result(format!("{gateway} has no {channel} templates\n"));
    } else {
        context.output.print_result(render_records(templates.into_iter().map(format_template)));
    }
    Ok(exit::SUCCESS)
}

/// Formats the facts about a template, followed by its text.
fn format_template(template: MessageTemplate) -> (Vec<Span>, String) {
    let MessageTemplate { channel: _, id, label, text, count, created, status } = template;
    let count = count.map(|count| format!("count {count}"));
    let created = created.map(|created| format!("created {}", format_time(Some(&created))));
    let facts = [
        strong(format_id(id.as_ref())),
        plain(label.unwrap_or_default()),
        plain(count.unwrap_or_default()),
        plain(status.unwrap_or_default()),
        dim(created.unwrap_or_default()),
    ];
    (facts.to_vec(), text.unwrap_or_default())
}

async fn create_template(
    context: &Context,
    option: &GatewayOption,
    draft: CreateTemplate,
    is_confirmed: bool,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, option).await?;
    let (channel, label) = (draft.channel, draft.label.trim());
    let description = match channel {
        TemplateChannel::Sms => format!("`{label}`"),
        TemplateChannel::Viber => format!("for `{label}`"),
    };
    let created =
        account.create_template(draft, consent::choose_consent(&context.output, is_confirmed).as_ref()).await?;
    if context.output.json {
        let (gateway, template) = (&account.profile.name, template_json(&created));
        context.output.print_object(&json!({ "gateway": gateway, "template": template, "exit": exit::SUCCESS }));
    } else {
        let count = created.count.map(|count| format!(", count {count}")).unwrap_or_default();
        let status = created.status.map(|status| format!(", status {status}")).unwrap_or_default();
        let template = format!("{description}: id {}{count}{status}", format_id(created.id.as_ref()));
        let message = format!("created the {channel} template ");
        context.output.print_result(StyledLine::success([plain(message), strong(template)]));
    }
    Ok(exit::SUCCESS)
}

async fn delete_template(
    context: &Context,
    option: &GatewayOption,
    template: DeleteTemplate,
    is_confirmed: bool,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, option).await?;
    let DeleteTemplate { channel, id, .. } = template;
    let deleted =
        account.delete_template(template, consent::choose_consent(&context.output, is_confirmed).as_ref()).await?;
    if context.output.json {
        let gateway = &account.profile.name;
        context
            .output
            .print_object(&json!({ "gateway": gateway, "id": id, "deleted": deleted, "exit": exit::SUCCESS }));
    } else {
        let message = format!("deleted the {channel} template ");
        context.output.print_done(StyledLine::success([plain(message), strong(id.to_string())]), exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

/// Reads the template text from the arguments or from a file. A blank text is an error.
fn read_template_text(args: &TextArgs) -> Result<String, CommandFailure> {
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read_text_file(file).map_err(CommandFailure::invalid)?,
        (None, None) => String::new(),
    };
    if text.trim().is_empty() { Err(CommandFailure::invalid("the template text is empty")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_time_is_shown_in_local_time() {
        let time = format_time(Some("2026-11-21T10:00:00+02:00"));
        assert!(time.starts_with("2026-11-2") && time.len() == "2026-11-21 10:00:00".len(), "{time}");
        for text in ["soon", "2026-11-21", ""] {
            assert_eq!(format_time(Some(text)), text);
        }
        assert_eq!(format_time(None), "");
    }
}

#[cfg(test)]
mod template_tests {
    use super::*;
    use crate::suggested::RepeatedOptions;

    #[test]
    fn template_file_is_read_without_bom_or_final_line_break() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        let read = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            read_template_text(&TextArgs { text: None, file: Some(file.clone()) })
                .map_err(|failure| failure.into_explanation(&RepeatedOptions::default()).message)
        };
        assert_eq!(read("\u{feff}Привіт,\r\n%name%\n".as_bytes()).as_deref(), Ok("Привіт,\n%name%"));
        assert!(read(b"\n").unwrap_err().contains("empty"));
        assert!(read(b"\xcf\xf0").unwrap_err().contains("UTF-8"));
        assert!(read(&vec![b'a'; 65 * 1024]).unwrap_err().contains("64 KiB"));
    }
}
