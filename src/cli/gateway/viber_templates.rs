//! `campaign gateway viber-templates`: the Viber templates of an account.

use serde_json::{Value, json};

use super::ask::{account, order};
use super::consent::Consent;
use super::deleted::told_deleted;
use super::show::{id, id_json, text_table};
use super::text;
use crate::cli::args::{Agreed, Through, ViberTemplatesCommand};
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::finding::one_line;
use crate::gateway::{CreateViberTemplate, DeleteViberTemplate, ListViberTemplates, ViberTemplate};
use crate::runs::Account;

/// The command that shows whether a change was made.
const LIST: &str = "viber-templates list";

pub(super) async fn templates(context: &Context, command: ViberTemplatesCommand) -> Result<u8, Failure> {
    match command {
        ViberTemplatesCommand::List(through) => list(context, &through).await,
        ViberTemplatesCommand::Create { signature, text, agreed, through } => {
            let template = CreateViberTemplate { signature, text: text::text(&text)? };
            create(context, &through, (template, &agreed)).await
        }
        ViberTemplatesCommand::Delete { id, text, agreed, through } => {
            delete(context, &through, (id, text, &agreed)).await
        }
    }
}

async fn list(context: &Context, through: &Through) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let templates = account.ask(&ListViberTemplates).await?;
    let gateway = &account.profile.name;
    if context.output.json {
        let templates: Vec<Value> = templates.iter().map(object).collect();
        context.output.object(&json!({ "gateway": gateway, "templates": templates, "exit": exit::FINE }));
    } else if templates.is_empty() {
        context.output.result(&format!("{gateway} has no Viber templates\n"));
    } else {
        context.output.result(&text_table(["id", "signature", "text", "status"], templates.into_iter().map(row)));
    }
    Ok(exit::FINE)
}

async fn create(
    context: &Context,
    through: &Through,
    (mut template, agreed): (CreateViberTemplate, &Agreed),
) -> Result<u8, Failure> {
    template.signature = template.signature.trim().to_owned();
    if template.signature.is_empty() {
        return Err(Failure::wrong("the signature of the template is empty"));
    }
    let account = account(context, through).await?;
    let consent = Consent::to("create", context, &account, agreed)?;
    consent.ask(&account, &format!("  {}\n  {}", template.signature, template.text)).await?;
    let created = order(context, &account, (&template, LIST)).await?;
    if context.output.json {
        let object = json!({ "gateway": account.profile.name, "template": object(&created), "exit": exit::FINE });
        context.output.object(&object);
    } else {
        let (id, status) = (id(created.id.as_ref()), created.status.unwrap_or_default());
        let status = if status.is_empty() { status } else { format!(", status {}", status) };
        let line = format!("created the Viber template for `{}`: id {id}{status}", template.signature);
        context.output.result(&format!("{}\n", one_line(&line)));
    }
    Ok(exit::FINE)
}

async fn delete(
    context: &Context,
    through: &Through,
    (id, text, agreed): (u64, Option<String>, &Agreed),
) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let consent = Consent::to("delete", context, &account, agreed)?;
    let text = match text {
        Some(text) => text,
        None => listed(context, &account, id).await?,
    };
    consent.ask(&account, &format!("  the Viber template {id}\n  {text}")).await?;
    let deleted = order(context, &account, (&DeleteViberTemplate { id, text }, LIST)).await?;
    told_deleted(context, &account, ("Viber", id, deleted))
}

/// The text of a template, which its deletion takes besides the identifier.
async fn listed(context: &Context, account: &Account, wanted: u64) -> Result<String, Failure> {
    let templates = account.ask(&ListViberTemplates).await?;
    let found = templates.into_iter().find(|template| id(template.id.as_ref()) == wanted.to_string());
    let name = &account.profile.name;
    let template = found.ok_or_else(|| {
        let list = context.output.command(format!("gateway {LIST} --gateway {name}"));
        Failure::wrong(format!("there is no Viber template {wanted}; see `{list}`"))
    })?;
    template.text.ok_or_else(|| {
        Failure::wrong(format!("the gateway does not tell the text of the Viber template {wanted}; say `--text TEXT`"))
    })
}

fn row(template: ViberTemplate) -> [String; 4] {
    [
        id(template.id.as_ref()),
        template.signature.unwrap_or_default(),
        template.text.unwrap_or_default(),
        template.status.unwrap_or_default(),
    ]
}

fn object(template: &ViberTemplate) -> Value {
    json!({
        "id": id_json(template.id.as_ref()),
        "signature": template.signature,
        "template": template.text,
        "status": template.status,
    })
}
