//! Asking about the rows in doubt of one run, because somebody wants to know.

use std::time::Duration;

use tokio::time::Instant;

use super::profiles::refuse_other_reach;
use super::{Adapters, Connection, Error, HeldRun, ReleasedRun, check_host, key_of};
use crate::delivery::{Doubts, FrozenInputs, Reconciler, Reconciliation};
use crate::ledger::{Run, State};
use crate::manifest::Profile;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long all questions may take; a large doubt at a slow pace needs its time.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A run after its gateway was asked about its rows in doubt.
#[derive(Debug)]
pub struct ReconciledRun {
    /// What was learnt.
    pub learnt: Reconciliation,
    /// Where the run stands.
    pub released: ReleasedRun,
}

/// Asks the gateway about every row of a run whose outcome nobody knows.
///
/// # Errors
/// When another process has the run, the gateway cannot be asked, or the ledger cannot be written.
pub async fn reconcile(adapters: &Adapters, run: Run) -> Result<ReconciledRun, Error> {
    let held = HeldRun::take(adapters, run).await?;
    let learnt = ask(&held).await;
    // The run is given back whatever came of it.
    let released = held.release().await?;
    Ok(ReconciledRun { learnt: learnt?, released })
}

async fn ask(held: &HeldRun) -> Result<Reconciliation, Error> {
    let HeldRun { adapters, run, lease, .. } = held;
    let (ledger, snapshot) = (adapters.ledger.as_ref(), held.snapshot().await?);
    let mut doubts = Doubts::read(ledger, run, &snapshot.states, &[State::InDoubt, State::Unresolved]).await?;
    if doubts.rows.is_empty() {
        return Ok(Reconciliation::default());
    }
    let profile = profile_of(adapters, run).await?;
    let key = key_of(&profile)?;
    let gateway = Connection::Gateway(&profile, key).client(adapters.connect, run.endpoint, TIMEOUT)?;
    let reconciler = Reconciler {
        ledger,
        gateway: gateway.as_ref(),
        run,
        lease: *lease,
        account: run.allowance(profile.rate.per_second()),
        most: profile.largest_envelope(),
        clock: adapters.clock,
    };
    Ok(reconciler.ask(&mut doubts, Instant::now() + LONGEST).await?)
}

/// The profile of the gateway that a run went through, at the host that the ledger knows.
pub(super) async fn profile_of(adapters: &Adapters, run: &Run) -> Result<Profile, Error> {
    if !run.live {
        return Err(Error::RehearsalForgotten { run: run.name() });
    }
    let frozen = FrozenInputs::of_run(adapters.ledger.as_ref(), run).await;
    let campaign = frozen.ok().map(|frozen| frozen.campaign_file);
    let profile = adapters.profiles.of_account(run, campaign.as_deref(), &adapters.observer)?;
    refuse_other_reach(run, &profile)?;
    check_host(adapters.ledger.as_ref(), &profile).await?;
    Ok(profile)
}
