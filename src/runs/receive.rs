//! Taking what webhooks tell: whose message it is about, and whether to believe it.
//!
//! Nothing here answers a request; a webhook only moves a row forward, and never sends anything.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;

use crate::domain::{MessageId, OptOutWords, Receipt, Row};
use crate::gateway::{WebhookSecrets, read_receipts};
use crate::ledger::{
    Ledger, LedgerError, NewReceipt, OptOut, OptOutReach, OptOutScope, ReceiptOutcome, Run, RunFilter,
};

/// The most runs that are remembered; others are looked up each time.
const MAX_CACHED_RUNS: usize = 1_024;

/// Who takes webhooks: the secrets of their addresses, and the ledger that keeps what they tell.
pub struct WebhookReceiver {
    ledger: Arc<dyn Ledger>,
    secrets: WebhookSecrets,
    /// The words by which recipients opt out.
    words: OptOutWords,
    clock: fn() -> Timestamp,
    /// The runs that webhooks were about lately, by name.
    runs: RwLock<HashMap<String, Arc<Run>>>,
}

/// Where a webhook was sent to, as it stands in the path of its address.
#[derive(Clone, Copy, Debug)]
pub struct WebhookPath<'a> {
    /// The run.
    pub run: &'a str,
    /// Our identifier of the message.
    pub id: &'a str,
    /// What proves that we gave this address.
    pub mac: &'a str,
}

impl<'a> WebhookPath<'a> {
    /// Where a path leads: `/h/{run}/{id}/{mac}`; nothing for any other.
    pub(super) fn parse(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix("/h/")?.splitn(3, '/');
        Some(Self { run: parts.next()?, id: parts.next()?, mac: parts.next()? })
    }
}

/// Why a webhook is not believed, or not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookRefusal {
    /// Its address is ours, and the ledger has no such message.
    Foreign,
    /// It is no delivery status.
    Unreadable,
    /// It names another message than its address.
    Contradicting,
}

impl WebhookReceiver {
    /// A receiver of webhooks to addresses that are signed with one of these secrets.
    #[must_use]
    pub fn new(ledger: Arc<dyn Ledger>, secrets: WebhookSecrets, clock: fn() -> Timestamp) -> Self {
        Self { ledger, secrets, words: OptOutWords::default(), clock, runs: RwLock::default() }
    }

    /// The same, which hears these words by which recipients opt out.
    #[must_use]
    pub fn with_opt_out_words(self, words: OptOutWords) -> Self {
        Self { words, ..self }
    }

    /// The message that an address is of, if we gave that address. It costs no look into the ledger.
    #[must_use]
    pub fn verify_path(&self, post: WebhookPath<'_>) -> Option<MessageId> {
        let number: u64 = post.id.parse().ok()?;
        let id = MessageId::new(number).filter(|id| id.to_string() == post.id)?;
        self.secrets.verify_message(post.run, id, post.mac).then_some(id)
    }

    /// Whether this is the account's own address.
    #[must_use]
    pub fn is_account_path(&self, mac: &str) -> bool {
        self.secrets.verify_notice(mac)
    }

    /// What proves to whoever asks the account's own address that it leads here; nothing if it is not that address.
    #[must_use]
    pub fn prove_path(&self, mac: &str, question: &str) -> Option<String> {
        self.secrets.prove(mac, question)
    }

    /// What a webhook to the address of a message tells of it.
    ///
    /// # Errors
    /// Why it is not taken; or that the ledger cannot be read.
    pub async fn parse_receipts(
        &self,
        run: &str,
        id: MessageId,
        body: &[u8],
    ) -> Result<Result<Vec<NewReceipt>, WebhookRefusal>, LedgerError> {
        let Ok(told) = read_receipts(body) else { return Ok(Err(WebhookRefusal::Unreadable)) };
        let Some(run) = self.find_run(run, id).await? else { return Ok(Err(WebhookRefusal::Foreign)) };
        let Some((row, order)) = run.find_message(id) else { return Ok(Err(WebhookRefusal::Foreign)) };
        let about = told.into_iter().filter(|told| told.id.is_none_or(|named| named == Some(id.get())));
        let mut receipts = Vec::new();
        for told in about {
            let opt_out = self.find_opt_out(&run, row, &told.receipt).await?;
            receipts.push(NewReceipt { run: run.key, row, order, receipt: told.receipt, opt_out });
        }
        Ok(if receipts.is_empty() { Err(WebhookRefusal::Contradicting) } else { Ok(receipts) })
    }

    /// Keeps receipts; once this returns they survive everything.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub async fn store_receipts(&self, receipts: Vec<NewReceipt>) -> Result<Vec<ReceiptOutcome>, LedgerError> {
        self.ledger.store_receipts(receipts).await
    }

    /// Whom a receipt puts on the suppression list: who answered with a word that opts out.
    ///
    /// What a gateway on loopback tells holds for such gateways alone: nobody answers there. Nobody opts out in a rehearsal.
    async fn find_opt_out(&self, run: &Run, row: Row, receipt: &Receipt) -> Result<Option<OptOut>, LedgerError> {
        if !run.live {
            return Ok(None);
        }
        let read = |text| self.words.read_reply(text, run.suppression.purpose).into_opt_out();
        let said = receipt.replies.iter().find_map(|reply| Some((reply.at, read(&reply.text)?)));
        let Some((at, word)) = said else { return Ok(None) };
        let Some(who) = self.ledger.find_addressee(run.key, row).await? else { return Ok(None) };
        let reach = if run.suppression.loopback { OptOutReach::LoopbackGateways } else { OptOutReach::AllGateways };
        Ok(Some(OptOut {
            who,
            scope: OptOutScope::Everything,
            reach,
            reason: format!("answered {word}").into(),
            source: format!("reply to {}", run.name()).into(),
            at: at.unwrap_or_else(self.clock),
        }))
    }

    /// The run of that name that gave a message this identifier.
    async fn find_run(&self, name: &str, id: MessageId) -> Result<Option<Arc<Run>>, LedgerError> {
        let known = self.runs.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(run) = known.filter(|run| run.find_message(id).is_some()) {
            return Ok(Some(run));
        }
        // It is new, or got identifiers since: an order to send again, a block of a shared run.
        let Some(origin) = self.ledger.find_message(id).await? else { return Ok(None) };
        let found = self.ledger.list_runs(RunFilter { key: Some(origin.run), ..RunFilter::all() }).await?;
        let Some(run) = found.into_iter().find(|run| run.name() == name).map(Arc::new) else { return Ok(None) };
        let mut runs = self.runs.write().unwrap_or_else(PoisonError::into_inner);
        if runs.len() >= MAX_CACHED_RUNS {
            runs.clear();
        }
        runs.insert(name.to_owned(), Arc::clone(&run));
        Ok(Some(run))
    }
}
