//! Delivery-status webhooks (contract 2.4 and 6): which are due, what they say, and when they are tried again.
//!
//! It sends nothing. A webhook that waits is small, because a million of them may; what it says is
//! written when it is due.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::domain::Channel;
use crate::sandbox::faults::decision;
use crate::sandbox::journal::{Line, Lines};
use crate::sandbox::platform::{
    Failure, Message, Moment, Phase, Platform, Refusal, ReplyRecord, State, WireMoment, msg_id, request_id,
};
use crate::sandbox::request::ClientId;
use crate::sandbox::scenario::WebhookFault;

/// How long after what tells of the next state a webhook comes that is reordered.
const BEHIND: Duration = Duration::from_secs(1);

/// A webhook that is to be sent now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    /// Its number; tries of the same webhook share it.
    pub webhook: u64,
    /// The address, to the letter as the client gave it.
    pub url: Arc<str>,
    /// The payload (contract 2.4).
    pub body: Vec<u8>,
}

/// What became of a try to send a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PostOutcome {
    /// The receiver answered with this HTTP status; 200 acknowledges it (contract 6.1).
    Answered(u16),
    /// There was no answer, for this reason.
    Failed(String),
    /// It was not tried and never will be, for this reason.
    Refused(String),
}

/// What a webhook is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct News {
    /// The index of the message.
    message: u32,
    state: State,
    /// How often it was tried.
    tries: u32,
}

/// A webhook that waits, in the order in which they are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    due: Moment,
    number: u64,
    news: News,
}

/// The webhooks that wait, and those whose try has not ended.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: BinaryHeap<Reverse<Waiting>>,
    in_flight: HashMap<u64, News>,
    /// For each message with a webhook in flight, those that wait for its end: a message's news come in order.
    held: HashMap<u32, Vec<Waiting>>,
    last: u64,
    /// Why messages were refused that have a webhook.
    refusals: HashMap<u32, Refusal>,
}

impl Outbox {
    /// When the next one is due.
    pub(crate) fn next_due(&self) -> Option<Moment> {
        self.waiting.peek().map(|Reverse(waiting)| waiting.due)
    }

    fn add(&mut self, due: Moment, news: News) {
        self.last += 1;
        self.waiting.push(Reverse(Waiting { due, number: self.last, news }));
    }

    fn take_due(&mut self, now: Moment) -> Option<Waiting> {
        loop {
            self.next_due().filter(|due| *due <= now)?;
            let Reverse(waiting) = self.waiting.pop()?;
            match self.held.entry(waiting.news.message) {
                Entry::Occupied(mut held) => held.get_mut().push(waiting),
                Entry::Vacant(free) => {
                    free.insert(Vec::new());
                    self.in_flight.insert(waiting.number, waiting.news);
                    return Some(waiting);
                }
            }
        }
    }

    /// The try of a webhook ended, whatever became of it.
    fn ended(&mut self, webhook: u64) -> Option<News> {
        let news = self.in_flight.remove(&webhook)?;
        let held = self.held.remove(&news.message).unwrap_or_default();
        self.waiting.extend(held.into_iter().map(Reverse));
        Some(news)
    }
}

/// The values of `type` in a payload; of anything else it has none (contract 2.4).
const TYPES: [&str; 4] = ["sms", "viber", "voice", "rcs"];

/// The payload (contract 2.4).
#[derive(Serialize)]
struct Payload<'a> {
    success: bool,
    id: String,
    msg_id: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    channel: Option<&'static str>,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    updated: WireMoment,
    /// The digit that the recipient pressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<char>,
    /// Seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replies: Option<[ReplyRecord; 1]>,
}

impl Platform {
    /// The webhooks that are due up to the last [`Platform::advance`], the earliest first.
    ///
    /// Whoever takes them says how many there is room for; the others wait here, where they are small.
    pub(crate) fn due_posts(&mut self, room: usize) -> Vec<Post> {
        let mut posts = Vec::new();
        while posts.len() < room {
            let Some(Waiting { number, news, .. }) = self.outbox.take_due(self.now) else { break };
            let message = self.messages.at(news.message);
            // What is newer says more, and nobody may hear of the older after it.
            if news.tries > 0 && message.state != news.state {
                self.outbox.ended(number);
                continue;
            }
            // Only a message with an address has news.
            let url = message.hook.clone().unwrap_or_default();
            posts.push(Post { webhook: number, url, body: self.body(message, news) });
        }
        posts
    }

    /// Takes note of how a try ended: 200 ends it, anything else is tried again as the scenario says.
    pub(crate) fn posted(&mut self, webhook: u64, outcome: PostOutcome, now: Timestamp, lines: &mut Lines) {
        let Some(news) = self.outbox.ended(webhook) else { return };
        self.now = self.now.max(Moment::of(now));
        let attempt = news.tries as usize + 1;
        lines.push(&Line::Webhook {
            at: self.now,
            msg_id: msg_id(news.message),
            url: self.messages.at(news.message).hook.as_deref().unwrap_or_default(),
            status: news.state.phase.word(&self.scenario),
            attempt,
            result: &outcome,
        });
        let wait = match outcome {
            PostOutcome::Answered(200) | PostOutcome::Refused(_) => None,
            PostOutcome::Answered(_) | PostOutcome::Failed(_) => self.scenario.webhooks.retry.get(news.tries as usize),
        };
        if let Some(wait) = wait {
            let news = News { tries: news.tries + 1, ..news };
            let due = self.now.after(*wait);
            self.outbox.waiting.push(Reverse(Waiting { due, number: webhook, news }));
        }
    }

    /// Whether webhooks were taken of which nothing was heard yet.
    pub(crate) fn awaits_receivers(&self) -> bool {
        !self.outbox.in_flight.is_empty()
    }

    /// Announces a state of a message, if the message has an address for it, as well as the scenario allows.
    pub(crate) fn announce(&mut self, index: u32, state: State) {
        let message = self.messages.at(index);
        if message.hook.is_none() {
            return;
        }
        let news = News { message: index, state, tries: 0 };
        match message.facts().and_then(|facts| decision::webhook(&self.scenario, facts)) {
            None => self.outbox.add(state.since, news),
            Some(WebhookFault::Twice) => {
                self.outbox.add(state.since, news);
                self.outbox.add(state.since, news);
            }
            Some(WebhookFault::Late(by)) => self.outbox.add(state.since.after(by), news),
            Some(WebhookFault::Reordered) => {
                let next = self.life(message).and_then(|life| life.after(state));
                self.outbox.add(next.map_or(state.since, |next| next.since.after(BEHIND)), news);
            }
            Some(WebhookFault::Lost) => {}
        }
    }

    /// Announces the failure of an earlier channel, if a webhook can name that channel.
    pub(crate) fn announce_channel(&mut self, index: u32, failed: State) {
        if TYPES.contains(&self.label(self.messages.at(index), failed)) {
            self.announce(index, failed);
        }
    }

    /// Counts a message that was refused at intake, and lets that be told.
    pub(crate) fn reject(&mut self, index: u32, refusal: &Refusal) {
        let message = self.messages.at(index);
        let state = message.state;
        if message.hook.is_some() {
            self.outbox.refusals.insert(index, refusal.clone());
        }
        self.counts.ended(state.phase.word(&self.scenario));
        self.announce(index, state);
    }

    fn body(&self, message: &Message, news: News) -> Vec<u8> {
        let News { state, .. } = news;
        let msg_id = msg_id(news.message).to_string();
        let stage = self.stage(message, state);
        let behaviour = stage.and_then(|stage| {
            let rule = self.life(message)?.pattern(stage.channel);
            Some(rule.behaviour(&self.scenario))
        });
        let called =
            behaviour.filter(|_| state.phase.is_good() && stage.is_some_and(|stage| stage.channel == Channel::Voice));
        let payload = Payload {
            success: state.phase.is_good(),
            id: message.id.as_ref().map_or_else(|| msg_id.clone(), ClientId::to_string),
            msg_id,
            channel: Some(self.label(message, state)).filter(|label| TYPES.contains(label)),
            status: state.phase.word(&self.scenario),
            error: self.error(news),
            updated: WireMoment(state.since),
            reply: called.filter(|_| stage.is_some_and(|stage| stage.dtmf)).and_then(|behaviour| behaviour.digit),
            duration: called.and_then(|behaviour| behaviour.duration).map(|duration| duration.as_secs()),
            request_id: message.request.map(request_id),
            replies: self.replies(message, state),
        };
        // It consists of strings, numbers and truth values; none of them can fail to be written.
        serde_json::to_vec(&payload).expect("a payload without maps is always JSON")
    }

    /// Why a message was rejected or failed.
    fn error(&self, news: News) -> Option<String> {
        match news.state.phase {
            Phase::Rejected => self.outbox.refusals.get(&news.message).map(|refusal| refusal.text().to_owned()),
            Phase::Failed(Failure::Expired) => Some("Lifetime ended before delivery".to_owned()),
            Phase::Failed(Failure::As(_)) => Some("Not delivered".to_owned()),
            Phase::Queued | Phase::Accepted | Phase::Delivered | Phase::Read | Phase::Replied => None,
        }
    }
}
