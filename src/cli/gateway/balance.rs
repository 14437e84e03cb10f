//! `campaign gateway balance`: the money of an account.

use serde::Serialize;

use super::open_account;
use crate::cli::args::GatewayOption;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::CommandFailure;
use crate::cli::text::{StyledLine, plain, strong};
use crate::domain::Amount;
use crate::gateway::AskBalance;

/// What `--json` prints; the amount keeps the gateway's digits.
#[derive(Serialize)]
struct BalanceObject<'a> {
    gateway: &'a str,
    amount: Amount,
    currency: &'a str,
    exit: u8,
}

pub(super) async fn show_balance(context: &Context, through: &GatewayOption) -> Result<u8, CommandFailure> {
    let account = open_account(context, through).await?;
    let waiting = context.output.show_spinner("Asking the gateway…");
    let balance = account.ask(&AskBalance).await?;
    drop(waiting);
    let gateway = &account.profile.name;
    if context.output.json {
        let (amount, currency) = (balance.amount, balance.currency.as_str());
        context.output.print_object(&BalanceObject { gateway, amount, currency, exit: exit::SUCCESS });
    } else {
        let amount = format!("{} {}", balance.amount, balance.currency);
        context.output.print_result(StyledLine::new([plain(format!("{gateway}: ")), strong(amount.trim_end())]));
    }
    Ok(exit::SUCCESS)
}
