//! `campaign gateway lookup` and `campaign gateway otp`: one paid operation, whose answer is shown.

use crate::cli::args::SingleArgs;
use crate::cli::consent;
use crate::cli::context::Context;
use crate::cli::failure::{CommandFailure, Explanation};
use crate::cli::number::parse_number;
use crate::cli::single_report::SingleReport;
use crate::delivery::SingleKind;
use crate::manifest::{Destination, SANDBOX};
use crate::runs::SingleOperation;

pub(super) async fn run_single_operation(
    context: &Context,
    operation: SingleKind,
    args: SingleArgs,
) -> Result<u8, CommandFailure> {
    let phone = parse_number(&args.phone, args.region.as_deref())?;
    let destination = choose_destination(context, args.gateway.as_deref())?;
    let single = SingleOperation::with_profile_key(operation, phone, destination)?;
    let adapters = context.adapters(context.open_ledger().await?)?;
    let confirmed = single.confirm(adapters, consent::consent_for(&context.output, args.yes).as_ref()).await?;
    let waiting = context.output.show_spinner("Asking the gateway…");
    let ended = confirmed.send(context.watch_signals()?).await?;
    drop(waiting);
    let again = context.output.repeat_command(operation, &ended.run);
    let told = SingleReport::for_ended(context, operation, &ended, again);
    if context.output.json {
        context.output.print_object(&told.to_json());
    } else {
        context.output.print_result(told.render_text());
    }
    Ok(told.exit)
}

/// The named profile, else the only profile; or the built-in sandbox.
fn choose_destination(context: &Context, name: Option<&str>) -> Result<Destination, CommandFailure> {
    let profile = match name {
        Some(SANDBOX) => return Ok(Destination::Rehearsal),
        Some(name) => context.profiles().find_profile(name, None, &context.observer)?,
        None => context.profiles().find_only().map_err(|error| {
            let explanation = context.output.explain_error(&error);
            let help = explanation.help.map(|help| format!("{help}, or rehearse with `--gateway sandbox`"));
            CommandFailure::Explained(Explanation { help, ..explanation })
        })?,
    };
    Ok(Destination::Live(Box::new(profile)))
}
