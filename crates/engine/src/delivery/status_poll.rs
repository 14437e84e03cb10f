//! Status inquiries about messages without a final status, about messages before a retry, and about the first messages
//! of a run.
//!
//! The lifetimes of a message's channels determine when an answer about it is final.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::flow_control::QueuedMessage;
use super::frozen::FrozenInputs;
use super::reconcile::StatusTrust;
use super::submission::Submitter;
use super::{SendContext, Snapshot};
use campaign_core::domain::{
    Chain, DeliveryState, FieldValue, GatewayMessageId, MessageContent, MessageId, NamedTemplate, Receipt,
    ReceiptSource, ReportedChannel, Row, Stage, Status,
};
use campaign_gateway::{Gateway, StatusAnswer};
use campaign_ledger::{Allowance, EnvelopeReader, Ledger, LedgerError, NewReceipt, ReceiptOutcome, RowState, Run};
use campaign_manifest::CampaignBrief;

/// A message whose status is queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingMessage {
    /// The row of the message.
    pub row: Row,
    /// The retry order of its identifier. `None` if the identifier is in the run's own range.
    pub order: Option<u32>,
    /// Our identifier of the message.
    pub id: MessageId,
    /// The channels of the message.
    pub chain: Chain,
    /// The time when the lifetimes of all its channels have passed.
    pub expires_at: Timestamp,
}

/// The result of polling messages without a final status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PollCounts {
    /// Messages that were queried.
    pub asked: u64,
    /// Messages with a new status.
    pub updated: u64,
    /// Messages whose answers proved nothing, because the gateway cannot tell sent from unsent messages.
    pub blind: u64,
    /// Messages without a usable answer.
    pub unclear: u64,
    /// Messages that could not be asked about in time.
    pub left: u64,
    /// Messages whose fallback is unreported, and whose channels still have time.
    pub waiting: u64,
}

/// Polls the status of the messages of a run.
pub struct StatusPoller<'a> {
    /// Stores the answers as receipts, and reserves the rate for the inquiries.
    pub ledger: &'a dyn Ledger,
    /// Answers the inquiries.
    pub gateway: &'a dyn Gateway,
    /// The run whose messages are asked about.
    pub run: &'a Run,
    /// The account and its rate limit.
    pub allowance: Allowance,
    /// The maximum number of operations in an envelope.
    pub max_batch: usize,
    /// The wall clock.
    pub clock: fn() -> Timestamp,
}

/// The accepted and queued messages of a run without a final status, in the order of their identifiers.
///
/// # Errors
/// If the ledger cannot be read.
pub async fn load_pending(
    ledger: &dyn Ledger,
    run: &Run,
    snapshot: &Snapshot,
    lifetimes: &ChainLifetimes,
) -> Result<Vec<PendingMessage>, LedgerError> {
    let mut pending = Vec::new();
    let mut envelopes = EnvelopeReader::new(ledger, run.key);
    let events = snapshot.states.events();
    while let Some(envelope) = envelopes.next_envelope().await? {
        for sent in &envelope.rows {
            let order = events.find_order(sent.row, envelope.envelope);
            // Only the last message of a row counts. A retry that was not sent does not count.
            let last =
                snapshot.states.last_attempt(sent.row).and_then(|last| events.find_order(sent.row, last.envelope));
            if last == order
                && matches!(snapshot.row_state(sent.row), RowState::Accepted | RowState::Queued)
                && let Some(id) = run.message_id(sent.row, order)
            {
                let chain = envelope.chain(sent);
                pending.push(PendingMessage::new(sent.row, order, id, chain, envelope.begun_at, lifetimes));
            }
        }
    }
    // Of several attempts at a message, the last one counts.
    pending.sort_by_key(|message| (message.id, Reverse(message.expires_at)));
    pending.dedup_by_key(|message| message.id);
    Ok(pending)
}

impl PendingMessage {
    /// A message on the channels of `chain` that was sent at `sent_at`.
    pub fn new(
        row: Row,
        order: Option<u32>,
        id: MessageId,
        chain: Chain,
        sent_at: Timestamp,
        lifetimes: &ChainLifetimes,
    ) -> Self {
        let expires_at = sent_at.checked_add(lifetimes.for_chain(chain)).unwrap_or(Timestamp::MAX);
        Self { row, order, id, chain, expires_at }
    }

    /// Whether the lifetimes of all the message's channels have passed, so that an answer is final.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at <= now
    }
}

impl StatusPoller<'_> {
    /// The number of messages in a group, at least one. The probe is added to each group.
    pub fn group_size(&self) -> usize {
        MAX_INQUIRIES.min(self.max_batch).saturating_sub(1).max(1)
    }

    /// Asks about a group of messages once, at the speed that `share` of the account's rate allows. Returns the
    /// gateway's report on each message, in order; a report is `None` if the message is unknown or the answer proves
    /// nothing. The whole result is `None` if the time ran out.
    ///
    /// # Errors
    /// If the ledger cannot be read or written.
    pub async fn ask_group(
        &self,
        group: &[PendingMessage],
        share: f64,
        deadline: Instant,
        counts: &mut PollCounts,
    ) -> Result<Option<Vec<Option<Receipt>>>, LedgerError> {
        let Self { ledger, gateway, run, ref allowance, max_batch, .. } = *self;
        let inquiries = StatusInquiry { ledger, gateway, run, allowance, max_batch };
        let began = Instant::now();
        // A reference is not needed, because denials do not count here.
        let ids = group.iter().map(|message| message.id);
        let Some((trust, answers)) = inquiries.ask_with_probe(ids, None, deadline).await? else { return Ok(None) };
        let answered = self.store_answers(group, trust, answers, counts).await?;
        // The probe is one more operation. The interval is at most an hour.
        let operations = group.len() as f64 + 1.0;
        let interval = self.allowance.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64((operations / (rate * share).max(0.001)).min(3_600.0))
        });
        sleep(interval.saturating_sub(began.elapsed())).await;
        Ok(Some(answered))
    }

    async fn store_answers(
        &self,
        group: &[PendingMessage],
        trust: StatusTrust,
        answers: Vec<StatusAnswer>,
        counts: &mut PollCounts,
    ) -> Result<Vec<Option<Receipt>>, LedgerError> {
        let (mut answered, now) = (Vec::with_capacity(group.len()), (self.clock)());
        for (message, answer) in group.iter().zip(answers) {
            counts.asked += 1;
            answered.push(match answer {
                StatusAnswer::Unclear(_) => {
                    counts.unclear += 1;
                    None
                }
                _ if trust == StatusTrust::Blind => {
                    counts.blind += 1;
                    None
                }
                // A gateway can forget the status of a message; its acceptance stays proven.
                StatusAnswer::Denied(_) => None,
                known @ StatusAnswer::Known { .. } => {
                    let is_last = message.has_expired(now);
                    to_receipt(known, if is_last { ReceiptSource::AskedLast } else { ReceiptSource::Asked })
                }
            });
        }
        let receipts = group.iter().zip(&answered).filter_map(|(message, receipt)| {
            let PendingMessage { row, order, .. } = *message;
            Some(NewReceipt { run: self.run.key, row, order, opt_out: None, opt_in: None, receipt: receipt.clone()? })
        });
        let receipts = receipts.collect();
        let outcomes = self.ledger.store_receipts(receipts).await?;
        counts.updated += outcomes.iter().filter(|outcome| **outcome == ReceiptOutcome::Stored).count() as u64;
        Ok(answered)
    }
}

/// The maximum number of inquiries in an envelope, including the probe and the reference.
pub(super) const MAX_INQUIRIES: usize = 50;

/// The receipt in an answer. `None` if the answer contains no status.
pub(super) fn to_receipt(answer: StatusAnswer, source: ReceiptSource) -> Option<Receipt> {
    let StatusAnswer::Known { status, msg_id, channel, updated } = answer else { return None };
    Some(Receipt { msg_id: msg_id.map(GatewayMessageId::normalize), channel, updated, ..Receipt::new(source, status) })
}

/// A status inquiry about messages of a run.
pub(super) struct StatusInquiry<'a> {
    pub(super) ledger: &'a dyn Ledger,
    pub(super) gateway: &'a dyn Gateway,
    pub(super) run: &'a Run,
    pub(super) allowance: &'a Allowance,
    /// The maximum number of operations in an envelope.
    pub(super) max_batch: usize,
}

impl StatusInquiry<'_> {
    /// Asks about messages, and returns the answers in order, and the trust in these answers. `None` if the time ran
    /// out.
    ///
    /// The inquiry also includes a probe, which was never sent, and, if given, a reference, which was certainly
    /// accepted.
    pub(super) async fn ask_with_probe(
        &self,
        messages: impl Iterator<Item = MessageId>,
        reference: Option<MessageId>,
        deadline: Instant,
    ) -> Result<Option<(StatusTrust, Vec<StatusAnswer>)>, LedgerError> {
        // No message is ever sent with the identifier of the header row, so it serves as the probe.
        let Some(probe) = self.run.ids.id_for_row(Row::HEADER) else { return Ok(None) };
        let ids: Vec<MessageId> = [probe].into_iter().chain(reference).chain(messages).collect();
        let mut answers = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(self.max_batch.max(1)) {
            let count = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
            let wait = self.ledger.reserve_rate(self.allowance, count).await?.time;
            if Instant::now() + wait > deadline {
                return Ok(None);
            }
            sleep(wait).await;
            let Ok(answered) = timeout_at(deadline, self.gateway.ask_statuses(chunk)).await else { return Ok(None) };
            answers.extend(answered);
        }
        let mut answers = answers.into_iter();
        let unclear = || StatusAnswer::Unclear("no answer".to_owned());
        let probe = answers.next().unwrap_or_else(unclear);
        let reference = reference.map(|_| answers.next().unwrap_or_else(unclear));
        Ok(Some((StatusTrust::from_answers(&probe, reference.as_ref()), answers.collect())))
    }
}

/// The status of a message that seemed to have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfirmedStatus {
    /// The message failed on all of its channels.
    Failed,
    /// The message was delivered.
    Delivered,
    /// A channel of the message can still deliver it.
    InProgress,
    /// No answer proves a status.
    Unknown,
}

impl ConfirmedStatus {
    fn from_receipt(message: &PendingMessage, reported: Option<&Receipt>) -> Self {
        let Some(receipt) = reported else { return ConfirmedStatus::Unknown };
        match receipt.status.delivery_state() {
            DeliveryState::Delivered | DeliveryState::Read => ConfirmedStatus::Delivered,
            DeliveryState::Pending => ConfirmedStatus::InProgress,
            DeliveryState::Failed => {
                let is_last = receipt.source == ReceiptSource::AskedLast;
                if is_last || message.chain.is_exhausted_by(receipt.channel.as_ref()) {
                    ConfirmedStatus::Failed
                } else {
                    ConfirmedStatus::InProgress
                }
            }
        }
    }
}

impl StatusPoller<'_> {
    /// Asks the gateway about messages before they are retried, and stores the answers as receipts. Returns one status
    /// per message, in order; messages that were not asked about before the deadline are [`ConfirmedStatus::Unknown`].
    ///
    /// # Errors
    /// If the ledger cannot be read or written.
    pub async fn ask_before_retry(
        &self,
        messages: &[PendingMessage],
        deadline: Instant,
    ) -> Result<Vec<ConfirmedStatus>, LedgerError> {
        let mut statuses = Vec::with_capacity(messages.len());
        for group in messages.chunks(self.group_size()) {
            let answers = self.ask_group(group, 1.0, deadline, &mut PollCounts::default()).await?;
            let Some(answers) = answers else { break };
            statuses.extend(
                group
                    .iter()
                    .zip(&answers)
                    .map(|(message, reported)| ConfirmedStatus::from_receipt(message, reported.as_ref())),
            );
        }
        statuses.resize(messages.len(), ConfirmedStatus::Unknown);
        Ok(statuses)
    }
}

/// The maximum number of messages of an envelope that are asked about.
const MAX_ASKED: usize = 5;
/// The interval between inquiries.
const ASK_INTERVAL: Duration = Duration::from_millis(500);

/// The result of asking about the first messages.
pub(super) struct LateRejections {
    /// The messages that the gateway rejected after queueing them, with the reported channel.
    pub(super) rejected: Vec<(QueuedMessage, Option<ReportedChannel>)>,
    /// The number of queried messages.
    pub(super) asked: usize,
    /// The time from the first inquiry until the gateway knew the last of its known messages. `None` if it knew none.
    pub(super) lag: Option<Duration>,
}

/// Asks about the first few `queued` messages, until each of them has left the queue or `deadline` has passed.
///
/// # Errors
/// If the ledger cannot reserve slots of the account's rate for the inquiries.
pub(super) async fn ask_until_known(
    submitter: &Submitter,
    queued: &[QueuedMessage],
    deadline: Instant,
) -> Result<LateRejections, LedgerError> {
    let SendContext { ledger, gateway, .. } = &submitter.context;
    let mut open: Vec<QueuedMessage> = queued.iter().copied().take(MAX_ASKED).collect();
    let mut result = LateRejections { rejected: Vec::new(), asked: open.len(), lag: None };
    let (began, mut known_ids) = (Instant::now(), HashSet::new());
    while !open.is_empty() && Instant::now() < deadline {
        let count = u32::try_from(open.len()).unwrap_or(u32::MAX);
        let wait = ledger.reserve_rate(&submitter.options.allowance, count).await?.time;
        sleep_until(deadline.min(Instant::now() + wait)).await;
        let ids: Vec<MessageId> = open.iter().map(|message| message.id).collect();
        let Ok(answers) = timeout_at(deadline, gateway.ask_statuses(&ids)).await else { break };
        let mut waiting = Vec::new();
        for (message, answer) in open.into_iter().zip(answers) {
            if matches!(answer, StatusAnswer::Known { .. }) && known_ids.insert(message.id) {
                result.lag = Some(began.elapsed());
            }
            match answer {
                StatusAnswer::Known { status: Status::Rejected, channel, .. } => {
                    result.rejected.push((message, channel))
                }
                StatusAnswer::Known { status: Status::Queued, .. }
                | StatusAnswer::Denied(_)
                | StatusAnswer::Unclear(_) => waiting.push(message),
                StatusAnswer::Known { .. } => {}
            }
        }
        open = waiting;
        if !open.is_empty() {
            sleep_until(deadline.min(Instant::now() + ASK_INTERVAL)).await;
        }
    }
    Ok(result)
}

/// The default lifetime of a message on a channel (contract 8 `rcs_lifetime`; assumed for the other channels as well).
const DEFAULT_LIFETIME: Duration = Duration::from_secs(172_800);
/// The minimum lifetime of a chain, because receipts of the last channel can be late.
const MIN_LIFETIME: Duration = Duration::from_secs(4 * 86_400);
/// The maximum number of channels that an unknown chain can have.
const MAX_CHANNELS: u32 = 6;

/// The lifetime of each channel chain of a run, from the time of sending.
#[derive(Clone, Debug, Default)]
pub struct ChainLifetimes(HashMap<Chain, Duration>);

impl ChainLifetimes {
    /// Loads the lifetimes of a run's messages from the frozen inputs. If the run's copies cannot be read, the
    /// gateway's default lifetimes apply.
    pub async fn load_for_run(ledger: &dyn Ledger, run: &Run) -> Self {
        let frozen = FrozenInputs::load_for_run(ledger, run).await;
        frozen.map(|frozen| Self::from_brief(&frozen.brief)).unwrap_or_default()
    }

    /// The lifetimes of a campaign's messages. If variants have the same channels, the longest lifetime counts.
    pub fn from_brief(brief: &CampaignBrief) -> Self {
        let mut times = HashMap::new();
        for content in brief.all_contents() {
            let time = times.entry(content.channel_chain()).or_default();
            *time = total_lifetime(content).max(*time);
        }
        Self(times)
    }

    /// The lifetime of a chain: the sum of its channels' lifetimes, at least four days.
    pub fn for_chain(&self, chain: Chain) -> Duration {
        let channels =
            if chain.is_known() { u32::try_from(chain.channels().count()).unwrap_or(1) } else { MAX_CHANNELS };
        self.0.get(&chain).copied().unwrap_or(DEFAULT_LIFETIME * channels).max(MIN_LIFETIME)
    }
}

fn total_lifetime(content: &MessageContent<NamedTemplate>) -> Duration {
    content.stages.iter().map(stage_lifetime).sum()
}

fn stage_lifetime(stage: &Stage<NamedTemplate>) -> Duration {
    let explicit = stage.values().find_map(|(field, value)| match value {
        FieldValue::Number(seconds) if field.key == "lifetime" => Some(Duration::from_secs(seconds.into())),
        _ => None,
    });
    explicit.unwrap_or(DEFAULT_LIFETIME)
}

#[cfg(test)]
mod expiry_tests {
    use super::*;
    use campaign_core::domain::OperationKind;

    #[test]
    fn message_expires_after_the_lifetimes_of_its_channels() {
        let sent_at = Timestamp::UNIX_EPOCH;
        let message = |kind: OperationKind| {
            let id = MessageId::new(7).unwrap();
            PendingMessage::new(Row::FIRST, None, id, kind.into(), sent_at, &ChainLifetimes::default())
        };
        let after = |days: i64| sent_at + jiff::SignedDuration::from_hours(24 * days);
        assert!(!message(OperationKind::ViberSms).has_expired(after(3)));
        assert!(message(OperationKind::ViberSms).has_expired(after(4)));
        assert!(!message(OperationKind::RcsViberSms).has_expired(after(5)));
        assert!(message(OperationKind::RcsViberSms).has_expired(after(6)));
        assert!(message(OperationKind::Sms).has_expired(after(4)), "four days at least");
    }
}

#[cfg(test)]
mod retry_tests {
    use jiff::Timestamp;

    use super::*;
    use crate::delivery::ChainLifetimes;
    use campaign_core::domain::{Chain, MessageId, OperationKind, ReportedChannel, Row, Status};

    #[test]
    fn only_failure_of_the_whole_message_allows_a_retry() {
        let chain = Chain::from(OperationKind::ViberSms);
        let (id, sent_at) = (MessageId::new(7).unwrap(), Timestamp::UNIX_EPOCH);
        let message = PendingMessage::new(Row::FIRST, None, id, chain, sent_at, &ChainLifetimes::default());
        let report = |source, channel: &str, status| {
            let channel = ReportedChannel::parse(channel);
            Some(Receipt { channel, ..Receipt::new(source, status) })
        };
        let (asked, last) = (ReceiptSource::Asked, ReceiptSource::AskedLast);
        for (reported, expected) in [
            (None, ConfirmedStatus::Unknown),
            (report(asked, "sms", Status::Undeliverable), ConfirmedStatus::Failed),
            (report(asked, "", Status::Expired), ConfirmedStatus::Failed),
            (report(asked, "viber", Status::Expired), ConfirmedStatus::InProgress),
            (report(last, "viber", Status::Expired), ConfirmedStatus::Failed),
            (report(asked, "MAX", Status::Expired), ConfirmedStatus::InProgress),
            (report(asked, "sms", Status::Accepted), ConfirmedStatus::InProgress),
            (report(asked, "", Status::Unknown), ConfirmedStatus::InProgress),
            (report(asked, "viber", Status::Read), ConfirmedStatus::Delivered),
            (report(last, "sms", Status::PartiallyDelivered), ConfirmedStatus::Delivered),
        ] {
            assert_eq!(ConfirmedStatus::from_receipt(&message, reported.as_ref()), expected, "{reported:?}");
        }
    }
}

#[cfg(test)]
mod lifetime_tests {
    use super::*;
    use campaign_core::domain::OperationKind;
    use campaign_manifest::{CampaignDay, load_campaign};

    const DAY: u64 = 86_400;

    fn lifetimes_for(channels: &str) -> ChainLifetimes {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sale.yaml");
        let campaign = format!("name: sale\nrecipients: {{ file: list.csv }}\nchannels:\n{channels}");
        std::fs::write(&file, campaign).unwrap();
        let loaded = load_campaign(&file, CampaignDay::Coming(jiff::civil::Date::ZERO));
        ChainLifetimes::from_brief(&loaded.value.unwrap_or_else(|| panic!("{:?}", loaded.findings)).brief)
    }

    #[test]
    fn chain_lifetime_is_the_sum_of_its_channel_lifetimes() {
        let viber = |lifetime| format!("  - viber: {{ signature: Olena, message: Hi, lifetime: {lifetime} }}\n");
        let sms = "  - sms: { signature: Olena, message: Hi }\n";
        let chain = Chain::from(OperationKind::ViberSms);
        let seconds = |lifetime| lifetimes_for(&format!("{}{sms}", viber(lifetime))).for_chain(chain).as_secs();
        assert_eq!(seconds("1h"), 4 * DAY, "four days at least");
        assert_eq!(seconds("172800"), 4 * DAY);
        let rcs = "  - rcs: { signature: Olena, message: Hi, image: https://shop.example/1.png, button: Buy, \
                   link: https://shop.example, lifetime: 4d }\n";
        let rcs_and_sms = lifetimes_for(&format!("{rcs}{sms}"));
        assert_eq!(rcs_and_sms.for_chain(OperationKind::RcsSms.into()).as_secs(), 6 * DAY);
    }

    #[test]
    fn chain_lifetime_without_frozen_copies_uses_defaults() {
        let defaults = ChainLifetimes::default();
        assert_eq!(defaults.for_chain(OperationKind::RcsViberSms.into()).as_secs(), 6 * DAY);
        assert_eq!(defaults.for_chain(OperationKind::Sms.into()).as_secs(), 4 * DAY);
        assert_eq!(defaults.for_chain(Chain::UNKNOWN).as_secs(), 12 * DAY);
    }
}
