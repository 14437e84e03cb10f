//! Asking about the messages of a run that were taken and have no end yet.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::reconcile_run::load_profile_of_run;
use super::{Adapters, Connection, Error, read_api_key};
use crate::delivery::{ChainLifetimes, PollCounts, Snapshot, StatusPoller, load_pending};
use crate::ledger::{Run, RunFilter};
use crate::manifest::{CampaignDay, ReceiptMode, load_campaign};
use crate::report::is_owned;

/// How long one request may take.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The share of an account's rate that questions take while messages are sent.
const RATE_SHARE_WHILE_SENDING: f64 = 0.1;

/// Which messages of a run the gateway is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// All accepted messages without a final status.
    Open,
    /// Messages with a failed earlier channel, after the lifetimes of all channels. A failure in the answer is final.
    UnreportedFallbacks,
}

/// Asks the gateway about these messages of a run, for so long at most.
///
/// # Errors
/// When the gateway cannot be asked, or the ledger cannot be written.
pub async fn poll_run(
    adapters: &Adapters,
    run: &Run,
    polling: Polling,
    longest: Duration,
) -> Result<PollCounts, Error> {
    let ledger = adapters.ledger.as_ref();
    let snapshot = Snapshot::load(ledger, run, is_owned(ledger, run).await?).await?;
    let times = ChainLifetimes::load_for_run(ledger, run).await;
    let (mut pending, now) = (load_pending(ledger, run, &snapshot, &times).await?, (adapters.clock)());
    let mut polled = PollCounts::default();
    if polling == Polling::UnreportedFallbacks {
        let unreported = snapshot.states.unreported_fallbacks();
        pending.retain(|message| unreported.contains(message.row.get()));
        let unreported = pending.len();
        pending.retain(|message| message.has_expired(now));
        polled.waiting = (unreported - pending.len()) as u64;
        // What has no answer stays, and must not keep the others from their turn.
        if !pending.is_empty() {
            let first = rand::random_range(..pending.len());
            pending.rotate_left(first);
        }
    }
    if pending.is_empty() {
        return Ok(polled);
    }
    let profile = load_profile_of_run(adapters, run).await?;
    let key = read_api_key(&profile)?;
    let gateway = Connection::Gateway(&profile, key).create_client(adapters.connect, run.endpoint, REQUEST_TIMEOUT)?;
    let account = run.allowance(profile.rate.per_second());
    let (gateway, most, clock) = (gateway.as_ref(), profile.max_envelope_size(), adapters.clock);
    let poller = StatusPoller { ledger, gateway, run, account, most, clock };
    let deadline = Instant::now() + longest;
    for group in pending.chunks(poller.group_size()) {
        // A run may begin or end at any time.
        let share = if is_sending(adapters, &run.account).await? { RATE_SHARE_WHILE_SENDING } else { 1.0 };
        if poller.ask_group(group, share, deadline, &mut polled).await?.is_none() {
            polled.left = pending.len() as u64 - polled.asked;
            break;
        }
    }
    Ok(polled)
}

/// Whether somebody wants to know what becomes of a run's messages, as its campaign file says now.
#[must_use]
pub fn wants_receipts(run: &Run, now: Timestamp) -> bool {
    let campaign = run.file.as_deref().and_then(|file| load_campaign(file.as_ref(), CampaignDay::Of(now)).value);
    campaign.map(|campaign| campaign.receipts).unwrap_or_default() != ReceiptMode::Off
}

/// Whether somebody sends through an account now.
async fn is_sending(adapters: &Adapters, account: &str) -> Result<bool, Error> {
    let open = adapters.ledger.list_stored_runs(RunFilter { open: true, ..RunFilter::all() }).await?;
    for run in open.iter().flatten().filter(|run| run.account == account) {
        if is_owned(adapters.ledger.as_ref(), run).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
