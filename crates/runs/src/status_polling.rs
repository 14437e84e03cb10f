//! Polling of the delivery statuses of a run: its messages without a final status, within the account's rate.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::profiles::{REQUEST_TIMEOUT, load_profile_of_run};
use super::{Adapters, Connection, Error, read_api_key};
use campaign_engine::delivery::{ChainLifetimes, PollCounts, Snapshot, StatusPoller, load_pending};
use campaign_engine::report::is_owned;
use campaign_ledger::{Run, RunFilter};
use campaign_manifest::{CampaignDay, ReceiptMode, load_campaign};

/// The share of an account's rate for inquiries while messages are sent.
const RATE_SHARE_WHILE_SENDING: f64 = 0.1;

/// The messages of a run to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// All accepted messages without a final status.
    Open,
    /// Messages with a failed earlier channel, after the lifetimes of all channels. A failure in the answer is final.
    UnreportedFallbacks,
}

/// Polls these messages of a run until the time limit.
///
/// # Errors
/// If the gateway cannot be asked, or the ledger cannot be written.
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
        // Messages without an answer are removed, so that the others get their turn.
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
    let allowance = run.allowance(profile.rate.per_second());
    let (gateway, most, clock) = (gateway.as_ref(), profile.max_envelope_size(), adapters.clock);
    let poller = StatusPoller { ledger, gateway, run, allowance, most, clock };
    let deadline = Instant::now() + longest;
    for group in pending.chunks(poller.group_size()) {
        // A run can begin or end at any time.
        let share = if is_sending(adapters, &run.account).await? { RATE_SHARE_WHILE_SENDING } else { 1.0 };
        if poller.ask_group(group, share, deadline, &mut polled).await?.is_none() {
            polled.left = pending.len() as u64 - polled.asked;
            break;
        }
    }
    Ok(polled)
}

/// Whether receipts of a run are wanted, as its campaign file says now.
#[must_use]
pub fn wants_receipts(run: &Run, now: Timestamp) -> bool {
    let campaign = run.file.as_deref().and_then(|file| load_campaign(file.as_ref(), CampaignDay::Of(now)).value);
    campaign.map(|campaign| campaign.receipts).unwrap_or_default() != ReceiptMode::Off
}

/// Whether a process is sending through an account.
async fn is_sending(adapters: &Adapters, account: &str) -> Result<bool, Error> {
    let open = adapters.ledger.list_stored_runs(RunFilter { open: true, ..RunFilter::all() }).await?;
    for run in open.iter().flatten().filter(|run| run.account == account) {
        if is_owned(adapters.ledger.as_ref(), run).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
