//! `campaign gateway templates`: the SMS templates of an account.

use serde_json::{Value, json};

use super::ask::{account, order};
use super::consent::Consent;
use super::deleted::told_deleted;
use super::show::{id, id_json, moment, text_table};
use super::text;
use crate::cli::args::{Agreed, SmsTemplatesCommand, Through};
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::finding::one_line;
use crate::gateway::{CreateSmsTemplate, DeleteSmsTemplate, ListSmsTemplates, SmsTemplate};

/// The command that shows whether a change was made.
const LIST: &str = "templates list";

pub(super) async fn templates(context: &Context, command: SmsTemplatesCommand) -> Result<u8, Failure> {
    match command {
        SmsTemplatesCommand::List(through) => list(context, &through).await,
        SmsTemplatesCommand::Create { name, text, agreed, through } => {
            let template = CreateSmsTemplate { name, text: text::text(&text)? };
            create(context, &through, (template, &agreed)).await
        }
        SmsTemplatesCommand::Delete { id, agreed, through } => {
            delete(context, &through, (DeleteSmsTemplate { id }, &agreed)).await
        }
    }
}

async fn list(context: &Context, through: &Through) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let templates = account.ask(&ListSmsTemplates).await?;
    let gateway = &account.profile.name;
    if context.output.json {
        let templates: Vec<Value> = templates.iter().map(object).collect();
        context.output.object(&json!({ "gateway": gateway, "templates": templates, "exit": exit::FINE }));
    } else if templates.is_empty() {
        context.output.result(&format!("{gateway} has no SMS templates\n"));
    } else {
        let rows = templates.into_iter().map(row);
        context.output.result(&text_table(["id", "name", "text", "count", "created"], rows));
    }
    Ok(exit::FINE)
}

async fn create(
    context: &Context,
    through: &Through,
    (mut template, agreed): (CreateSmsTemplate, &Agreed),
) -> Result<u8, Failure> {
    template.name = template.name.trim().to_owned();
    if template.name.is_empty() {
        return Err(Failure::wrong("the name of the template is empty"));
    }
    let account = account(context, through).await?;
    let consent = Consent::to("create", context, &account, agreed)?;
    consent.ask(&account, &format!("  {}\n  {}", template.name, template.text)).await?;
    let created = order(context, &account, (&template, LIST)).await?;
    if context.output.json {
        let object = json!({ "gateway": account.profile.name, "template": object(&created), "exit": exit::FINE });
        context.output.object(&object);
    } else {
        let (id, count) = (id(created.id.as_ref()), created.count.unwrap_or_default());
        let count = if count.is_empty() { count } else { format!(", count {count}") };
        let line = format!("created the SMS template `{}`: id {id}{count}", template.name);
        context.output.result(&format!("{}\n", one_line(&line)));
    }
    Ok(exit::FINE)
}

async fn delete(
    context: &Context,
    through: &Through,
    (template, agreed): (DeleteSmsTemplate, &Agreed),
) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let consent = Consent::to("delete", context, &account, agreed)?;
    consent.ask(&account, &format!("  the SMS template {}", template.id)).await?;
    let deleted = order(context, &account, (&template, LIST)).await?;
    told_deleted(context, &account, ("SMS", template.id, deleted))
}

fn row(template: SmsTemplate) -> [String; 5] {
    [
        id(template.id.as_ref()),
        template.name.unwrap_or_default(),
        template.text.unwrap_or_default(),
        template.count.unwrap_or_default(),
        moment(template.created.as_deref()),
    ]
}

fn object(template: &SmsTemplate) -> Value {
    json!({
        "id": id_json(template.id.as_ref()),
        "name": template.name,
        "template": template.text,
        "count": template.count,
        "datetime": template.created,
    })
}
