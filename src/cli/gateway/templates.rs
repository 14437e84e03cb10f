//! The output that the templates of all channels share.

use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::table::records;
use crate::cli::text::{Line, Span, plain, strong};
use crate::runs::Account;

/// How templates of one kind are shown.
pub(super) struct TemplateWords<T> {
    /// The channel, as it is written.
    pub(super) name: &'static str,
    /// The facts and the text of a template.
    pub(super) record: fn(T) -> (Vec<Span>, String),
    pub(super) object: fn(&T) -> Value,
}

impl<T> TemplateWords<T> {
    /// Shows all templates.
    pub(super) fn tell_all(&self, context: &Context, account: &Account, templates: Vec<T>) -> u8 {
        let gateway = &account.profile.name;
        if context.output.json {
            let templates: Vec<Value> = templates.iter().map(self.object).collect();
            context.output.object(&json!({ "gateway": gateway, "templates": templates, "exit": exit::FINE }));
        } else if templates.is_empty() {
            context.output.result(format!("{gateway} has no {} templates\n", self.name));
        } else {
            context.output.result(records(templates.into_iter().map(self.record)));
        }
        exit::FINE
    }

    /// Reports a new template, which `line` describes.
    pub(super) fn tell_created(&self, context: &Context, account: &Account, created: &T, line: &str) -> u8 {
        if context.output.json {
            let (name, template) = (&account.profile.name, (self.object)(created));
            context.output.object(&json!({ "gateway": name, "template": template, "exit": exit::FINE }));
        } else {
            let what = format!("created the {} template ", self.name);
            context.output.result(Line::success([plain(what), strong(line)]));
        }
        exit::FINE
    }

    /// Reports a deleted template, and how many templates the gateway deleted.
    pub(super) fn tell_deleted(&self, context: &Context, account: &Account, id: u64, deleted: Option<u64>) -> u8 {
        if context.output.json {
            let name = &account.profile.name;
            context.output.object(&json!({ "gateway": name, "id": id, "deleted": deleted, "exit": exit::FINE }));
        } else {
            let what = format!("deleted the {} template ", self.name);
            context.output.done(Line::success([plain(what), strong(id.to_string())]), exit::FINE);
        }
        exit::FINE
    }
}
