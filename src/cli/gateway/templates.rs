//! The output that the templates of all channels share.

use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::table::render_records;
use crate::cli::text::{Span, StyledLine, plain, strong};
use crate::runs::GatewayAccount;

/// How templates of one kind are shown.
pub(super) struct TemplateOutput<T> {
    /// The channel, as it is written.
    pub(super) name: &'static str,
    /// The facts and the text of a template.
    pub(super) record: fn(T) -> (Vec<Span>, String),
    pub(super) object: fn(&T) -> Value,
}

impl<T> TemplateOutput<T> {
    /// Shows all templates.
    pub(super) fn print_all(&self, context: &Context, account: &GatewayAccount, templates: Vec<T>) -> u8 {
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
    pub(super) fn report_created(&self, context: &Context, account: &GatewayAccount, created: &T, line: &str) -> u8 {
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
    pub(super) fn report_deleted(
        &self,
        context: &Context,
        account: &GatewayAccount,
        id: u64,
        deleted: Option<u64>,
    ) -> u8 {
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
