//! `campaign gateway lookup` and `campaign gateway otp`: one paid operation, whose answer is shown.

use crate::cli::args::SingleArgs;
use crate::cli::consent;
use crate::cli::context::Context;
use crate::cli::failure::{Explanation, Failure};
use crate::cli::number::number;
use crate::cli::single_report::SingleReport;
use crate::delivery::SingleKind;
use crate::manifest::{Destination, SANDBOX};
use crate::runs::Single;

pub(super) async fn single(context: &Context, operation: SingleKind, args: SingleArgs) -> Result<u8, Failure> {
    let phone = number(&args.phone, args.region.as_deref())?;
    let destination = destination(context, args.gateway.as_deref())?;
    let single = Single::of(operation, phone, destination)?;
    let adapters = context.adapters(context.ledger().await?)?;
    let confirmed = single.confirm(adapters, consent::of(&context.output, args.yes).as_ref()).await?;
    let waiting = context.output.waiting("Asking the gateway…");
    let ended = confirmed.send(context.interrupt()?).await?;
    drop(waiting);
    let again = context.output.ask_anew(operation, &ended.run);
    let told = SingleReport::of(context, operation, &ended, again);
    if context.output.json {
        context.output.object(&told.object());
    } else {
        context.output.result(told.text());
    }
    Ok(told.exit)
}

/// The named profile, else the only profile; or the built-in sandbox.
fn destination(context: &Context, name: Option<&str>) -> Result<Destination, Failure> {
    let profile = match name {
        Some(SANDBOX) => return Ok(Destination::Rehearsal),
        Some(name) => context.profiles().named(name, None, &context.observer)?,
        None => context.profiles().only().map_err(|error| {
            let explanation = context.output.explain(&error);
            let help = explanation.help.map(|help| format!("{help}, or rehearse with `--gateway sandbox`"));
            Failure::Explained(Explanation { help, ..explanation })
        })?,
    };
    Ok(Destination::Live(Box::new(profile)))
}
