//! Asking a run to stop.

use super::Error;
use crate::ledger::{Ledger, Run};
use crate::report::is_owned;

/// Asks the process that sends a run to stop after what is in flight.
///
/// # Errors
/// When no process sends it, or the ledger cannot be written.
pub async fn stop(ledger: &dyn Ledger, run: &Run) -> Result<(), Error> {
    if !is_owned(ledger, run).await? {
        return Err(Error::NotSending { run: run.name() });
    }
    Ok(ledger.request_stop(run.key, true).await?)
}
