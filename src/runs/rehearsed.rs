//! What becomes of the messages of a rehearsal: its sandbox plays it out, and its webhooks are taken in this process, by what
//! takes those of a gateway.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::find::reload_run;
use super::launch::Session;
use super::{Adapters, Error, ReceiptCollector, WebhookPath, WebhookReceiver, create_collector};
use crate::delivery::{ChainLifetimes, PollCounts, SendEnding, Snapshot, StatusPoller, Stop, load_pending};
use crate::domain::{OptOutWords, RecipientReply};
use crate::gateway::{Gateway, WebhookSecrets, WebhookUrls};
use crate::ledger::{Allowance, Ledger, LedgerError, ReceiptReader, Run, StopKind};
use crate::manifest::ReceiptMode;
use crate::sandbox::{Counts, LocalReceiver, Sandbox};

/// Where the messages of a rehearsal have their webhooks brought; nothing ever leaves for it.
const WEBHOOK_URL: &str = "http://localhost";
/// How long a rehearsal that keeps the pace of a real run stays for what becomes of its messages; the rest is played at once.
const REAL_TIME_LIMIT: Duration = Duration::from_secs(60);
/// How long a rehearsal asks about what no webhook told.
const POLLING_LIMIT: Duration = Duration::from_secs(600);

/// The receipts of a rehearsal.
pub(super) struct RehearsedReceipts {
    /// The addresses of its messages.
    pub(super) hook: WebhookUrls,
    pub(super) receiver: LocalReceiver,
    collecting: JoinHandle<Result<(), LedgerError>>,
}

impl RehearsedReceipts {
    /// Takes the webhooks of a rehearsal from now on; its addresses are signed with a secret that nobody keeps.
    pub(super) fn start(adapters: &Adapters) -> Result<Self, Error> {
        let secret: String = rand::random::<[u8; 32]>().iter().map(|byte| format!("{byte:02x}")).collect();
        let secrets = WebhookSecrets::new(&[SecretString::from(secret)]);
        let secrets = secrets.map_err(|error| Error::Internal(error.to_string()))?;
        let hook = WebhookUrls::new(WEBHOOK_URL.to_owned(), secrets.clone());
        let taking = Arc::new(WebhookReceiver::new(Arc::clone(&adapters.ledger), secrets, adapters.clock));
        let (collector, collecting) = create_collector(Arc::clone(&taking));
        let receiver = LocalReceiver::new(move |url, body| {
            let (taking, collector) = (Arc::clone(&taking), collector.clone());
            Box::pin(async move { handle_webhook(&taking, &collector, &url, &body).await })
        });
        Ok(Self { hook, receiver, collecting: tokio::spawn(collecting) })
    }

    /// Waits until everything that was taken is kept; nobody brings anything any more.
    async fn finish(self) -> Result<(), Error> {
        let Self { collecting, receiver, .. } = self;
        drop(receiver);
        match collecting.await {
            Ok(kept) => Ok(kept?),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

/// Takes a webhook; the HTTP status of the answer, as the receipts' door of a server gives it.
async fn handle_webhook(receiver: &WebhookReceiver, collector: &ReceiptCollector, url: &str, body: &[u8]) -> u16 {
    let Some(post) = url.strip_prefix(WEBHOOK_URL).and_then(WebhookPath::parse) else { return 404 };
    let Some(id) = receiver.verify_path(post) else { return 404 };
    match receiver.parse_receipts(post.run, id, body).await {
        Ok(Ok(receipts)) => collector.keep_receipts(receipts).await.map_or(503, |_| 200),
        Ok(Err(_)) => 400,
        Err(_) => 503,
    }
}

impl Session {
    /// Who takes the webhooks of this start: of a rehearsal with a scenario, unless nobody wants to know.
    pub(super) fn start_rehearsed_receipts(&self) -> Result<Option<RehearsedReceipts>, Error> {
        let inputs = self.inputs();
        let plays = !inputs.destination.is_live() && self.launch.request.scenario.is_some();
        let wanted = plays && inputs.campaign.receipts != ReceiptMode::Off;
        wanted.then(|| RehearsedReceipts::start(&self.adapters)).transpose()
    }

    /// Lets everything become of the messages that will, if a scenario says what, and has its receipts kept; nobody waits
    /// for an interrupted one.
    pub(super) async fn play_scenario(
        &self,
        (run, sandbox): (&Run, Sandbox),
        gateway: &dyn Gateway,
        receipts: Option<RehearsedReceipts>,
        ending: &mut SendEnding,
    ) -> Result<Option<Counts>, Error> {
        let gone = |kind| matches!(kind, StopKind::Interrupted(_) | StopKind::Ledger | StopKind::LeaseLost);
        let plays =
            self.launch.request.scenario.is_some() && !ending.stopped.as_ref().is_some_and(|stop| gone(stop.kind));
        let mut counts = None;
        if plays {
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
            let kept = receipts.finish().await;
            if !plays {
                return Ok(counts);
            }
            kept?;
            ending.opted_out += count_opt_outs(self.adapters.ledger.as_ref(), run).await?;
        }
        Ok(counts)
    }

    /// Asks the sandbox about what no webhook told, as a server would ask a gateway.
    async fn poll_unreported(&self, run: &Run, gateway: &dyn Gateway) -> Result<(), Error> {
        let (ledger, destination) = (self.adapters.ledger.as_ref(), &self.inputs().destination);
        let now = reload_run(ledger, run.key).await?;
        let times = ChainLifetimes::load_for_run(ledger, &now).await;
        let pending = load_pending(ledger, &now, &Snapshot::load(ledger, &now, false).await?, &times).await?;
        let account = Allowance::new(destination.account_name(), None);
        let (most, clock) = (destination.largest_envelope(), self.adapters.clock);
        let poller = StatusPoller { ledger, gateway, run: &now, account, most, clock };
        let (deadline, mut polled) = (Instant::now() + POLLING_LIMIT, PollCounts::default());
        for group in pending.chunks(poller.group_size()) {
            if poller.ask_group(group, 1.0, deadline, &mut polled).await?.is_none() {
                break;
            }
        }
        Ok(())
    }
}

/// How many people answered to a run with a word that opts out.
async fn count_opt_outs(ledger: &dyn Ledger, run: &Run) -> Result<u64, LedgerError> {
    let (words, mut people) = (OptOutWords::default(), 0);
    let mut receipts = ReceiptReader::new(ledger, run.key, run.last_row());
    while let Some(told) = receipts.next_receipts().await? {
        let opts_out =
            |reply: &RecipientReply| words.read_reply(&reply.text, run.suppression.purpose).into_opt_out().is_some();
        people +=
            told.iter().filter(|(_, kept)| kept.iter().any(|kept| kept.receipt.replies.iter().any(opts_out))).count()
                as u64;
    }
    Ok(people)
}
