//! What is done about a run after it was sent: asking, deciding, sending again, looking. One file per command.

mod reconcile;
mod resolve;
mod retry;
mod rows;
mod show;

pub(super) use reconcile::reconcile;
pub(super) use resolve::resolve;
pub(super) use retry::retry;
pub(super) use show::show;

use super::context::Context;
use super::exit;
use super::failure::Failure;
use crate::runs::{self, HeldRun};

/// Takes the run that a user names; by a campaign's name alone the latest whose rows nobody knows, if there is one.
async fn take(context: &Context, name: &str) -> Result<HeldRun, Failure> {
    let ledger = context.existing_ledger().await?;
    let run = runs::find_doubtful(ledger.as_deref(), name).await?;
    let ledger = ledger.ok_or_else(|| Failure::new(exit::BUG, "the run's ledger is gone"))?;
    Ok(HeldRun::take(&context.adapters(ledger)?, run).await?)
}
