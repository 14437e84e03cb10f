//! `campaign gateway …`: the account of a gateway and its templates. One file per command.

mod add;
mod balance;
mod hook;
mod live_campaign;
mod senders;
mod show;
mod single;
mod sms_templates;
mod status;
mod templates;
mod text;
mod trust;
mod viber_templates;

use std::time::Duration;

use super::args::{GatewayCommand, GatewayOption};
use super::context::Context;
use super::failure::Failure;
use crate::delivery::SingleKind;
use crate::runs::Account;

/// How long a command waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn gateway(context: &Context, command: GatewayCommand) -> Result<u8, Failure> {
    match command {
        GatewayCommand::Balance(through) => balance::balance(context, &through).await,
        GatewayCommand::Senders(through) => senders::senders(context, &through).await,
        GatewayCommand::Status(args) => status::status(context, &args).await,
        GatewayCommand::Lookup(args) => single::single(context, SingleKind::Lookup, args).await,
        GatewayCommand::Otp(args) => single::single(context, SingleKind::CodeCall, args).await,
        GatewayCommand::Templates(command) => sms_templates::templates(context, command).await,
        GatewayCommand::ViberTemplates(command) => viber_templates::templates(context, command).await,
        GatewayCommand::Add(args) => add::add(context, args).await,
        GatewayCommand::Hook(args) => hook::hook(context, &args).await,
        GatewayCommand::Trust { name } => trust::trust(context, &name).await,
    }
}

/// The account that a command names. The gateway is not asked yet.
async fn account(context: &Context, through: &GatewayOption) -> Result<Account, Failure> {
    let profile = context.profiles().of_question(through.gateway.as_deref(), &context.observer)?;
    let adapters = context.adapters(context.ledger().await?)?;
    Ok(Account::of(&adapters, &profile, PATIENCE).await?)
}
