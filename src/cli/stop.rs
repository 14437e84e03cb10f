//! `campaign stop`: asks a running campaign to stop after what is in flight.

use super::context::Context;
use super::exit;
use super::failure::Failure;
use crate::report::is_owned;
use crate::runs;

pub(super) async fn stop(context: &Context, name: &str) -> Result<u8, Failure> {
    let ledger = context.existing_ledger().await?;
    let run = runs::find(ledger.as_deref(), name).await?;
    if !is_owned(&context.state()?, &run) {
        return Err(Failure::new(exit::NOTHING, format!("{} is not being sent by any process", run.name())));
    }
    if let Some(ledger) = ledger {
        ledger.request_stop(run.key, true).await?;
    }
    let name = run.name();
    if context.output.json {
        context.output.object(&serde_json::json!({ "run": name, "stopping": true, "exit": exit::FINE }));
    } else {
        context.output.result(&format!(
            "{name} stops after what is in flight; nothing more is begun\nnext: {}\n",
            context.output.command(format!("status {name}"))
        ));
    }
    Ok(exit::FINE)
}
