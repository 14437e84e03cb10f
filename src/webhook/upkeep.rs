//! What a server does by itself about messages that were sent: it asks about those that have no end yet, and writes results
//! anew that receipts made old.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use crate::domain::MessageId;
use crate::ledger::{Run, RunFilter, RunId, State};
use crate::report::is_followed;
use crate::runs::{Adapters, Error, Polling, freshen, poll, stale_runs, wants_receipts};

/// How often it is looked what there is to do.
const EACH: Duration = Duration::from_secs(60);
/// Writing results takes at most one part of so many of the time.
const PARTS: u32 = 20;
/// The shortest and the longest wait between two rounds of questions about a run.
const WAITS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(86_400));
/// How long one round of questions about a run takes at most.
const ROUND: Duration = Duration::from_secs(600);
/// How long after the start of a run the last questions are asked: the time of the longest chain, and time to reach the gateway.
const LAST_QUESTIONS: Duration = Duration::from_secs(60 * 86_400);
/// Of how many runs, the latest, messages are asked about.
const RUNS: u32 = 256;

/// Writes results that receipts made old, until the shutdown.
pub async fn keep_fresh(adapters: Adapters, shutdown: impl Future<Output = ()>) {
    let work = async {
        loop {
            let began = Instant::now();
            told(write_all(&adapters).await);
            sleep(EACH.max(began.elapsed() * PARTS)).await;
        }
    };
    tokio::select! { () = shutdown => {}, () = work => {} }
}

async fn write_all(adapters: &Adapters) -> Result<(), Error> {
    for run in stale_runs(adapters).await? {
        if let Some(why) = freshen(adapters, &run).await? {
            tracing::debug!(run = run.name(), "the results were not written anew: {why:?}");
        }
    }
    Ok(())
}

/// Asks about messages that have no end yet, until the shutdown: of each run after a minute, and then ever less often, unless
/// the gateway hints at messages of it.
pub async fn keep_asking(adapters: Adapters, mut hints: mpsc::Receiver<Vec<u64>>, shutdown: impl Future<Output = ()>) {
    let work = async {
        let mut rounds = HashMap::new();
        loop {
            sleep(EACH).await;
            while let Ok(ids) = hints.try_recv() {
                told(heed(&adapters, &ids, &mut rounds).await);
            }
            told(ask_all(&adapters, &mut rounds).await);
        }
    };
    tokio::select! { () = shutdown => {}, () = work => {} }
}

/// When each run is asked about next, and how long it waits after that.
type Rounds = HashMap<RunId, (Instant, Duration)>;

/// Has the runs of messages that the gateway hinted at asked about soon again.
async fn heed(adapters: &Adapters, ids: &[u64], rounds: &mut Rounds) -> Result<(), Error> {
    for id in ids.iter().filter_map(|id| MessageId::new(*id)) {
        if let Some(origin) = adapters.ledger.find(id).await?
            && let Some((next, wait)) = rounds.get_mut(&origin.run)
        {
            (*next, *wait) = ((*next).min(Instant::now() + WAITS.0), WAITS.0);
        }
    }
    Ok(())
}

async fn ask_all(adapters: &Adapters, rounds: &mut Rounds) -> Result<(), Error> {
    let latest = adapters.ledger.runs(RunFilter { live: true, latest: Some(RUNS), ..RunFilter::all() }).await?;
    let now = (adapters.clock)();
    rounds.retain(|run, _| latest.iter().any(|known| known.key == *run));
    for (run, polling) in latest.iter().filter_map(|run| Some((run, asked_about(run, now)?))) {
        // The first question about a run comes a minute after it was seen. After the lifetimes of all channels, it comes once a day.
        let first = match polling {
            Polling::Open => (Instant::now() + WAITS.0, WAITS.0),
            Polling::UnreportedFallbacks => (Instant::now(), WAITS.1),
        };
        let (next, wait) = *rounds.entry(run.key).or_insert(first);
        if next > Instant::now() {
            continue;
        }
        // One gateway that cannot be asked keeps nobody from the others.
        match poll(adapters, run, polling, ROUND).await {
            Ok(polled) => tracing::info!(run = run.name(), asked = polled.asked, told = polled.told, "asked"),
            Err(error) => told(Err(error)),
        }
        let wait = (wait * 2).min(WAITS.1);
        rounds.insert(run.key, (Instant::now() + wait, wait));
    }
    Ok(())
}

/// Which messages of a run to ask the gateway about; `None` if they are all final or their receipts are not wanted.
fn asked_about(run: &Run, now: Timestamp) -> Option<Polling> {
    let open =
        |(counts, _): &(crate::ledger::StateCounts, u64)| counts.get(State::Accepted) + counts.get(State::Queued) > 0;
    let polling = match is_followed(run, now) {
        true => Polling::Open,
        // Without a receipt no channel is known to have failed.
        false if run.receipts > 0 && age(run, now) < LAST_QUESTIONS => Polling::UnreportedFallbacks,
        false => return None,
    };
    let is_open = !run.is_of_questions() && run.standing_counts().is_none_or(open);
    (is_open && run.purged_at.is_none() && wants_receipts(run, now)).then_some(polling)
}

/// How long ago a run began.
fn age(run: &Run, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(run.began_at)).unwrap_or_default()
}

/// Nobody waits for this; it is tried again.
fn told(ended: Result<(), Error>) {
    if let Err(error) = ended {
        tracing::warn!("what became of messages could not be followed: {error:?}");
    }
}
