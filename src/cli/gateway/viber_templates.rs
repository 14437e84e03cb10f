//! `campaign gateway viber-templates`: the Viber templates of an account.

use super::show::id;
use super::templates::TemplateWords;
use super::{account, text};
use crate::cli::args::{GatewayOption, ViberTemplatesCommand};
use crate::cli::consent;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::text::{Span, plain, strong};
use crate::gateway::{CreateViberTemplate, ListViberTemplates, ViberTemplate};
use crate::report::viber_template_json;

const VIBER: TemplateWords<ViberTemplate> = TemplateWords { name: "Viber", record, object: viber_template_json };

pub(super) async fn templates(context: &Context, command: ViberTemplatesCommand) -> Result<u8, Failure> {
    match command {
        ViberTemplatesCommand::List(through) => {
            let account = account(context, &through).await?;
            let templates = account.ask(&ListViberTemplates).await?;
            Ok(VIBER.tell_all(context, &account, templates))
        }
        ViberTemplatesCommand::Create { signature, text, agreed, through } => {
            let template = CreateViberTemplate { signature, text: text::text(&text)? };
            create(context, &through, template, agreed.yes).await
        }
        ViberTemplatesCommand::Delete { id, text, agreed, through } => {
            let account = account(context, &through).await?;
            let consent = consent::of(&context.output, agreed.yes);
            let deleted = account.delete_viber_template(id, text, consent.as_ref()).await?;
            Ok(VIBER.tell_deleted(context, &account, id, deleted))
        }
    }
}

async fn create(
    context: &Context,
    through: &GatewayOption,
    template: CreateViberTemplate,
    yes: bool,
) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let signature = template.signature.trim().to_owned();
    let created = account.create_viber_template(template, consent::of(&context.output, yes).as_ref()).await?;
    let status = created.status.as_ref().filter(|status| !status.is_empty());
    let status = status.map(|status| format!(", status {status}")).unwrap_or_default();
    let line = format!("for `{signature}`: id {}{status}", id(created.id.as_ref()));
    Ok(VIBER.tell_created(context, &account, &created, &line))
}

fn record(template: ViberTemplate) -> (Vec<Span>, String) {
    let facts = [
        strong(id(template.id.as_ref())),
        plain(template.signature.unwrap_or_default()),
        plain(template.status.unwrap_or_default()),
    ];
    (facts.to_vec(), template.text.unwrap_or_default())
}
