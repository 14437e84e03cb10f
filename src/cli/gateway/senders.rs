//! `campaign gateway senders`: the sender names and whether they are verified.

use serde_json::{Value, json};

use super::account;
use crate::cli::args::GatewayOption;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::table::table;
use crate::gateway::AskSenders;
use crate::report::sender_json;

pub(super) async fn senders(context: &Context, through: &GatewayOption) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let senders = account.ask(&AskSenders).await?;
    let gateway = &account.profile.name;
    if context.output.json {
        let senders: Vec<Value> = senders.iter().map(sender_json).collect();
        context.output.object(&json!({ "gateway": gateway, "senders": senders, "exit": exit::FINE }));
    } else if senders.is_empty() {
        context.output.result(&format!("{gateway} lists no sender names\n"));
    } else {
        let rows = senders.into_iter().map(|sender| [sender.name, sender.status]);
        context.output.result(&table(["sender", "status"], rows));
    }
    Ok(exit::FINE)
}
