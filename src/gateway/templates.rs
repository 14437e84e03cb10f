//! `campaign gateway templates` and `viber-templates`: list, create and delete message templates of an account.

use serde_json::{Value, json};

use super::{format_id, format_time, open_account};
use crate::args::{GatewayOption, SmsTemplatesCommand, TextArgs, ViberTemplatesCommand};
use crate::context::Context;
use crate::exit::CommandFailure;
use crate::text::{Span, StyledLine, dim, plain, render_records, strong};
use crate::{consent, exit};
use campaign_engine::report::{sms_template_json, viber_template_json};
use campaign_gateway::{
    CreateSmsTemplate, CreateViberTemplate, Inquiry, ListSmsTemplates, ListViberTemplates, SmsTemplate, ViberTemplate,
};
use campaign_manifest::read_text_file;
use campaign_runs::{Consent, Error, GatewayAccount};

/// Templates of one channel: how they are listed, created, deleted and printed.
trait ChannelTemplate: Sized {
    /// The name of the channel.
    const CHANNEL: &'static str;
    /// The inquiry about all templates.
    type List: Inquiry<Answer = Vec<Self>>;
    const LIST: Self::List;
    /// A template that does not exist yet.
    type Draft;

    /// Describes a new template with the operator's input.
    fn describe_draft(draft: &Self::Draft) -> String;

    /// Creates a template after a confirmation.
    async fn create(account: &GatewayAccount, draft: Self::Draft, consent: &dyn Consent) -> Result<Self, Error>;

    /// Deletes a template after a confirmation. Returns how many templates the gateway deleted.
    async fn delete(
        account: &GatewayAccount,
        id: u64,
        text: Option<String>,
        consent: &dyn Consent,
    ) -> Result<Option<u64>, Error>;

    /// Formats the facts that the gateway returned about a new template.
    fn format_created(&self) -> String;

    /// Returns the facts about a template, and the text of the template.
    fn into_record(self) -> (Vec<Span>, String);

    fn to_json(&self) -> Value;
}

impl ChannelTemplate for SmsTemplate {
    const CHANNEL: &'static str = "SMS";
    type List = ListSmsTemplates;
    const LIST: Self::List = ListSmsTemplates;
    type Draft = CreateSmsTemplate;

    fn describe_draft(draft: &Self::Draft) -> String {
        format!("`{}`", draft.name.trim())
    }

    async fn create(account: &GatewayAccount, draft: Self::Draft, consent: &dyn Consent) -> Result<Self, Error> {
        account.create_sms_template(draft, consent).await
    }

    /// The gateway does not need the text.
    async fn delete(
        account: &GatewayAccount,
        id: u64,
        _text: Option<String>,
        consent: &dyn Consent,
    ) -> Result<Option<u64>, Error> {
        account.delete_sms_template(id, consent).await
    }

    fn format_created(&self) -> String {
        let Self { id, name: _, text: _, count, created: _ } = self;
        let count = count.as_ref().filter(|count| !count.is_empty());
        let count = count.map(|count| format!(", count {count}")).unwrap_or_default();
        format!("id {}{count}", format_id(id.as_ref()))
    }

    fn into_record(self) -> (Vec<Span>, String) {
        let Self { id, name, text, count, created } = self;
        let count = count.filter(|count| !count.is_empty()).map(|count| format!("count {count}"));
        let created = created.map(|created| format!("created {}", format_time(Some(&created))));
        let facts = [
            strong(format_id(id.as_ref())),
            plain(name.unwrap_or_default()),
            plain(count.unwrap_or_default()),
            dim(created.unwrap_or_default()),
        ];
        (facts.to_vec(), text.unwrap_or_default())
    }

    fn to_json(&self) -> Value {
        sms_template_json(self)
    }
}

impl ChannelTemplate for ViberTemplate {
    const CHANNEL: &'static str = "Viber";
    type List = ListViberTemplates;
    const LIST: Self::List = ListViberTemplates;
    type Draft = CreateViberTemplate;

    fn describe_draft(draft: &Self::Draft) -> String {
        format!("for `{}`", draft.signature.trim())
    }

    async fn create(account: &GatewayAccount, draft: Self::Draft, consent: &dyn Consent) -> Result<Self, Error> {
        account.create_viber_template(draft, consent).await
    }

    async fn delete(
        account: &GatewayAccount,
        id: u64,
        text: Option<String>,
        consent: &dyn Consent,
    ) -> Result<Option<u64>, Error> {
        account.delete_viber_template(id, text, consent).await
    }

    fn format_created(&self) -> String {
        let Self { id, signature: _, text: _, status } = self;
        let status = status.as_ref().filter(|status| !status.is_empty());
        let status = status.map(|status| format!(", status {status}")).unwrap_or_default();
        format!("id {}{status}", format_id(id.as_ref()))
    }

    fn into_record(self) -> (Vec<Span>, String) {
        let Self { id, signature, text, status } = self;
        let facts =
            [strong(format_id(id.as_ref())), plain(signature.unwrap_or_default()), plain(status.unwrap_or_default())];
        (facts.to_vec(), text.unwrap_or_default())
    }

    fn to_json(&self) -> Value {
        viber_template_json(self)
    }
}

pub(super) async fn run_sms_templates_command(
    context: &Context,
    command: SmsTemplatesCommand,
) -> Result<u8, CommandFailure> {
    match command {
        SmsTemplatesCommand::List(through) => list_templates::<SmsTemplate>(context, &through).await,
        SmsTemplatesCommand::Create { name, text, agreed, through } => {
            let draft = CreateSmsTemplate { name, text: read_template_text(&text)? };
            create_template::<SmsTemplate>(context, &through, draft, agreed.yes).await
        }
        SmsTemplatesCommand::Delete { id, agreed, through } => {
            delete_template::<SmsTemplate>(context, &through, id, None, agreed.yes).await
        }
    }
}

pub(super) async fn run_viber_templates_command(
    context: &Context,
    command: ViberTemplatesCommand,
) -> Result<u8, CommandFailure> {
    match command {
        ViberTemplatesCommand::List(through) => list_templates::<ViberTemplate>(context, &through).await,
        ViberTemplatesCommand::Create { signature, text, agreed, through } => {
            let draft = CreateViberTemplate { signature, text: read_template_text(&text)? };
            create_template::<ViberTemplate>(context, &through, draft, agreed.yes).await
        }
        ViberTemplatesCommand::Delete { id, text, agreed, through } => {
            delete_template::<ViberTemplate>(context, &through, id, text, agreed.yes).await
        }
    }
}

async fn list_templates<T: ChannelTemplate>(context: &Context, through: &GatewayOption) -> Result<u8, CommandFailure> {
    let account = open_account(context, through).await?;
    let templates = account.ask(&T::LIST).await?;
    let gateway = &account.profile.name;
    if context.output.json {
        let templates: Vec<Value> = templates.iter().map(T::to_json).collect();
        context.output.print_object(&json!({ "gateway": gateway, "templates": templates, "exit": exit::SUCCESS }));
    } else if templates.is_empty() {
        context.output.print_result(format!("{gateway} has no {} templates\n", T::CHANNEL));
    } else {
        context.output.print_result(render_records(templates.into_iter().map(T::into_record)));
    }
    Ok(exit::SUCCESS)
}

async fn create_template<T: ChannelTemplate>(
    context: &Context,
    through: &GatewayOption,
    draft: T::Draft,
    yes: bool,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, through).await?;
    let description = T::describe_draft(&draft);
    let created = T::create(&account, draft, consent::consent_for(&context.output, yes).as_ref()).await?;
    if context.output.json {
        let (gateway, template) = (&account.profile.name, created.to_json());
        context.output.print_object(&json!({ "gateway": gateway, "template": template, "exit": exit::SUCCESS }));
    } else {
        let what = format!("created the {} template ", T::CHANNEL);
        let template = format!("{description}: {}", created.format_created());
        context.output.print_result(StyledLine::success([plain(what), strong(template)]));
    }
    Ok(exit::SUCCESS)
}

async fn delete_template<T: ChannelTemplate>(
    context: &Context,
    through: &GatewayOption,
    id: u64,
    text: Option<String>,
    yes: bool,
) -> Result<u8, CommandFailure> {
    let account = open_account(context, through).await?;
    let deleted = T::delete(&account, id, text, consent::consent_for(&context.output, yes).as_ref()).await?;
    if context.output.json {
        let gateway = &account.profile.name;
        context
            .output
            .print_object(&json!({ "gateway": gateway, "id": id, "deleted": deleted, "exit": exit::SUCCESS }));
    } else {
        let what = format!("deleted the {} template ", T::CHANNEL);
        context.output.print_done(StyledLine::success([plain(what), strong(id.to_string())]), exit::SUCCESS);
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
