//! `campaign gateway …`: what the account of a gateway has, and its templates. One file per command.

mod ask;
mod balance;
mod consent;
mod deleted;
mod once;
mod profile;
mod senders;
mod show;
mod sms_templates;
mod status;
mod text;
mod trust;
mod viber_templates;

use super::args::GatewayCommand;
use super::context::Context;
use super::failure::Failure;
use crate::delivery::OneOff;

pub(super) async fn gateway(context: &Context, command: GatewayCommand) -> Result<u8, Failure> {
    match command {
        GatewayCommand::Balance(through) => balance::balance(context, &through).await,
        GatewayCommand::Senders(through) => senders::senders(context, &through).await,
        GatewayCommand::Status(args) => status::status(context, &args).await,
        GatewayCommand::Lookup(args) => once::once(context, OneOff::Lookup, args).await,
        GatewayCommand::Otp(args) => once::once(context, OneOff::CodeCall, args).await,
        GatewayCommand::Templates(command) => sms_templates::templates(context, command).await,
        GatewayCommand::ViberTemplates(command) => viber_templates::templates(context, command).await,
        GatewayCommand::Trust { name } => trust::trust(context, &name).await,
    }
}
