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
use super::failure::CommandFailure;
use crate::delivery::SingleKind;
use crate::runs::GatewayAccount;

/// How long a command waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn run_gateway_command(context: &Context, command: GatewayCommand) -> Result<u8, CommandFailure> {
    match command {
        GatewayCommand::Balance(through) => balance::show_balance(context, &through).await,
        GatewayCommand::Senders(through) => senders::list_senders(context, &through).await,
        GatewayCommand::Status(args) => status::show_delivery_status(context, &args).await,
        GatewayCommand::Lookup(args) => single::run_single_operation(context, SingleKind::Lookup, args).await,
        GatewayCommand::Otp(args) => single::run_single_operation(context, SingleKind::CodeCall, args).await,
        GatewayCommand::Templates(command) => sms_templates::run_templates_command(context, command).await,
        GatewayCommand::ViberTemplates(command) => viber_templates::run_templates_command(context, command).await,
        GatewayCommand::Add(args) => add::add_profile(context, args).await,
        GatewayCommand::Hook(args) => hook::show_hook(context, &args).await,
        GatewayCommand::Trust { name } => trust::trust_host(context, &name).await,
    }
}

/// The account that a command names. The gateway is not asked yet.
async fn open_account(context: &Context, through: &GatewayOption) -> Result<GatewayAccount, CommandFailure> {
    let profile = context.profiles().find_for_query(through.gateway.as_deref(), &context.observer)?;
    let adapters = context.adapters(context.open_ledger().await?)?;
    Ok(GatewayAccount::open(&adapters, &profile, ANSWER_TIMEOUT).await?)
}
