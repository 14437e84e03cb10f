//! What a deletion came to, which is told alike for both kinds of templates.

use serde_json::json;

use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::runs::Account;

/// Says that a template is deleted, unless the gateway says that it deleted none.
pub(super) fn told_deleted(
    context: &Context,
    account: &Account,
    (kind, id, deleted): (&str, u64, Option<u64>),
) -> Result<u8, Failure> {
    if deleted == Some(0) {
        return Err(Failure::new(exit::REJECTIONS, format!("the gateway deleted nothing: is there a template {id}?")));
    }
    if context.output.json {
        let name = &account.profile.name;
        context.output.object(&json!({ "gateway": name, "id": id, "deleted": deleted, "exit": exit::FINE }));
    } else {
        context.output.result(&format!("deleted the {kind} template {id}\n"));
    }
    Ok(exit::FINE)
}
