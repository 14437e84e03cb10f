//! Receipts from webhooks: verification of their addresses, storage in the ledger, and the receipts of rehearsals.
//!
//! A webhook only advances the state of a row; it never sends anything.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::find::reload_run;
use super::launch::Session;
use super::profiles::OptOutErrors;
use super::{Adapters, Error};
use campaign_core::domain::{MessageId, OptOutWords, Receipt, RecipientReply, ReplyReading, Row};
use campaign_engine::delivery::{
    ChainLifetimes, PollCounts, RunOptOuts, SendEnding, Snapshot, StatusPoller, Stop, load_pending,
};
use campaign_gateway::{Gateway, IdentifiedReceipt, WebhookSecrets, WebhookUrls, read_receipts};
use campaign_ledger::{
    AdditionMode, Allowance, Ledger, LedgerError, NewReceipt, OptIn, OptOut, OptOutReach, OptOutScope, ReceiptOutcome,
    ReceiptReader, Run, RunFilter, StopKind, opt_in_source, reply_source,
};
use campaign_manifest::ReceiptMode;
use campaign_sandbox::{Counts, LocalReceiver, Sandbox};

/// The maximum number of cached runs. A full cache is cleared.
const MAX_CACHED_RUNS: usize = 1_024;

/// A receiver of webhooks: the secrets of their addresses, and the ledger.
pub struct WebhookReceiver {
    ledger: Arc<dyn Ledger>,
    secrets: WebhookSecrets,
    /// The words by which recipients opt out or in.
    words: OptOutWords,
    /// The errors of rejected messages that mean an opt-out.
    errors: OptOutErrors,
    clock: fn() -> Timestamp,
    /// Cached runs of recent webhooks, by name.
    runs: RwLock<HashMap<String, Arc<Run>>>,
    /// Whether the last receipts were rejected because another process was writing.
    is_busy: AtomicBool,
    failures: mpsc::Sender<LedgerError>,
}

/// The path of a webhook's address.
#[derive(Clone, Copy, Debug)]
pub struct WebhookPath<'a> {
    /// The name of the run, such as `sale@2`.
    pub run: &'a str,
    /// Our identifier of the message.
    pub id: &'a str,
    /// The signature of the address.
    pub mac: &'a str,
}

impl<'a> WebhookPath<'a> {
    /// Parses `/h/{run}/{id}/{mac}`.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix("/h/")?.splitn(3, '/');
        Some(Self { run: parts.next()?, id: parts.next()?, mac: parts.next()? })
    }
}

/// The reason a webhook is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookRefusal {
    /// The address is ours, but the ledger has no such message.
    Foreign,
    /// The body is not a delivery status.
    Unreadable,
    /// The webhook names a different message than its address.
    Contradicting,
}

/// A recipient's wish, according to a receipt.
enum RecipientWish {
    /// The recipient wants to get no more messages.
    OptOut(OptOut),
    /// The recipient wants to get messages again.
    OptIn(OptIn),
}

/// The evidence of a recipient's wish in a receipt.
enum WishEvidence<'r> {
    /// A reply with a word that opts out.
    OptOut(Cow<'r, str>),
    /// A reply with a word that opts in.
    OptIn(Cow<'r, str>),
    /// A rejection with an error that means an opt-out.
    Rejection(&'r str),
}

impl WebhookReceiver {
    /// Creates a receiver of webhooks whose URLs are signed with one of these secrets. If the ledger fails, the
    /// reason is sent to `failures`, because no further receipts can be stored.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        secrets: WebhookSecrets,
        clock: fn() -> Timestamp,
        failures: mpsc::Sender<LedgerError>,
    ) -> Self {
        let (words, errors) = (OptOutWords::default(), OptOutErrors::default());
        let (runs, is_busy) = (RwLock::default(), AtomicBool::default());
        Self { ledger, secrets, words, errors, clock, runs, is_busy, failures }
    }

    /// Sets the words by which recipients opt out or in.
    #[must_use]
    pub fn with_opt_out_words(self, words: OptOutWords) -> Self {
        Self { words, ..self }
    }

    /// Sets the errors of rejected messages that mean an opt-out.
    #[must_use]
    pub fn with_opt_out_errors(self, errors: OptOutErrors) -> Self {
        Self { errors, ..self }
    }

    /// Returns the message identifier in a webhook address if the signature of the address is valid. The ledger is not
    /// read.
    pub fn verify_path(&self, path: WebhookPath<'_>) -> Option<MessageId> {
        let number: u64 = path.id.parse().ok()?;
        let id = MessageId::new(number).filter(|id| id.to_string() == path.id)?;
        self.secrets.verify_message(path.run, id, path.mac).then_some(id)
    }

    /// Whether `mac` is the signature of the account's own webhook address.
    pub fn is_account_mac(&self, mac: &str) -> bool {
        self.secrets.verify_account_mac(mac)
    }

    /// The answer to a challenge, which proves that the account's own address leads to this receiver. `None` for other
    /// addresses.
    pub fn answer_challenge(&self, mac: &str, challenge: &str) -> Option<String> {
        self.secrets.answer_challenge(mac, challenge)
    }

    /// Parses the receipts in a webhook to the address of a message.
    ///
    /// # Errors
    /// If the webhook is rejected, or the ledger cannot be read.
    pub async fn parse_receipts(
        &self,
        run: &str,
        id: MessageId,
        body: &[u8],
    ) -> Result<Result<Vec<NewReceipt>, WebhookRefusal>, LedgerError> {
        let Ok(reported) = read_receipts(body) else { return Ok(Err(WebhookRefusal::Unreadable)) };
        let Some(run) = self.find_run(run, id).await? else { return Ok(Err(WebhookRefusal::Foreign)) };
        let Some((row, order)) = run.find_message(id) else { return Ok(Err(WebhookRefusal::Foreign)) };
        let matching = reported.into_iter().filter(|reported| reported.id.is_none_or(|named| named == Some(id.get())));
        let mut receipts = Vec::new();
        for reported in matching {
            let (opt_out, opt_in) = match self.find_wish(&run, row, &reported.receipt).await? {
                Some(RecipientWish::OptOut(opt_out)) => (Some(opt_out), None),
                Some(RecipientWish::OptIn(opt_in)) => (None, Some(opt_in)),
                None => (None, None),
            };
            receipts.push(NewReceipt { run: run.key, row, order, receipt: reported.receipt, opt_out, opt_in });
        }
        Ok(if receipts.is_empty() { Err(WebhookRefusal::Contradicting) } else { Ok(receipts) })
    }

    /// Adds the opt-outs in a webhook to the account's own address to the suppression list.
    ///
    /// The status in such a webhook is not trusted, but the gateway reports these replies nowhere else. A false opt-out
    /// would do less harm than a lost one. Opt-ins are ignored.
    ///
    /// # Errors
    /// If the ledger cannot be read or written.
    pub async fn record_reported_opt_outs(&self, reported: &[IdentifiedReceipt]) -> Result<(), LedgerError> {
        let mut opt_outs = Vec::new();
        for IdentifiedReceipt { id, receipt } in reported.iter().filter(|reported| !reported.receipt.replies.is_empty())
        {
            let Some(id) = id.flatten().and_then(MessageId::new) else { continue };
            let runs = self.ledger.list_runs(RunFilter::with_id(id)).await?;
            for (run, (row, _)) in runs.iter().filter_map(|run| Some((run, run.find_message(id)?))) {
                if let Some(RecipientWish::OptOut(opt_out)) = self.find_wish(run, row, receipt).await? {
                    opt_outs.push(opt_out);
                }
            }
        }
        if !opt_outs.is_empty() {
            self.ledger.add_opt_outs(opt_outs.into(), AdditionMode::Add).await?;
        }
        Ok(())
    }

    /// Stores the receipts of a webhook durably. Returns `None` if they could not be stored; the gateway delivers the
    /// webhook again later.
    pub async fn store_receipts(&self, receipts: Vec<NewReceipt>) -> Option<Vec<ReceiptOutcome>> {
        let stored = self.ledger.store_receipts(receipts).await;
        let was_busy = self.is_busy.swap(matches!(stored, Err(LedgerError::Busy { .. })), Ordering::Relaxed);
        match stored {
            Ok(outcomes) => return Some(outcomes),
            // One warning is enough for all webhooks that arrive in the meantime.
            Err(LedgerError::Busy { who, .. }) if !was_busy => {
                tracing::warn!("receipts are rejected until the ledger is writable again: {who}");
            }
            Err(LedgerError::Busy { .. }) => {}
            Err(error) if error.concerns_records() => {
                tracing::error!("a receipt was rejected: {}; run `campaign ledger check`", error.describe_damage());
            }
            // The first failure is enough, so it does not matter whether the channel is full.
            Err(error) => drop(self.failures.try_send(error)),
        }
        None
    }

    /// Finds the latest wish in the replies of a receipt: to receive no messages, or to receive messages again. If two
    /// replies have the same time, the opt-out counts. Without such a reply, a rejection can mean an opt-out.
    ///
    /// A receipt from a gateway on loopback counts only for gateways on loopback, because no real recipient replies
    /// there. Receipts of rehearsals are ignored.
    async fn find_wish(&self, run: &Run, row: Row, receipt: &Receipt) -> Result<Option<RecipientWish>, LedgerError> {
        if !run.live {
            return Ok(None);
        }
        let (purpose, now) = (run.suppression.purpose, (self.clock)());
        let wishes = receipt.replies.iter().filter_map(|reply| {
            let at = reply.at.unwrap_or(now);
            match self.words.classify_reply(&reply.text, purpose) {
                ReplyReading::OptOut(word) => Some((at, WishEvidence::OptOut(word))),
                ReplyReading::OptIn(word) => Some((at, WishEvidence::OptIn(word))),
                ReplyReading::Unclear | ReplyReading::Other => None,
            }
        });
        let latest = wishes.max_by_key(|(at, wish)| (*at, matches!(wish, WishEvidence::OptOut(_))));
        let reach = if run.suppression.loopback { OptOutReach::LoopbackGateways } else { OptOutReach::AllGateways };
        let (errors, scope) = (self.errors.find_errors_for_run(run), OptOutScope::from_reply_to(purpose));
        let rejections = RunOptOuts { errors, run: run.name(), scope: scope.clone(), reach, clock: self.clock };
        let error = receipt.error.as_deref().filter(|_| receipt.status.is_failure());
        let rejection = || {
            let opt_out_error = rejections.find_error(error?)?;
            Some((receipt.updated.unwrap_or(now), WishEvidence::Rejection(opt_out_error)))
        };
        let Some((at, wish)) = latest.or_else(rejection) else { return Ok(None) };
        let Some(addressee) = self.ledger.find_addressee(run.key, row).await? else { return Ok(None) };
        // A time from a clock that is ahead must not override later wishes.
        let at = at.min(now);
        Ok(Some(match wish {
            WishEvidence::OptOut(word) => {
                let (reason, source) = (format!("answered {word}").into(), reply_source(&run.name()).into());
                RecipientWish::OptOut(OptOut { who: addressee, scope, reach, reason, source, at })
            }
            WishEvidence::OptIn(word) => {
                let (reason, source) = (format!("answered {word}").into(), opt_in_source(&run.name(), row).into());
                let campaign = run.campaign.as_str().into();
                RecipientWish::OptIn(OptIn { who: addressee, campaign, purpose, reach, reason, source, at })
            }
            WishEvidence::Rejection(error) => RecipientWish::OptOut(rejections.build_opt_out(addressee, error, at)),
        }))
    }

    /// Finds the run that has this name and contains this message identifier.
    async fn find_run(&self, name: &str, id: MessageId) -> Result<Option<Arc<Run>>, LedgerError> {
        let cached = self.runs.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(run) = cached.filter(|run| run.find_message(id).is_some()) {
            return Ok(Some(run));
        }
        // The run is new, or has new identifiers from a retry or a block of a shared run.
        let candidates = self.ledger.list_runs(RunFilter::with_id(id)).await?;
        let Some(run) = candidates.into_iter().find(|run| run.name() == name).map(Arc::new) else { return Ok(None) };
        let mut runs = self.runs.write().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= MAX_CACHED_RUNS {
            runs.clear();
        }
        runs.insert(name.to_owned(), Arc::clone(&run));
        Ok(Some(run))
    }
}

/// The base URL of a rehearsal's webhooks. No request is sent to it.
const WEBHOOK_URL: &str = "http://localhost";
/// The time for which a rehearsal in real time waits for receipts. The rest is played at once.
const REAL_TIME_LIMIT: Duration = Duration::from_secs(60);
/// The time for which a rehearsal polls messages without a webhook.
const POLLING_LIMIT: Duration = Duration::from_secs(600);

/// The receipts of a rehearsal.
pub(super) struct RehearsedReceipts {
    /// The webhook addresses of its messages.
    pub(super) hook: WebhookUrls,
    pub(super) receiver: LocalReceiver,
    /// Receives the reason if the ledger fails. The channel closes when no webhook is being processed.
    failures: mpsc::Receiver<LedgerError>,
}

impl RehearsedReceipts {
    /// Starts a receiver for the webhooks of a rehearsal. The webhook addresses are signed with a random secret that is
    /// not stored.
    pub(super) fn start(adapters: &Adapters) -> Result<Self, Error> {
        let secret: String = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
        let secrets = WebhookSecrets::new(&[SecretString::from(secret)]);
        let secrets = secrets.map_err(|error| Error::Internal(error.to_string()))?;
        let hook = WebhookUrls::new(WEBHOOK_URL.to_owned(), secrets.clone());
        let (sender, failures) = mpsc::channel(1);
        let receiver = Arc::new(WebhookReceiver::new(Arc::clone(&adapters.ledger), secrets, adapters.clock, sender));
        let receiver = LocalReceiver::new(move |url, body| {
            let receiver = Arc::clone(&receiver);
            Box::pin(async move { handle_webhook(&receiver, &url, &body).await })
        });
        Ok(Self { hook, receiver, failures })
    }

    /// Waits until all received receipts are stored. No further webhooks are received.
    async fn finish(self) -> Result<(), Error> {
        let Self { mut failures, receiver, .. } = self;
        drop(receiver);
        match failures.recv().await {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }
}

/// Handles a webhook and returns the HTTP status, as the webhook endpoint of a server does.
async fn handle_webhook(receiver: &WebhookReceiver, url: &str, body: &[u8]) -> u16 {
    let Some(path) = url.strip_prefix(WEBHOOK_URL).and_then(WebhookPath::parse) else { return 404 };
    let Some(id) = receiver.verify_path(path) else { return 404 };
    match receiver.parse_receipts(path.run, id, body).await {
        Ok(Ok(receipts)) => receiver.store_receipts(receipts).await.map_or(503, |_| 200),
        Ok(Err(_)) => 400,
        Err(_) => 503,
    }
}

impl Session {
    /// Starts the receiver if this is a rehearsal with a scenario, unless receipts are off.
    pub(super) fn start_rehearsed_receipts(&self) -> Result<Option<RehearsedReceipts>, Error> {
        let inputs = self.inputs();
        let has_scenario = !inputs.destination.is_live() && self.launch.request.scenario.is_some();
        let needs_receipts = has_scenario && inputs.campaign.receipts != ReceiptMode::Off;
        needs_receipts.then(|| RehearsedReceipts::start(&self.adapters)).transpose()
    }

    /// Plays the scenario to its end and stores the receipts. The scenario is not played if the rehearsal was
    /// interrupted, or lost the ledger or its lease.
    pub(super) async fn play_scenario(
        &self,
        run: &Run,
        sandbox: Sandbox,
        gateway: &dyn Gateway,
        receipts: Option<RehearsedReceipts>,
        ending: &mut SendEnding,
    ) -> Result<Option<Counts>, Error> {
        let is_lost = |kind| matches!(kind, StopKind::Interrupted(_) | StopKind::Ledger | StopKind::LeaseLost);
        let must_play =
            self.launch.request.scenario.is_some() && !ending.stopped.as_ref().is_some_and(|stop| is_lost(stop.kind));
        let mut counts = None;
        if must_play {
            let played = async {
                if self.launch.request.real_time {
                    sandbox.wait_until_settled(REAL_TIME_LIMIT).await;
                }
                let counts = sandbox.drain().await;
                if receipts.is_some() {
                    self.poll_unreported(run, gateway).await?;
                }
                Ok::<_, Error>(counts)
            };
            tokio::select! {
                biased;
                signal = self.wait_for_signal() => {
                    ending.stopped.get_or_insert(Stop::new(StopKind::Interrupted(signal), "interrupted"));
                }
                played = played => counts = Some(played?),
            }
        }
        sandbox.stop().await;
        if let Some(receipts) = receipts {
            let finished = receipts.finish().await;
            if !must_play {
                return Ok(counts);
            }
            finished?;
            ending.replied_opt_outs += count_opt_outs(self.adapters.ledger.as_ref(), run).await?;
        }
        Ok(counts)
    }

    /// Polls the sandbox for the statuses of messages without a webhook, as a server polls a gateway.
    async fn poll_unreported(&self, run: &Run, gateway: &dyn Gateway) -> Result<(), Error> {
        let (ledger, destination) = (self.adapters.ledger.as_ref(), &self.inputs().destination);
        let run = &reload_run(ledger, run.key).await?;
        let times = ChainLifetimes::load_for_run(ledger, run).await;
        let pending = load_pending(ledger, run, &Snapshot::load(ledger, run, false).await?, &times).await?;
        let allowance = Allowance::new(destination.account_name(), None);
        let (batch_size, clock) = (destination.max_envelope_size(), self.adapters.clock);
        let poller = StatusPoller { ledger, gateway, run, allowance, max_batch: batch_size, clock };
        let (deadline, mut polled) = (Instant::now() + POLLING_LIMIT, PollCounts::default());
        for group in pending.chunks(poller.group_size()) {
            if poller.ask_group(group, 1.0, deadline, &mut polled).await?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// Counts the recipients of a run who opted out by reply.
async fn count_opt_outs(ledger: &dyn Ledger, run: &Run) -> Result<u64, LedgerError> {
    let (words, mut count) = (OptOutWords::default(), 0);
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    while let Some(reported) = receipts.next_receipts().await? {
        let opts_out = |reply: &RecipientReply| {
            words.classify_reply(&reply.text, run.suppression.purpose).into_opt_out().is_some()
        };
        count += reported
            .iter()
            .filter(|(_, stored)| stored.iter().any(|stored| stored.receipt.replies.iter().any(opts_out)))
            .count() as u64;
    }
    Ok(count)
}
