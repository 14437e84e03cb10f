//! Asking the account that a command names, and ordering changes of it.

use std::time::Duration;

use super::profile::chosen;
use crate::cli::args::Through;
use crate::cli::context::Context;
use crate::cli::failure::{Explanation, Failure};
use crate::gateway::Inquiry;
use crate::runs::{Account, Error};

/// How long a command waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The account that a command names. Nothing is asked yet.
pub(super) async fn account(context: &Context, through: &Through) -> Result<Account, Failure> {
    let profile = chosen(context, through)?;
    let adapters = context.adapters(context.ledger().await?)?;
    Ok(Account::of(&adapters, &profile, PATIENCE).await?)
}

/// Orders a change; `list` is the command that shows whether it was made.
pub(super) async fn order<I: Inquiry>(
    context: &Context,
    account: &Account,
    (order, list): (&I, &str),
) -> Result<I::Answer, Failure> {
    account.ask(order).await.map_err(|error| {
        let Error::Unanswered { gateway, answer } = &error else { return error.into() };
        if answer.undone {
            return error.into();
        }
        let look = context.output.command(format!("gateway {list} --gateway {gateway}"));
        let reason = &answer.reason;
        let message = format!("{reason}; it may have been done all the same: look with `{look}` before you try again");
        Failure::Explained(Explanation { message, ..context.output.explain(error) })
    })
}
