//! HTTP routes for delivery-receipt webhooks (contract 2.4 and 6): `/h/` for messages and `/n/` for the account.
//! Polling rounds ask the gateway about messages without a final status.
//!
//! Trusted proxies supply the address of a sender, and a rate limit applies to senders of forged webhooks.
//!
//! This module makes no decisions about messages. The `runs` crate matches a webhook to its message and stores the
//! receipt before the response. The ledger decides how the receipt changes the message.

use std::collections::HashMap;
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Extension, Router};
use campaign_core::domain::MessageId;
use campaign_engine::delivery::PollCounts;
use campaign_engine::report::is_followed;
use campaign_gateway::{WEBHOOK_TEST_HEADER, read_receipts};
use campaign_ledger::{ReceiptOutcome, RowState, Run, RunFilter, RunId};
use campaign_net::metrics::{Metrics, ReceiptResult};
use campaign_runs::{Adapters, Error, Polling, WebhookPath, WebhookReceiver, WebhookRefusal, poll_run, wants_receipts};
use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use ipnet::IpNet;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// The maximum size of a body, in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024;
/// The maximum length of the challenge in a check of the webhook address, in bytes.
const MAX_CHALLENGE_BYTES: usize = 64;
/// The time limit for receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends the identifiers of messages whose status the gateway reported to the account's address. The reported status is
/// not trusted, so the receiver of the hint polls the gateway.
pub type Hints = mpsc::Sender<Vec<u64>>;

struct WebhookState {
    receiver: Arc<WebhookReceiver>,
    proxies: TrustedProxies,
    forgeries: ForgeryLimiter,
    metrics: Arc<Metrics>,
    hints: Hints,
}

/// Routes the webhooks of messages (`/h/`) and of the account (`/n/`).
pub fn router(receiver: Arc<WebhookReceiver>, proxies: TrustedProxies, metrics: Arc<Metrics>, hints: Hints) -> Router {
    let state = WebhookState { receiver, proxies, forgeries: ForgeryLimiter::default(), metrics, hints };
    Router::new()
        .route("/h/{run}/{id}/{mac}", post(post_message_receipt))
        .route("/n/{mac}", post(post_account_notice))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .with_state(Arc::new(state))
}

/// Handles a webhook that was sent to a message's own address.
async fn post_message_receipt(
    State(state): State<Arc<WebhookState>>,
    Extension(peer): Extension<SocketAddr>,
    Path((run, id, mac)): Path<(String, String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(id) = state.receiver.verify_path(WebhookPath { run: &run, id: &id, mac: &mac }) else {
        return state.reject_forged_webhook(peer, &headers);
    };
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let receipts = match state.receiver.parse_receipts(&run, id, &body).await {
        Ok(Ok(receipts)) => receipts,
        Ok(Err(refusal)) => return state.reject_receipt(refusal),
        Err(error) => {
            tracing::error!("cannot store a receipt: {error}");
            return state.respond_not_stored();
        }
    };
    match state.receiver.store_receipts(receipts).await {
        Some(outcomes) => {
            for outcome in outcomes {
                state.metrics.count_receipt(match outcome {
                    ReceiptOutcome::Stored => ReceiptResult::Stored,
                    ReceiptOutcome::Known => ReceiptResult::Repeated,
                });
            }
            (StatusCode::OK, "ok\n").into_response()
        }
        None => state.respond_not_stored(),
    }
}

/// Handles a webhook to the account's own address. The status in the webhook is not trusted; a status request verifies
/// it. Opt-outs in replies are recorded.
async fn post_account_notice(
    State(state): State<Arc<WebhookState>>,
    Extension(peer): Extension<SocketAddr>,
    Path(mac): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !state.receiver.is_account_mac(&mac) {
        return state.reject_forged_webhook(peer, &headers);
    }
    if let Some(challenge) = headers.get(WEBHOOK_TEST_HEADER) {
        let challenge = challenge.to_str().ok().filter(|challenge| challenge.len() <= MAX_CHALLENGE_BYTES);
        let proof = challenge.and_then(|challenge| state.receiver.answer_challenge(&mac, challenge));
        return match proof {
            Some(proof) => (StatusCode::OK, proof).into_response(),
            None => StatusCode::BAD_REQUEST.into_response(),
        };
    }
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    let Ok(receipts) = read_receipts(&body) else { return state.reject_receipt(WebhookRefusal::Unreadable) };
    if let Err(error) = state.receiver.record_reported_opt_outs(&receipts).await {
        tracing::error!("cannot record opt-outs: {error}");
        return state.respond_not_stored();
    }
    state.metrics.count_receipt(ReceiptResult::Notice);
    // Hints beyond the capacity are dropped; those messages are polled later anyway.
    let _ = state.hints.try_send(receipts.into_iter().filter_map(|receipt| receipt.id.flatten()).collect());
    (StatusCode::OK, "ok\n").into_response()
}

/// Reads the whole body, within the size limit and the timeout.
async fn read_body(body: Body) -> Result<Vec<u8>, Response> {
    match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY_BYTES)).await {
        Ok(Ok(body)) => Ok(body.into()),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE.into_response()),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

impl WebhookState {
    /// Answers a webhook to a forged address with 404, or with 429 if the sender sends too many forged webhooks.
    fn reject_forged_webhook(&self, peer: SocketAddr, headers: &HeaderMap) -> Response {
        let is_within_limit = self.forgeries.charge_sender(self.proxies.client_address(peer, headers));
        let (result, status) = match is_within_limit {
            true => (ReceiptResult::Forged, StatusCode::NOT_FOUND),
            false => (ReceiptResult::Slowed, StatusCode::TOO_MANY_REQUESTS),
        };
        self.metrics.count_receipt(result);
        // The body was not read, so the connection cannot be reused.
        (status, [(CONNECTION, HeaderValue::from_static("close"))]).into_response()
    }

    /// Counts a refused webhook, and chooses the status of the response.
    fn reject_receipt(&self, refusal: WebhookRefusal) -> Response {
        let (result, status) = match refusal {
            WebhookRefusal::Foreign => (ReceiptResult::Unknown, StatusCode::NOT_FOUND),
            WebhookRefusal::Unreadable => (ReceiptResult::Unreadable, StatusCode::BAD_REQUEST),
            // Sending the webhook again would not help.
            WebhookRefusal::Contradicting => (ReceiptResult::Contradicting, StatusCode::OK),
        };
        self.metrics.count_receipt(result);
        status.into_response()
    }

    /// Responds that a receipt was not stored, so that the gateway sends the receipt again.
    fn respond_not_stored(&self) -> Response {
        self.metrics.count_receipt(ReceiptResult::NotStored);
        StatusCode::SERVICE_UNAVAILABLE.into_response()
    }
}

/// The proxies whose `X-Forwarded-For` headers are trusted.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Creates the list of trusted proxies: all addresses in these networks.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// The client address of a request on a connection from `peer`.
    ///
    /// Each proxy appends the address of its client. The last address that is not a trusted proxy counts, because
    /// anyone can write the addresses before it.
    fn client_address(&self, peer: SocketAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.ip().to_canonical();
        if !self.is_trusted(peer) {
            return peer;
        }
        let hops: Vec<&str> = headers
            .get_all("x-forwarded-for")
            .into_iter()
            .flat_map(|value| value.to_str().unwrap_or("").split(','))
            .map(str::trim)
            .collect();
        let mut sender = peer;
        for hop in hops.into_iter().rev() {
            let Some(address) = parse_address(hop) else { break };
            sender = address;
            if !self.is_trusted(address) {
                break;
            }
        }
        sender
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Parses an address with or without a port.
fn parse_address(hop: &str) -> Option<IpAddr> {
    let with_port = hop.parse::<SocketAddr>().ok().map(|address| address.ip());
    let bare = hop.trim_start_matches('[').trim_end_matches(']');
    with_port.or_else(|| bare.parse().ok()).map(|ip: IpAddr| ip.to_canonical())
}

/// The number of forged webhooks per second, and in a burst, after which a sender gets the status 429 instead of 404.
const FORGERIES_PER_SECOND: NonZeroU32 = NonZeroU32::new(10).expect("more than zero");
/// The maximum number of senders that are counted separately; further senders share one counter.
const MAX_SENDERS: usize = 65_536;
/// The number of charges after which idle senders are forgotten.
const CHARGES_PER_CLEANUP: u32 = 8_192;

type Limiter = RateLimiter<IpAddr, DefaultKeyedStateStore<IpAddr>, DefaultClock>;

/// Rate limit for senders of forged webhooks.
struct ForgeryLimiter {
    limiter: Limiter,
    /// The number of charges, for regular cleanups.
    charges: AtomicU32,
}

impl Default for ForgeryLimiter {
    fn default() -> Self {
        Self { limiter: RateLimiter::keyed(Quota::per_second(FORGERIES_PER_SECOND)), charges: AtomicU32::new(0) }
    }
}

impl ForgeryLimiter {
    /// Charges a sender for a forged webhook. Returns whether the sender is within the limit.
    fn charge_sender(&self, sender: IpAddr) -> bool {
        let charges = self.charges.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if charges.is_multiple_of(CHARGES_PER_CLEANUP) {
            self.limiter.retain_recent();
        }
        let is_full = self.limiter.len() >= MAX_SENDERS;
        let key = if is_full { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { sender_network(sender) };
        self.limiter.check_key(&key).is_ok()
    }
}

/// Returns the part of an address that the sender cannot choose: the IPv4 address, or the /64 network of an IPv6
/// address.
fn sender_network(sender: IpAddr) -> IpAddr {
    match sender {
        IpAddr::V4(_) => sender,
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & !u128::from(u64::MAX))),
    }
}

/// The interval between checks for hints and for runs that are due.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest wait between two polls of a run.
const MIN_WAIT: Duration = Duration::from_secs(60);
/// The longest wait between two polls of a run.
const MAX_WAIT: Duration = Duration::from_secs(86_400);
/// The maximum duration of one poll of a run.
const MAX_POLL_DURATION: Duration = Duration::from_secs(600);
/// The age at which a run is no longer polled, even if the lifetime of a channel has not ended.
const MAX_POLLING_AGE: Duration = Duration::from_secs(365 * 86_400);
/// The maximum number of runs that are polled, latest first.
const MAX_RUNS: u32 = 4_096;

/// Polls the statuses of messages without a final state until the shutdown. Each run is polled after a minute, and then
/// less and less often. A hint from the gateway about a message of the run brings the next poll forward.
pub async fn poll_statuses_until(
    adapters: Adapters,
    mut hints: mpsc::Receiver<Vec<u64>>,
    shutdown: impl Future<Output = ()>,
) {
    let work = async {
        let mut rounds = PollingRounds::default();
        loop {
            sleep(CHECK_INTERVAL).await;
            while let Ok(ids) = hints.try_recv() {
                log_failure(apply_hints(&adapters, &ids, &mut rounds).await);
            }
            log_failure(poll_due_runs(&adapters, &mut rounds).await);
        }
    };
    tokio::select! { () = shutdown => {}, () = work => {} }
}

/// The times at which runs are polled.
#[derive(Default)]
struct PollingRounds {
    /// The time of each run's next poll, and the current wait between polls of the run.
    next: HashMap<RunId, (Instant, Duration)>,
    /// The runs without an unreported fallback, with their number of receipts at the last poll.
    reported: HashMap<RunId, u64>,
}

impl PollingRounds {
    /// Schedules the first poll of a new run. Returns whether it is time to poll these messages of the run.
    fn check_due(&mut self, run: &Run, polling: Polling) -> bool {
        let now = Instant::now();
        // A run is first polled for open messages a minute after it is found. Unreported fallbacks are polled at once,
        // and then daily.
        let first = match polling {
            Polling::Open => (now + MIN_WAIT, MIN_WAIT),
            Polling::UnreportedFallbacks if self.reported.get(&run.key) == Some(&run.receipts) => return false,
            Polling::UnreportedFallbacks => (now, MAX_WAIT),
        };
        self.next.entry(run.key).or_insert(first).0 <= now
    }

    /// Schedules the next poll of a run that was just polled. `counts` is `None` if the poll failed.
    fn record_poll(&mut self, run: &Run, polling: Polling, counts: Option<&PollCounts>) {
        let wait = self.next.get(&run.key).map_or(MIN_WAIT, |(_, wait)| *wait);
        let is_complete = |counts: &PollCounts| counts.asked + counts.left + counts.waiting == 0;
        let wait = match counts {
            Some(counts) if polling == Polling::UnreportedFallbacks && is_complete(counts) => {
                self.reported.insert(run.key, run.receipts);
                MAX_WAIT
            }
            // The remaining messages are polled soon.
            Some(counts) if counts.left > 0 => MIN_WAIT,
            _ => (wait * 2).min(MAX_WAIT),
        };
        self.next.insert(run.key, (Instant::now() + wait, wait));
    }
}

/// Schedules an early poll for the runs of the hinted messages.
async fn apply_hints(adapters: &Adapters, ids: &[u64], rounds: &mut PollingRounds) -> Result<(), Error> {
    for id in ids.iter().filter_map(|id| MessageId::new(*id)) {
        if let Some(origin) = adapters.ledger.find_message(id).await?
            && let Some((next, wait)) = rounds.next.get_mut(&origin.run)
        {
            (*next, *wait) = ((*next).min(Instant::now() + MIN_WAIT), MIN_WAIT);
        }
    }
    Ok(())
}

/// Polls the runs that are due, one after the other.
async fn poll_due_runs(adapters: &Adapters, rounds: &mut PollingRounds) -> Result<(), Error> {
    let stored =
        adapters.ledger.list_stored_runs(RunFilter { live: true, latest: Some(MAX_RUNS), ..RunFilter::all() }).await?;
    let latest: Vec<Run> = stored.into_iter().flatten().collect();
    let now = (adapters.clock)();
    rounds.next.retain(|run, _| latest.iter().any(|known| known.key == *run));
    rounds.reported.retain(|run, _| latest.iter().any(|known| known.key == *run));
    let mut runs: Vec<(&Run, Polling)> =
        latest.iter().filter_map(|run| Some((run, choose_polling(run, now)?))).collect();
    // Runs with open messages come before runs that are polled only for unreported fallbacks.
    runs.sort_by_key(|(_, polling)| *polling == Polling::UnreportedFallbacks);
    for (run, polling) in runs {
        if !rounds.check_due(run, polling) {
            continue;
        }
        // A gateway that does not respond must not block the runs of other gateways.
        let polled = poll_run(adapters, run, polling, MAX_POLL_DURATION).await;
        rounds.record_poll(run, polling, polled.as_ref().ok());
        match polled {
            Ok(polled) => tracing::info!(run = run.name(), asked = polled.asked, updated = polled.updated, "polled"),
            Err(error) => log_failure(Err(error)),
        }
    }
    Ok(())
}

/// Chooses which messages of a run to poll. Returns `None` if no messages are open, no receipts are wanted, or the run
/// is too old or purged. Shared runs of lookups and code calls are never polled.
fn choose_polling(run: &Run, now: Timestamp) -> Option<Polling> {
    let has_open_messages = |(counts, _parts): &(campaign_ledger::StateCounts, u64)| {
        counts.get(RowState::Accepted) + counts.get(RowState::Queued) > 0
    };
    let polling = match is_followed(run, now) {
        true => Polling::Open,
        // Without receipts, no channel is known to have failed.
        false if run.receipts > 0 && run_age(run, now) < MAX_POLLING_AGE => Polling::UnreportedFallbacks,
        false => return None,
    };
    let is_open = !run.is_shared_single_run() && run.current_counts().is_none_or(has_open_messages);
    (is_open && run.purged_at.is_none() && wants_receipts(run, now)).then_some(polling)
}

/// Returns the time since a run began.
fn run_age(run: &Run, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(run.began_at)).unwrap_or_default()
}

/// Logs the error if an update failed. The update is tried again later.
fn log_failure(result: Result<(), Error>) {
    if let Err(error) = result {
        tracing::warn!("the delivery status of messages cannot be updated: {error}");
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use jiff::SignedDuration;
    use tokio::time::advance;

    use super::*;
    use campaign_core::domain::{OperationKind, Row};
    use campaign_ledger::Ledger as _;
    use campaign_ledger::memory::{LedgerContents, MemoryLedger};
    use campaign_testing::new_run;

    #[test]
    fn only_a_trusted_proxy_can_set_the_client_address() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()]);
        for (peer, forwarded, expected) in [
            ("203.0.113.7:1", "8.8.8.8", "203.0.113.7"),
            ("10.0.0.1:1", "", "10.0.0.1"),
            ("10.0.0.1:1", "8.8.8.8", "8.8.8.8"),
            ("10.0.0.1:1", "1.1.1.1, 8.8.8.8", "8.8.8.8"),
            ("10.0.0.1:1", "8.8.8.8:4711, 10.0.0.2", "8.8.8.8"),
            ("10.0.0.1:1", "8.8.8.8, unknown", "10.0.0.1"),
            ("10.0.0.1:1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("[::1]:1", "2001:db8::7", "2001:db8::7"),
            ("[::ffff:10.0.0.1]:1", "[2001:db8::7]:80", "2001:db8::7"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", HeaderValue::from_str(forwarded).unwrap());
            let sender = proxies.client_address(peer.parse().unwrap(), &headers);
            assert_eq!(sender, expected.parse::<IpAddr>().unwrap(), "{peer} {forwarded}");
        }
    }

    #[test]
    fn forgery_limit_is_per_ipv4_address_or_ipv6_network() {
        let limiter = ForgeryLimiter::default();
        let sender = |text: &str| text.parse::<IpAddr>().unwrap();
        let allowed = (0..1_000).filter(|_| limiter.charge_sender(sender("203.0.113.7"))).count();
        assert!((10..100).contains(&allowed), "{allowed}");
        assert!(limiter.charge_sender(sender("203.0.113.8")));
        let network_sender = |last: u16| sender(&format!("2001:db8::{last:x}"));
        let allowed = (0..1_000).filter(|last| limiter.charge_sender(network_sender(*last))).count();
        assert!((10..100).contains(&allowed), "{allowed}");
    }

    const FALLBACKS: Polling = Polling::UnreportedFallbacks;

    async fn test_run() -> Run {
        let ledger = MemoryLedger::new(LedgerContents::default(), || Timestamp::UNIX_EPOCH);
        let run =
            ledger.create_run(&new_run(OperationKind::ViberSms, 2, Row::new(3)), None).await.unwrap().expect("a run");
        Run { live: true, receipts: 1, ..run }
    }

    #[tokio::test(start_paused = true)]
    async fn run_is_polled_until_all_fallbacks_are_reported() {
        let (run, mut rounds) = (test_run().await, PollingRounds::default());
        assert!(rounds.check_due(&run, FALLBACKS), "at once");
        rounds.record_poll(&run, FALLBACKS, Some(&PollCounts { asked: 9, left: 5, ..PollCounts::default() }));
        assert!(!rounds.check_due(&run, FALLBACKS));
        advance(MIN_WAIT).await;
        assert!(rounds.check_due(&run, FALLBACKS), "the remaining messages are polled soon");
        rounds.record_poll(&run, FALLBACKS, Some(&PollCounts { waiting: 1, ..PollCounts::default() }));
        advance(MAX_WAIT).await;
        assert!(rounds.check_due(&run, FALLBACKS), "a channel still had time");
        rounds.record_poll(&run, FALLBACKS, Some(&PollCounts::default()));
        advance(MAX_WAIT * 2).await;
        assert!(!rounds.check_due(&run, FALLBACKS), "nothing is unreported");
        assert!(rounds.check_due(&Run { receipts: 2, ..run }, FALLBACKS), "until another receipt arrives");
    }

    #[tokio::test(start_paused = true)]
    async fn failed_poll_doubles_the_wait_until_the_next_poll() {
        let (run, mut rounds) = (test_run().await, PollingRounds::default());
        assert!(!rounds.check_due(&run, Polling::Open), "after a minute");
        advance(MIN_WAIT).await;
        assert!(rounds.check_due(&run, Polling::Open));
        rounds.record_poll(&run, Polling::Open, None);
        advance(MIN_WAIT).await;
        assert!(!rounds.check_due(&run, Polling::Open));
        advance(MIN_WAIT).await;
        assert!(rounds.check_due(&run, Polling::Open));
    }

    #[tokio::test]
    async fn older_run_is_polled_for_unreported_fallbacks_only() {
        let run = test_run().await;
        let after = |days: i64| run.began_at + SignedDuration::from_hours(24 * days);
        assert_eq!(choose_polling(&run, after(3)), Some(Polling::Open));
        assert_eq!(choose_polling(&run, after(5)), Some(FALLBACKS));
        assert_eq!(
            choose_polling(&Run { receipts: 0, ..run.clone() }, after(5)),
            None,
            "no channel is known to have failed"
        );
        assert_eq!(choose_polling(&run, after(400)), None);
    }
}
