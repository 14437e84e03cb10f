//! `campaign gateway lookup` and `campaign gateway otp`: one paid operation that a person waits for.

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
    let ended = confirmed.send(context.interrupt()?).await?;
    let again = context.output.ask_anew(operation, &ended.run);
    let told = SingleReport::of(context, operation, &ended, again);
    if context.output.json {
        context.output.object(&told.object());
    } else {
        context.output.result(&told.text());
    }
    Ok(told.exit)
}

/// Where the question goes: through the profile that was named, else the only one there is; or to the built-in sandbox.
fn destination(context: &Context, name: Option<&str>) -> Result<Destination, Failure> {
    let profile = match name {
        Some(SANDBOX) => return Ok(Destination::Rehearsal),
        Some(name) => context.profiles().named(name, None, &context.observer)?,
        None => context.profiles().only().map_err(|error| {
            let explanation = context.output.explain(error);
            let message = format!("{}, or say `--gateway sandbox` to rehearse", explanation.message);
            Failure::Explained(Explanation { message, ..explanation })
        })?,
    };
    Ok(Destination::Live(Box::new(profile)))
}
