//! `campaign gateway templates` and `viber-templates`: list, create and delete message templates of an account.

use serde_json::{Value, json};

use super::{format_id, format_time, open_account};
use crate::args::{GatewayOption, SmsTemplatesCommand, TextArgs, ViberTemplatesCommand};
use crate::context::Context;
use crate::exit::CommandFailure;
use crate::text::{Span, StyledLine, dim, plain, render_records, strong};
use crate::{consent, exit};
use campaign_engine::report::template_json;
use campaign_gateway::{CreateTemplate, DeleteTemplate, ListTemplates, MessageTemplate, TemplateChannel};
use campaign_manifest::read_text_file;

pub(super) async fn run_sms_templates_command(
    context: &Context,
    command: SmsTemplatesCommand,
) -> Result<u8, CommandFailure> {
    let channel = TemplateChannel::Sms;
    match command {
        SmsTemplatesCommand::List(through) => list_templates(context, &through, channel).await,
        SmsTemplatesCommand::Create { name: label, text, agreed, through } => {
            let draft = CreateTemplate { channel, label, text: read_template_text(&text)? };
            create_template(context, &through, draft, agreed.yes).await
        }
        SmsTemplatesCommand::Delete { id, agreed, through } => {
            delete_template(context, &through, DeleteTemplate { channel, id, text: None }, agreed.yes).await
        }
    }
}

pub(super) async fn run_viber_templates_command(
    context: &Context,
    command: ViberTemplatesCommand,
) -> Result<u8, CommandFailure> {
    let channel = TemplateChannel::Viber;
    match command {
        ViberTemplatesCommand::List(through) => list_templates(context, &through, channel).await,
        ViberTemplatesCommand::Create { signature: label, text, agreed, through } => {
            let draft = CreateTemplate { channel, label, text: read_template_text(&text)? };
            create_template(context, &through, draft, agreed.yes).await
        }
        ViberTemplatesCommand::Delete { id, text, agreed, through } => {
            delete_template(context, &through, DeleteTemplate { channel, id, text }, agreed.yes).await
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
        context.output.print_result(render_records(templates.into_iter().map(format_record)));
    }
    Ok(exit::SUCCESS)
}

/// Formats the facts about a template, followed by its text.
fn format_record(template: MessageTemplate) -> (Vec<Span>, String) {
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
    yes: bool,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, option).await?;
    let (channel, label) = (draft.channel, draft.label.trim());
    let description = match channel {
        TemplateChannel::Sms => format!("`{label}`"),
        TemplateChannel::Viber => format!("for `{label}`"),
    };
    let created = account.create_template(draft, consent::consent_for(&context.output, yes).as_ref()).await?;
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
    yes: bool,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, option).await?;
    let DeleteTemplate { channel, id, .. } = template;
    let deleted = account.delete_template(template, consent::consent_for(&context.output, yes).as_ref()).await?;
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
