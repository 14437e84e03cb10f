//! What is told alike of the templates of every channel.

use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::table::text_table;
use crate::finding::one_line;
use crate::runs::Account;

/// How templates of one kind are told.
pub(super) struct TemplateWords<T, const N: usize> {
    /// The channel, as it is written.
    pub(super) name: &'static str,
    pub(super) header: [&'static str; N],
    pub(super) row: fn(T) -> [String; N],
    pub(super) object: fn(&T) -> Value,
}

impl<T, const N: usize> TemplateWords<T, N> {
    /// Tells the templates that there are.
    pub(super) fn tell_all(&self, context: &Context, account: &Account, templates: Vec<T>) -> u8 {
        let gateway = &account.profile.name;
        if context.output.json {
            let templates: Vec<Value> = templates.iter().map(self.object).collect();
            context.output.object(&json!({ "gateway": gateway, "templates": templates, "exit": exit::FINE }));
        } else if templates.is_empty() {
            context.output.result(&format!("{gateway} has no {} templates\n", self.name));
        } else {
            context.output.result(&text_table(self.header, templates.into_iter().map(self.row)));
        }
        exit::FINE
    }

    /// Tells that a template is created, which `line` says for people.
    pub(super) fn tell_created(&self, context: &Context, account: &Account, created: &T, line: &str) -> u8 {
        if context.output.json {
            let (name, template) = (&account.profile.name, (self.object)(created));
            context.output.object(&json!({ "gateway": name, "template": template, "exit": exit::FINE }));
        } else {
            context.output.result(&format!("created the {} template {}\n", self.name, one_line(line)));
        }
        exit::FINE
    }

    /// Tells that a template is deleted, and how many the gateway says that it deleted.
    pub(super) fn tell_deleted(&self, context: &Context, account: &Account, id: u64, deleted: Option<u64>) -> u8 {
        if context.output.json {
            let name = &account.profile.name;
            context.output.object(&json!({ "gateway": name, "id": id, "deleted": deleted, "exit": exit::FINE }));
        } else {
            context.output.result(&format!("deleted the {} template {id}\n", self.name));
        }
        exit::FINE
    }
}
