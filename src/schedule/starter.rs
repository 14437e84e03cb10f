//! What has occurrences sent.

use tokio::sync::watch;

use crate::calendar::Occurrence;
use crate::delivery::Interrupt;
use crate::gateway::BoxFuture;
use crate::ledger::ArmedSchedule;
use crate::runs::{self, Adapters, Error, Outcome};

/// Somebody who sends occurrences.
pub trait Starter: Send + Sync {
    /// Sends an occurrence, or goes on with its run.
    fn start(
        &self,
        armed: ArmedSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<Outcome, Error>>;
}

/// Sends them as runs.
pub struct Runs(pub Adapters);

impl Starter for Runs {
    fn start(
        &self,
        armed: ArmedSchedule,
        occurrence: Occurrence,
        interrupt: watch::Receiver<Interrupt>,
    ) -> BoxFuture<'static, Result<Outcome, Error>> {
        let adapters = self.0.clone();
        Box::pin(async move { runs::fire(adapters, &armed, &occurrence, interrupt).await })
    }
}
