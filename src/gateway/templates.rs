//! `campaign gateway templates` and `viber-templates`: lists, creates and deletes message templates of an account.

use serde_json::{Value, json};

use super::{format_id, format_time, open_account};
use crate::args::{GatewayOption, SmsTemplatesCommand, TextArgs, ViberTemplatesCommand};
use crate::context::Context;
use crate::exit::CommandFailure;
use crate::text::{Span, StyledLine, dim, plain, render_records, strong};
use crate::{consent, exit};
use campaign_engine::report::{sms_template_json, viber_template_json};
use campaign_gateway::{
    CreateSmsTemplate, CreateViberTemplate, ListSmsTemplates, ListViberTemplates, SmsTemplate, ViberTemplate,
};
use campaign_manifest::read_text_file;
use campaign_runs::GatewayAccount;

/// The output format of the templates of one channel.
pub(super) struct TemplateOutput<T> {
    /// The name of the channel.
    pub(super) name: &'static str,
    /// The facts and the text of a template.
    pub(super) record: fn(T) -> (Vec<Span>, String),
    pub(super) object: fn(&T) -> Value,
}

impl<T> TemplateOutput<T> {
    /// Prints all templates.
    fn print_all(&self, context: &Context, account: &GatewayAccount, templates: Vec<T>) -> u8 {
        let gateway = &account.profile.name;
        if context.output.json {
            let templates: Vec<Value> = templates.iter().map(self.object).collect();
            context.output.print_object(&json!({ "gateway": gateway, "templates": templates, "exit": exit::SUCCESS }));
        } else if templates.is_empty() {
            context.output.print_result(format!("{gateway} has no {} templates\n", self.name));
        } else {
            context.output.print_result(render_records(templates.into_iter().map(self.record)));
        }
        exit::SUCCESS
    }

    /// Reports a new template, which `line` describes.
    fn report_created(&self, context: &Context, account: &GatewayAccount, created: &T, line: &str) -> u8 {
        if context.output.json {
            let (name, template) = (&account.profile.name, (self.object)(created));
            context.output.print_object(&json!({ "gateway": name, "template": template, "exit": exit::SUCCESS }));
        } else {
            let what = format!("created the {} template ", self.name);
            context.output.print_result(StyledLine::success([plain(what), strong(line)]));
        }
        exit::SUCCESS
    }

    /// Reports a deleted template, and how many templates the gateway deleted.
    fn report_deleted(&self, context: &Context, account: &GatewayAccount, id: u64, deleted: Option<u64>) -> u8 {
        if context.output.json {
            let name = &account.profile.name;
            context
                .output
                .print_object(&json!({ "gateway": name, "id": id, "deleted": deleted, "exit": exit::SUCCESS }));
        } else {
            let what = format!("deleted the {} template ", self.name);
            context.output.print_done(StyledLine::success([plain(what), strong(id.to_string())]), exit::SUCCESS);
        }
        exit::SUCCESS
    }
}

/// Reads the text from the arguments or from a file. It is never blank.
fn read_template_text(args: &TextArgs) -> Result<String, CommandFailure> {
    let text = match (&args.text, &args.file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => read_text_file(file).map_err(CommandFailure::invalid)?,
        (None, None) => String::new(),
    };
    if text.trim().is_empty() { Err(CommandFailure::invalid("the template text is empty")) } else { Ok(text) }
}

const SMS: TemplateOutput<SmsTemplate> =
    TemplateOutput { name: "SMS", record: sms_template_record, object: sms_template_json };

pub(super) async fn run_sms_templates_command(
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
            let template = CreateSmsTemplate { name, text: read_template_text(&text)? };
            create_sms_template(context, &through, template, agreed.yes).await
        }
        SmsTemplatesCommand::Delete { id, agreed, through } => {
            let account = open_account(context, &through).await?;
            let consent = consent::consent_for(&context.output, agreed.yes);
            let deleted = account.delete_sms_template(id, consent.as_ref()).await?;
            Ok(SMS.report_deleted(context, &account, id, deleted))
        }
    }
}

async fn create_sms_template(
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

fn sms_template_record(template: SmsTemplate) -> (Vec<Span>, String) {
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

const VIBER: TemplateOutput<ViberTemplate> =
    TemplateOutput { name: "Viber", record: viber_template_record, object: viber_template_json };

pub(super) async fn run_viber_templates_command(
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
            let template = CreateViberTemplate { signature, text: read_template_text(&text)? };
            create_viber_template(context, &through, template, agreed.yes).await
        }
        ViberTemplatesCommand::Delete { id, text, agreed, through } => {
            let account = open_account(context, &through).await?;
            let consent = consent::consent_for(&context.output, agreed.yes);
            let deleted = account.delete_viber_template(id, text, consent.as_ref()).await?;
            Ok(VIBER.report_deleted(context, &account, id, deleted))
        }
    }
}

async fn create_viber_template(
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

fn viber_template_record(template: ViberTemplate) -> (Vec<Span>, String) {
    let facts = [
        strong(format_id(template.id.as_ref())),
        plain(template.signature.unwrap_or_default()),
        plain(template.status.unwrap_or_default()),
    ];
    (facts.to_vec(), template.text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suggested::RepeatedOptions;

    #[test]
    fn template_file_loses_byte_order_mark_and_final_break() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.txt");
        let of = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            read_template_text(&TextArgs { text: None, file: Some(file.clone()) })
                .map_err(|failure| failure.into_explanation(&RepeatedOptions::default()).message)
        };
        assert_eq!(of("\u{feff}Привіт,\r\n%name%\n".as_bytes()).as_deref(), Ok("Привіт,\n%name%"));
        assert!(of(b"\n").unwrap_err().contains("empty"));
        assert!(of(b"\xcf\xf0").unwrap_err().contains("UTF-8"));
        assert!(of(&vec![b'a'; 65 * 1024]).unwrap_err().contains("64 KiB"));
    }
}
