//! `campaign gateway templates`: the SMS templates of an account.

use super::show::{id, moment};
use super::templates::TemplateWords;
use super::{account, text};
use crate::cli::args::{GatewayOption, SmsTemplatesCommand};
use crate::cli::consent;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::text::{Span, dim, plain, strong};
use crate::gateway::{CreateSmsTemplate, ListSmsTemplates, SmsTemplate};
use crate::report::sms_template_json;

const SMS: TemplateWords<SmsTemplate> = TemplateWords { name: "SMS", record, object: sms_template_json };

pub(super) async fn templates(context: &Context, command: SmsTemplatesCommand) -> Result<u8, Failure> {
    match command {
        SmsTemplatesCommand::List(through) => {
            let account = account(context, &through).await?;
            let templates = account.ask(&ListSmsTemplates).await?;
            Ok(SMS.tell_all(context, &account, templates))
        }
        SmsTemplatesCommand::Create { name, text, agreed, through } => {
            let template = CreateSmsTemplate { name, text: text::text(&text)? };
            create(context, &through, template, agreed.yes).await
        }
        SmsTemplatesCommand::Delete { id, agreed, through } => {
            let account = account(context, &through).await?;
            let consent = consent::of(&context.output, agreed.yes);
            let deleted = account.delete_sms_template(id, consent.as_ref()).await?;
            Ok(SMS.tell_deleted(context, &account, id, deleted))
        }
    }
}

async fn create(
    context: &Context,
    through: &GatewayOption,
    template: CreateSmsTemplate,
    yes: bool,
) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let name = template.name.trim().to_owned();
    let created = account.create_sms_template(template, consent::of(&context.output, yes).as_ref()).await?;
    let count = created.count.as_ref().filter(|count| !count.is_empty());
    let count = count.map(|count| format!(", count {count}")).unwrap_or_default();
    let line = format!("`{name}`: id {}{count}", id(created.id.as_ref()));
    Ok(SMS.tell_created(context, &account, &created, &line))
}

fn record(template: SmsTemplate) -> (Vec<Span>, String) {
    let count = template.count.filter(|count| !count.is_empty()).map(|count| format!("count {count}"));
    let created = template.created.as_deref().map(|created| format!("created {}", moment(Some(created))));
    let facts = [
        strong(id(template.id.as_ref())),
        plain(template.name.unwrap_or_default()),
        plain(count.unwrap_or_default()),
        dim(created.unwrap_or_default()),
    ];
    (facts.to_vec(), template.text.unwrap_or_default())
}
