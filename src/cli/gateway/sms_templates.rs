//! `campaign gateway templates`: the SMS templates of an account.

use super::show::{format_id, format_time};
use super::templates::TemplateOutput;
use super::{open_account, text};
use crate::cli::args::{GatewayOption, SmsTemplatesCommand};
use crate::cli::consent;
use crate::cli::context::Context;
use crate::cli::failure::CommandFailure;
use crate::cli::text::{Span, dim, plain, strong};
use crate::gateway::{CreateSmsTemplate, ListSmsTemplates, SmsTemplate};
use crate::report::sms_template_json;

const SMS: TemplateOutput<SmsTemplate> =
    TemplateOutput { name: "SMS", record: template_record, object: sms_template_json };

pub(super) async fn run_templates_command(
    context: &Context,
    command: SmsTemplatesCommand,
) -> Result<u8, CommandFailure> {
    match command {
        SmsTemplatesCommand::List(through) => {
            let account = open_account(context, &through).await?;
            let templates = account.ask(&ListSmsTemplates).await?;
            Ok(SMS.print_all(context, &account, templates))
        }
        SmsTemplatesCommand::Create { name, text, agreed, through } => {
            let template = CreateSmsTemplate { name, text: text::read_template_text(&text)? };
            create_template(context, &through, template, agreed.yes).await
        }
        SmsTemplatesCommand::Delete { id, agreed, through } => {
            let account = open_account(context, &through).await?;
            let consent = consent::consent_for(&context.output, agreed.yes);
            let deleted = account.delete_sms_template(id, consent.as_ref()).await?;
            Ok(SMS.report_deleted(context, &account, id, deleted))
        }
    }
}

async fn create_template(
    context: &Context,
    through: &GatewayOption,
    template: CreateSmsTemplate,
    yes: bool,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, through).await?;
    let name = template.name.trim().to_owned();
    let created = account.create_sms_template(template, consent::consent_for(&context.output, yes).as_ref()).await?;
    let count = created.count.as_ref().filter(|count| !count.is_empty());
    let count = count.map(|count| format!(", count {count}")).unwrap_or_default();
    let line = format!("`{name}`: id {}{count}", format_id(created.id.as_ref()));
    Ok(SMS.report_created(context, &account, &created, &line))
}

fn template_record(template: SmsTemplate) -> (Vec<Span>, String) {
    let count = template.count.filter(|count| !count.is_empty()).map(|count| format!("count {count}"));
    let created = template.created.as_deref().map(|created| format!("created {}", format_time(Some(created))));
    let facts = [
        strong(format_id(template.id.as_ref())),
        plain(template.name.unwrap_or_default()),
        plain(count.unwrap_or_default()),
        dim(created.unwrap_or_default()),
    ];
    (facts.to_vec(), template.text.unwrap_or_default())
}
