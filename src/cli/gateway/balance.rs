//! `campaign gateway balance`: how much money is left.

use serde::Serialize;

use super::account;
use crate::cli::args::GatewayOption;
use crate::cli::context::Context;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::domain::Amount;
use crate::finding::one_line;
use crate::gateway::AskBalance;

/// What `--json` prints; the amount keeps the gateway's digits.
#[derive(Serialize)]
struct BalanceObject<'a> {
    gateway: &'a str,
    amount: Amount,
    currency: &'a str,
    exit: u8,
}

pub(super) async fn balance(context: &Context, through: &GatewayOption) -> Result<u8, Failure> {
    let account = account(context, through).await?;
    let balance = account.ask(&AskBalance).await?;
    let gateway = &account.profile.name;
    if context.output.json {
        let (amount, currency) = (balance.amount, balance.currency.as_str());
        context.output.object(&BalanceObject { gateway, amount, currency, exit: exit::FINE });
    } else {
        let line = format!("{gateway}: {} {}", balance.amount, balance.currency);
        context.output.result(&format!("{}\n", one_line(line.trim_end())));
    }
    Ok(exit::FINE)
}
