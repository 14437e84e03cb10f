//! Delivery-status webhooks (contract 2.4 and 6): which are due, their payload, and retries.
//!
//! This module does not send webhooks; `server/webhook_client.rs` does.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::faults;
use crate::journal::{JournalLine, JournalLines};
use crate::platform::{
    DeliveryFailure, GatewayEmulator, LifecycleState, OperationError, Phase, ReplyRecord, SandboxMessage, VirtualTime,
    WireTime, format_request_id, msg_id_of,
};
use crate::request::ClientId;
use crate::scenario::WebhookFault;
use campaign_core::domain::Channel;

/// The delay of a reordered webhook after the webhook of the next state.
const REORDER_DELAY: Duration = Duration::from_secs(1);

/// A webhook to send now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebhookPost {
    /// The number of the webhook, shared by all attempts.
    pub(crate) webhook: u64,
    /// The exact URL from the client.
    pub(crate) url: Arc<str>,
    /// The payload (contract 2.4).
    pub(crate) body: Vec<u8>,
}

/// The result of an attempt to send a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WebhookOutcome {
    /// The receiver answered with this HTTP status; 200 acknowledges the webhook (contract 6.1).
    Answered(u16),
    /// The receiver did not answer, for this reason.
    Failed(String),
    /// The webhook was not sent and will not be, for this reason.
    Refused(String),
}

/// The message and the state that a webhook reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct StatusNotice {
    /// The index of the message.
    message: u32,
    state: LifecycleState,
    /// The number of finished attempts.
    attempts: u32,
}

/// A waiting webhook. Its order is the order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitingWebhook {
    due: VirtualTime,
    number: u64,
    notice: StatusNotice,
}

/// Waiting webhooks and webhooks in flight.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: BinaryHeap<Reverse<WaitingWebhook>>,
    in_flight: HashMap<u64, StatusNotice>,
    /// For each message with a webhook in flight, the webhooks that wait for it: they must stay in order.
    held_back: HashMap<u32, Vec<WaitingWebhook>>,
    /// The number of the latest webhook.
    last: u64,
    /// The errors of rejected messages with a webhook.
    refusals: HashMap<u32, OperationError>,
}

impl Outbox {
    /// The time at which the next webhook is due.
    pub(crate) fn next_due(&self) -> Option<VirtualTime> {
        self.waiting.peek().map(|Reverse(waiting)| waiting.due)
    }

    fn enqueue(&mut self, due: VirtualTime, notice: StatusNotice) {
        self.last += 1;
        self.waiting.push(Reverse(WaitingWebhook { due, number: self.last, notice }));
    }

    /// Takes the next webhook that is due at `now`. Further webhooks of its message are held back until the attempt
    /// ends.
    fn take_next_due(&mut self, now: VirtualTime) -> Option<WaitingWebhook> {
        loop {
            self.next_due().filter(|due| *due <= now)?;
            let Reverse(waiting) = self.waiting.pop()?;
            match self.held_back.entry(waiting.notice.message) {
                Entry::Occupied(mut entry) => entry.get_mut().push(waiting),
                Entry::Vacant(free) => {
                    free.insert(Vec::new());
                    self.in_flight.insert(waiting.number, waiting.notice);
                    return Some(waiting);
                }
            }
        }
    }

    /// Ends the attempt of a webhook, successful or not, and releases the webhooks that waited for it.
    ///
    /// `None` if the webhook has no open attempt.
    fn finish_attempt(&mut self, webhook: u64) -> Option<StatusNotice> {
        let notice = self.in_flight.remove(&webhook)?;
        let waiting = self.held_back.remove(&notice.message).unwrap_or_default();
        self.waiting.extend(waiting.into_iter().map(Reverse));
        Some(notice)
    }
}

/// The possible values of `type` in a payload; other channels have none (contract 2.4).
const CHANNEL_TYPES: [&str; 4] = ["sms", "viber", "voice", "rcs"];

/// The payload of a webhook (contract 2.4).
#[derive(Serialize)]
struct WebhookPayload<'a> {
    success: bool,
    id: String,
    msg_id: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    channel: Option<&'static str>,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    updated: WireTime,
    /// The digit that the recipient pressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<char>,
    /// The duration of the call, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replies: Option<[ReplyRecord; 1]>,
}

impl GatewayEmulator {
    /// Takes at most `max` webhooks that were due by the last [`GatewayEmulator::advance`], earliest first. The
    /// remaining webhooks wait in the outbox, where they take little memory.
    pub(crate) fn take_due_posts(&mut self, max: usize) -> Vec<WebhookPost> {
        let mut posts = Vec::new();
        while posts.len() < max {
            let Some(WaitingWebhook { number, notice, .. }) = self.outbox.take_next_due(self.now) else { break };
            let message = self.messages.message_at(notice.message);
            // The receiver must not get an older status after a newer one.
            if notice.attempts > 0 && message.state != notice.state {
                self.outbox.finish_attempt(number);
                continue;
            }
            // Only messages with a webhook address have webhooks, so the default is never used.
            let url = message.hook.clone().unwrap_or_default();
            posts.push(WebhookPost { webhook: number, url, body: self.render_payload(message, notice) });
        }
        posts
    }

    /// Records the result of an attempt. After status 200, or if the request was refused, the webhook ends; otherwise
    /// it is retried as the scenario says.
    pub(crate) fn record_outcome(
        &mut self,
        webhook: u64,
        outcome: WebhookOutcome,
        now: Timestamp,
        lines: &mut JournalLines,
    ) {
        let Some(notice) = self.outbox.finish_attempt(webhook) else { return };
        self.now = self.now.max(VirtualTime::from_timestamp(now));
        let attempt = notice.attempts as usize + 1;
        lines.push_line(&JournalLine::Webhook {
            at: self.now,
            msg_id: msg_id_of(notice.message),
            url: self.messages.message_at(notice.message).hook.as_deref().unwrap_or_default(),
            status: notice.state.phase.status_name(&self.scenario),
            attempt,
            result: &outcome,
        });
        let wait = match outcome {
            WebhookOutcome::Answered(200) | WebhookOutcome::Refused(_) => None,
            WebhookOutcome::Answered(_) | WebhookOutcome::Failed(_) => {
                self.scenario.webhooks.retry.get(notice.attempts as usize)
            }
        };
        if let Some(wait) = wait {
            let notice = StatusNotice { attempts: notice.attempts + 1, ..notice };
            let due = self.now.saturating_add(*wait);
            self.outbox.waiting.push(Reverse(WaitingWebhook { due, number: webhook, notice }));
        }
    }

    /// Whether webhooks are in flight.
    pub(crate) fn awaits_receivers(&self) -> bool {
        !self.outbox.in_flight.is_empty()
    }

    /// Queues a webhook for a state of a message, if the message has an address and no fault prevents it.
    pub(crate) fn enqueue_notice(&mut self, index: u32, state: LifecycleState) {
        let message = self.messages.message_at(index);
        if message.hook.is_none() {
            return;
        }
        let notice = StatusNotice { message: index, state, attempts: 0 };
        match message.condition_facts().and_then(|facts| faults::decide_webhook_fault(&self.scenario, facts)) {
            None => self.outbox.enqueue(state.since, notice),
            Some(WebhookFault::Twice) => {
                self.outbox.enqueue(state.since, notice);
                self.outbox.enqueue(state.since, notice);
            }
            Some(WebhookFault::Late(by)) => self.outbox.enqueue(state.since.saturating_add(by), notice),
            Some(WebhookFault::Reordered) => {
                let next = self.lifecycle(message).and_then(|life| life.next_reported_state(state));
                self.outbox.enqueue(next.map_or(state.since, |next| next.since.saturating_add(REORDER_DELAY)), notice);
            }
            Some(WebhookFault::Lost) => {}
        }
    }

    /// Queues a webhook for the failure of an earlier channel, if a webhook can name that channel.
    pub(crate) fn enqueue_channel_failure(&mut self, index: u32, failed: LifecycleState) {
        if CHANNEL_TYPES.contains(&self.type_name(self.messages.message_at(index), failed)) {
            self.enqueue_notice(index, failed);
        }
    }

    /// Counts a message that was rejected on arrival, and queues its webhook.
    pub(crate) fn record_rejection(&mut self, index: u32, refusal: &OperationError) {
        let message = self.messages.message_at(index);
        let state = message.state;
        if message.hook.is_some() {
            self.outbox.refusals.insert(index, refusal.clone());
        }
        self.counts.count_final_status(state.phase.status_name(&self.scenario));
        self.enqueue_notice(index, state);
    }

    fn render_payload(&self, message: &SandboxMessage, notice: StatusNotice) -> Vec<u8> {
        let StatusNotice { state, .. } = notice;
        let msg_id = msg_id_of(notice.message).to_string();
        let stage = self.current_stage(message, state);
        let behaviour = stage.and_then(|stage| {
            let pattern = self.lifecycle(message)?.choose_pattern(stage.channel);
            Some(pattern.resolve_behaviour(&self.scenario))
        });
        let call = behaviour
            .filter(|_| state.phase.is_success() && stage.is_some_and(|stage| stage.channel == Channel::Voice));
        let payload = WebhookPayload {
            success: state.phase.is_success(),
            id: message.id.as_ref().map_or_else(|| msg_id.clone(), ClientId::to_string),
            msg_id,
            channel: Some(self.type_name(message, state)).filter(|label| CHANNEL_TYPES.contains(label)),
            status: state.phase.status_name(&self.scenario),
            error: self.failure_reason(notice),
            updated: WireTime(state.since),
            reply: call.filter(|_| stage.is_some_and(|stage| stage.dtmf)).and_then(|behaviour| behaviour.digit),
            duration: call.and_then(|behaviour| behaviour.duration).map(|duration| duration.as_secs()),
            request_id: message.request.map(format_request_id),
            replies: self.reply_records(message, state),
        };
        // Serializing strings, numbers and booleans cannot fail.
        serde_json::to_vec(&payload).expect("a payload without maps is always JSON")
    }

    /// The reason for the rejection or failure of a message. `None` for other states.
    fn failure_reason(&self, notice: StatusNotice) -> Option<String> {
        match notice.state.phase {
            Phase::Rejected => self.outbox.refusals.get(&notice.message).map(|refusal| refusal.text().to_owned()),
            Phase::Failed(DeliveryFailure::Expired) => Some("Lifetime ended before delivery".to_owned()),
            Phase::Failed(DeliveryFailure::ByPattern(_)) => Some("Not delivered".to_owned()),
            Phase::Queued | Phase::Accepted | Phase::Delivered | Phase::Read | Phase::Replied => None,
        }
    }
}
