//! What has occurrences sent.

use tokio::sync::watch;

use crate::calendar::Occurrence;
use crate::delivery::Interrupt;
use crate::gateway::BoxFuture;
use crate::ledger::ActiveSchedule;
use crate::runs::{self, Adapters, Error, RunOutcome};

/// Somebody who sends occurrences.
pub trait Starter: Send + Sync {
    /// Sends an occurrence, or goes on with its run.
    fn start_occurrence(
        &self,
        armed: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>>;
}

/// Sends them as runs.
pub struct RunStarter(pub Adapters);

impl Starter for RunStarter {
    fn start_occurrence(
        &self,
        armed: ActiveSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<RunOutcome, Error>> {
        let adapters = self.0.clone();
        Box::pin(async move { runs::fire_occurrence(adapters, &armed, &occurrence, interrupt).await })
    }
}
