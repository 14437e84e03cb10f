//! `campaign gateway senders`: the sender names of an account and whether they are verified.

use serde_json::{Value, json};

use super::account;
use crate::cli::args::GatewayOption;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::table::Table;
use crate::cli::text::{plain, strong};
use crate::gateway::AskSenders;
use crate::report::sender_json;

pub(super) async fn senders(context: &Context, through: &GatewayOption) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let waiting = context.output.waiting("Asking the gateway…");
    let senders = account.ask(&AskSenders).await?;
    drop(waiting);
    let gateway = &account.profile.name;
    if context.output.json {
        let senders: Vec<Value> = senders.iter().map(sender_json).collect();
        context.output.object(&json!({ "gateway": gateway, "senders": senders, "exit": exit::FINE }));
    } else if senders.is_empty() {
        context.output.result(format!("{gateway} has no sender names\n"));
    } else {
        let rows = senders.into_iter().map(|sender| [strong(sender.name), plain(sender.status)]);
        context.output.result(Table::new(["sender", "status"], rows));
    }
    Ok(exit::FINE)
}
