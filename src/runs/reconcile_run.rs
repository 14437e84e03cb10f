//! Asking about the rows in doubt of one run, because somebody wants to know.

use std::time::Duration;

use tokio::time::Instant;

use super::profiles::refuse_other_reach;
use super::{Adapters, Connection, Error, HeldRun, ReleasedRun, check_host, read_api_key};
use crate::delivery::{FrozenInputs, MessagesInDoubt, Reconciler, Reconciliation};
use crate::ledger::{RowState, Run};
use crate::manifest::Profile;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long all questions may take; a large doubt at a slow pace needs its time.
const RECONCILE_TIMEOUT: Duration = Duration::from_secs(3_600);

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
pub async fn reconcile_run(adapters: &Adapters, run: Run) -> Result<ReconciledRun, Error> {
    let held = HeldRun::take(adapters, run).await?;
    let learnt = ask_about_doubts(&held).await;
    // The run is given back whatever came of it.
    let released = held.release().await?;
    Ok(ReconciledRun { learnt: learnt?, released })
}

async fn ask_about_doubts(held: &HeldRun) -> Result<Reconciliation, Error> {
    let HeldRun { adapters, run, lease, .. } = held;
    let (ledger, snapshot) = (adapters.ledger.as_ref(), held.read_snapshot().await?);
    let mut doubts =
        MessagesInDoubt::load(ledger, run, &snapshot.states, &[RowState::InDoubt, RowState::Unresolved]).await?;
    if doubts.rows.is_empty() {
        return Ok(Reconciliation::default());
    }
    let profile = load_profile_of_run(adapters, run).await?;
    let key = read_api_key(&profile)?;
    let gateway = Connection::Gateway(&profile, key).create_client(adapters.connect, run.endpoint, REQUEST_TIMEOUT)?;
    let reconciler = Reconciler {
        ledger,
        gateway: gateway.as_ref(),
        run,
        lease: *lease,
        account: run.allowance(profile.rate.per_second()),
        most: profile.max_envelope_size(),
        clock: adapters.clock,
    };
    Ok(reconciler.ask_rows(&mut doubts, Instant::now() + RECONCILE_TIMEOUT).await?)
}

/// The profile of the gateway that a run went through, at the host that the ledger knows.
pub(super) async fn load_profile_of_run(adapters: &Adapters, run: &Run) -> Result<Profile, Error> {
    if !run.live {
        return Err(Error::RehearsalForgotten { run: run.name() });
    }
    let frozen = FrozenInputs::load_for_run(adapters.ledger.as_ref(), run).await;
    let campaign = frozen.ok().map(|frozen| frozen.campaign_file);
    let profile = adapters.profiles.find_by_account(run, campaign.as_deref(), &adapters.observer)?;
    refuse_other_reach(run, &profile)?;
    check_host(adapters.ledger.as_ref(), &profile).await?;
    Ok(profile)
}
