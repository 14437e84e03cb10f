//! What happens by itself as time passes: each message moves on when its next state is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use jiff::Timestamp;

use super::{Life, Message, Moment, Phase, Platform, Stage, State, msg_id, plan};
use crate::domain::Amount;
use crate::sandbox::journal::{Line, Lines, Reason};

/// When which message moves on; a message waits for one moment at a time.
#[derive(Debug, Default)]
pub(crate) struct Agenda(BinaryHeap<Reverse<(Moment, u32)>>);

impl Agenda {
    fn add(&mut self, due: Moment, index: u32) {
        self.0.push(Reverse((due, index)));
    }

    fn next(&self) -> Option<(Moment, u32)> {
        self.0.peek().map(|Reverse(event)| *event)
    }

    fn take_due(&mut self, now: Moment) -> Option<(Moment, u32)> {
        self.next().filter(|(due, _)| *due <= now)?;
        self.0.pop().map(|Reverse(event)| event)
    }
}

impl Platform {
    /// Executes at most `limit` events that are due up to `now`, in the order of time; tells whether more are.
    ///
    /// Time never runs backwards: an earlier `now` changes nothing.
    pub(crate) fn advance(&mut self, now: Timestamp, limit: usize, lines: &mut Lines) -> bool {
        let now = Moment::of(now);
        for _ in 0..limit {
            let Some((due, index)) = self.agenda.take_due(now) else {
                self.now = self.now.max(now);
                return false;
            };
            self.now = self.now.max(due);
            self.step(index, lines);
        }
        true
    }

    /// When the next event or webhook is due; it may be past.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let event = self.agenda.next().map(|(due, _)| due);
        event.into_iter().chain(self.outbox.next_due()).min().map(Moment::timestamp)
    }

    /// Executes at most `limit` events whenever they are due; tells whether any is left. Webhooks wait to be taken.
    pub(crate) fn run_out(&mut self, limit: usize, lines: &mut Lines) -> bool {
        for _ in 0..limit {
            let Some((due, index)) = self.agenda.take_due(Moment::END) else { return false };
            self.now = self.now.max(due);
            self.step(index, lines);
        }
        true
    }

    /// What a message's life depends on; nothing if it has no recipient and was refused for that.
    pub(crate) fn life(&self, message: &Message) -> Option<Life<'_>> {
        let stages = self.plans.stages(message.plan);
        Some(Life { scenario: &self.scenario, facts: message.facts()?, stages, intake: message.at })
    }

    /// Waits for a message's next state, if it has one.
    pub(crate) fn schedule(&mut self, index: u32) {
        let message = self.messages.at(index);
        let next = self.life(message).and_then(|life| life.next(message.state));
        if let Some(next) = next {
            self.agenda.add(next.since, index);
        }
    }

    /// Moves a message on to the state that is due.
    fn step(&mut self, index: u32, lines: &mut Lines) {
        let message = self.messages.at(index);
        let before = message.state;
        let Some(life) = self.life(message) else { return };
        let Some(state) = life.next(before) else { return };
        // `status` never tells how a channel failed before another: the next one is tried at the same moment.
        if let Some(stage) = self.stage(message, before).filter(|_| state.stage > before.stage) {
            let failed = State { since: state.since, phase: Phase::Failed(life.failure(stage)), ..before };
            self.write_status(index, failed, lines);
            if self.scenario.webhooks.intermediate {
                self.announce_channel(index, failed);
            }
        }
        self.messages.set_state(index, state);
        self.write_status(index, state, lines);
        if state.phase.is_final() {
            self.count(index, before.phase, state);
            self.settle(index, state, lines);
            self.announce(index, state);
        }
        self.schedule(index);
    }

    /// Writes a state that a message is in or was in.
    fn write_status(&self, index: u32, state: State, lines: &mut Lines) {
        let message = self.messages.at(index);
        lines.push(&Line::Status {
            at: state.since,
            msg_id: msg_id(index),
            id: message.id.as_ref(),
            channel: self.label(message, state),
            status: state.phase.word(&self.scenario),
        });
    }

    fn count(&mut self, index: u32, before: Phase, state: State) {
        if before.is_final() {
            self.counts.left(before.word(&self.scenario));
        }
        self.counts.ended(state.phase.word(&self.scenario));
        if let Some(channel) = self.stage(self.messages.at(index), state).map(|stage| stage.channel) {
            self.counts.moved(channel, state.phase);
        }
    }

    /// Charges a message for the stage that ended its delivery, and gives back what was reserved beyond (contract 4.3).
    fn settle(&mut self, index: u32, state: State, lines: &mut Lines) {
        let message = self.messages.at(index);
        let charged = match state.phase {
            // A lookup and a code call are charged at once.
            _ if !message.kind.is_message() => return,
            Phase::Delivered => true,
            Phase::Failed(_) => self.scenario.charge_undelivered,
            Phase::Queued | Phase::Accepted | Phase::Read | Phase::Replied | Phase::Rejected => return,
        };
        let stages = self.plans.stages(message.plan);
        let Some(stage) = stages.get(usize::from(state.stage)) else { return };
        let reserved = plan::dearest(stages, &self.scenario.prices);
        let spent = if charged { stage.price(&self.scenario.prices) } else { Amount::default() };
        self.counts.settle(stage.channel, reserved, spent);
        let returned = reserved.minus(spent);
        if returned > Amount::default() {
            let account = &mut self.accounts[message.account as usize];
            account.give_back(returned);
            let amount = Amount::default().minus(returned);
            let line = Line::charge(state.since, msg_id(index), Reason::Returned, amount, account.balance());
            lines.push(&line);
        }
    }

    /// The stage that a state belongs to.
    pub(crate) fn stage(&self, message: &Message, state: State) -> Option<&Stage> {
        self.plans.stages(message.plan).get(usize::from(state.stage))
    }

    /// The `type` that a state tells: the channel that is tried, or the operation's if none was.
    pub(crate) fn label(&self, message: &Message, state: State) -> &'static str {
        self.stage(message, state).map_or(message.kind.name(), |stage| stage.channel.name())
    }
}
