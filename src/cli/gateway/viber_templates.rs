//! `campaign gateway viber-templates`: the Viber templates of an account.

use super::show::format_id;
use super::templates::TemplateOutput;
use super::{open_account, text};
use crate::cli::args::{GatewayOption, ViberTemplatesCommand};
use crate::cli::consent;
use crate::cli::context::Context;
use crate::cli::failure::CommandFailure;
use crate::cli::text::{Span, plain, strong};
use crate::gateway::{CreateViberTemplate, ListViberTemplates, ViberTemplate};
use crate::report::viber_template_json;

const VIBER: TemplateOutput<ViberTemplate> =
    TemplateOutput { name: "Viber", record: template_record, object: viber_template_json };

pub(super) async fn run_templates_command(
    context: &Context,
    command: ViberTemplatesCommand,
) -> Result<u8, CommandFailure> {
    match command {
        ViberTemplatesCommand::List(through) => {
            let account = open_account(context, &through).await?;
            let templates = account.ask(&ListViberTemplates).await?;
            Ok(VIBER.print_all(context, &account, templates))
        }
        ViberTemplatesCommand::Create { signature, text, agreed, through } => {
            let template = CreateViberTemplate { signature, text: text::read_template_text(&text)? };
            create_template(context, &through, template, agreed.yes).await
        }
        ViberTemplatesCommand::Delete { id, text, agreed, through } => {
            let account = open_account(context, &through).await?;
            let consent = consent::consent_for(&context.output, agreed.yes);
            let deleted = account.delete_viber_template(id, text, consent.as_ref()).await?;
            Ok(VIBER.report_deleted(context, &account, id, deleted))
        }
    }
}

async fn create_template(
    context: &Context,
    through: &GatewayOption,
    template: CreateViberTemplate,
    yes: bool,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, through).await?;
    let signature = template.signature.trim().to_owned();
    let created = account.create_viber_template(template, consent::consent_for(&context.output, yes).as_ref()).await?;
    let status = created.status.as_ref().filter(|status| !status.is_empty());
    let status = status.map(|status| format!(", status {status}")).unwrap_or_default();
    let line = format!("for `{signature}`: id {}{status}", format_id(created.id.as_ref()));
    Ok(VIBER.report_created(context, &account, &created, &line))
}

fn template_record(template: ViberTemplate) -> (Vec<Span>, String) {
    let facts = [
        strong(format_id(template.id.as_ref())),
        plain(template.signature.unwrap_or_default()),
        plain(template.status.unwrap_or_default()),
    ];
    (facts.to_vec(), template.text.unwrap_or_default())
}
