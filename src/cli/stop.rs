//! `campaign stop`: asks a running campaign to stop after what is in flight.

use super::context::Context;
use super::exit;
use super::failure::Failure;
use crate::runs;

pub(super) async fn stop(context: &Context, name: &str) -> Result<u8, Failure> {
    let (ledger, run) = context.named_run(name).await?;
    runs::stop(ledger.as_ref(), &run).await?;
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
