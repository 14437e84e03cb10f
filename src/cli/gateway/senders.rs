//! `campaign gateway senders`: the sender names of an account and whether they are verified.

use serde_json::{Value, json};

use super::open_account;
use crate::cli::args::GatewayOption;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::table::TerminalTable;
use crate::cli::text::{plain, strong};
use crate::gateway::AskSenders;
use crate::report::sender_json;

pub(super) async fn list_senders(context: &Context, through: &GatewayOption) -> Result<u8, CommandFailure> {
    let account = open_account(context, through).await?;
    let waiting = context.output.show_spinner("Asking the gateway…");
    let senders = account.ask(&AskSenders).await?;
    drop(waiting);
    let gateway = &account.profile.name;
    if context.output.json {
        let senders: Vec<Value> = senders.iter().map(sender_json).collect();
        context.output.print_object(&json!({ "gateway": gateway, "senders": senders, "exit": exit::SUCCESS }));
    } else if senders.is_empty() {
        context.output.print_result(format!("{gateway} has no sender names\n"));
    } else {
        let rows = senders.into_iter().map(|sender| [strong(sender.name), plain(sender.status)]);
        context.output.print_result(TerminalTable::new(["sender", "status"], rows));
    }
    Ok(exit::SUCCESS)
}
