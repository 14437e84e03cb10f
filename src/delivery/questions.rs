//! Questions about messages by our own identifiers, at the account's pace, with what their answers are worth.

use tokio::time::{Instant, sleep, timeout_at};

use super::doubt::StatusTrust;
use crate::domain::{GatewayMessageId, MessageId, Receipt, ReceiptSource, Row};
use crate::gateway::{Gateway, StatusAnswer};
use crate::ledger::{Allowance, Ledger, LedgerError, Run};

/// The most questions that go together, those that only test the gateway among them.
pub(super) const MAX_QUESTIONS: usize = 50;

/// What an answer reports of a message; `None` if the gateway does not know it.
pub(super) fn to_receipt(answer: StatusAnswer, source: ReceiptSource) -> Option<Receipt> {
    let StatusAnswer::Known { status, msg_id, channel, updated } = answer else { return None };
    Some(Receipt { msg_id: msg_id.map(GatewayMessageId::normalize), channel, updated, ..Receipt::new(source, status) })
}

/// Where questions about a run go, and what they may take.
pub(super) struct StatusQuery<'a> {
    pub(super) ledger: &'a dyn Ledger,
    pub(super) gateway: &'a dyn Gateway,
    pub(super) run: &'a Run,
    pub(super) account: &'a Allowance,
    /// The most operations of an envelope.
    pub(super) most: usize,
}

impl StatusQuery<'_> {
    /// The answers about messages, in their order, and what they are worth; nothing when there is no time left to ask.
    ///
    /// With them goes the probe, which was never sent, and the reference, which surely was, if there is one.
    pub(super) async fn ask_trusted(
        &self,
        messages: impl Iterator<Item = MessageId>,
        reference: Option<MessageId>,
        deadline: Instant,
    ) -> Result<Option<(StatusTrust, Vec<StatusAnswer>)>, LedgerError> {
        // The identifier of the header's row is never sent.
        let Some(probe) = self.run.ids.id_for_row(Row::HEADER) else { return Ok(None) };
        let ids: Vec<MessageId> = [probe].into_iter().chain(reference).chain(messages).collect();
        let mut answers = Vec::with_capacity(ids.len());
        for asked in ids.chunks(self.most.max(1)) {
            let count = u32::try_from(asked.len()).unwrap_or(u32::MAX);
            let wait = self.ledger.reserve_rate(self.account, count).await?.time;
            if Instant::now() + wait > deadline {
                return Ok(None);
            }
            sleep(wait).await;
            let Ok(told) = timeout_at(deadline, self.gateway.ask_statuses(asked)).await else { return Ok(None) };
            answers.extend(told);
        }
        let mut answers = answers.into_iter();
        let unclear = || StatusAnswer::Unclear("no answer".to_owned());
        let probe = answers.next().unwrap_or_else(unclear);
        let reference = reference.map(|_| answers.next().unwrap_or_else(unclear));
        Ok(Some((StatusTrust::from_answers(&probe, reference.as_ref()), answers.collect())))
    }
}
