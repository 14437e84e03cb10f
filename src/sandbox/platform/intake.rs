//! Taking messages: what is checked against the account, reserved, kept, or refused.

use std::sync::Arc;

use super::plan;
use super::{
    Chance, Charge, CodeCall, Life, Message, MessageFacts, Origin, Outcome, Payload, Phase, Platform, Refusal,
    SendResult, Stage, State, msg_id, number_record,
};
use crate::domain::{Amount, Channel, Phone};
use crate::sandbox::journal::Reason;
use crate::sandbox::request::{ClientId, Item, Kind, Load};

/// The decision that the digits of code calls are drawn for.
const CODE: u64 = 10 << 48;

/// What a message begins with.
struct Beginning<'a> {
    phase: Phase,
    /// None if it was refused.
    stages: &'a [Stage],
    hook: Option<Arc<str>>,
}

impl Platform {
    /// Takes a message for each recipient of an item, if the account may send it and can pay for it.
    pub(crate) fn send(&mut self, item: &Item, load: &Load, origin: Origin) -> Result<Outcome, Refusal> {
        let recipients = u32::try_from(item.phones.len()).unwrap_or(u32::MAX);
        let each = plan::dearest(&load.stages, &self.scenario.prices);
        let account = &mut self.accounts[origin.account as usize];
        account.allows(load)?;
        let before = account.balance();
        let all = each.times(recipients.into());
        account.take(all)?;
        self.counts.reserve(all);
        let hook = self.hook(item, origin);
        let first = self.keep(item, origin, &Beginning { phase: Phase::Queued, stages: &load.stages, hook });
        let parts = plan::longest(&load.stages);
        let all_parts = u64::from(parts) * u64::from(recipients);
        self.counts.messages += u64::from(recipients);
        self.counts.parts += all_parts;
        let msg_id = msg_id(first);
        let id = item.id.clone().unwrap_or(ClientId::Whole(msg_id));
        let result = Ok(Payload::Sent(SendResult { id, msg_id, data: 1, parts: all_parts }));
        let charge = Some(Charge { reason: Reason::Reserved, each, before });
        Ok(Outcome { result, first: Some(first), parts: Some(parts), charge })
    }

    /// Looks a number up.
    pub(crate) fn look_up(&mut self, item: &Item, phone: Phone, origin: Origin) -> Result<Outcome, Refusal> {
        let status = self.lookup_status(phone, origin);
        self.answer_at_once(item, Channel::Hlr, origin, |_, _| Payload::Record(number_record(phone, &status)))
    }

    /// How a lookup ends, known at once: its answer tells what becomes of the message that it leaves.
    fn lookup_status(&self, phone: Phone, origin: Origin) -> String {
        let facts = MessageFacts { phone, envelope: origin.envelope.into(), endpoint: origin.endpoint() };
        let stages = [Stage::new(Channel::Hlr, 1, None)];
        let life = Life { scenario: &self.scenario, facts, stages: &stages, intake: origin.at };
        let mut state = State::at_intake(Phase::Queued, origin.at);
        while let Some(next) = life.next(state).filter(|_| !state.phase.is_final()) {
            state = next;
        }
        state.phase.word(&self.scenario).to_owned()
    }

    /// Calls a number from one whose last four digits are the code.
    pub(crate) fn call(&mut self, item: &Item, origin: Origin) -> Result<Outcome, Refusal> {
        let chance = Chance { seed: self.scenario.seed, decision: CODE };
        self.answer_at_once(item, Channel::CallOtp, origin, |first, price| {
            Payload::CodeCall(CodeCall { code: code(chance, msg_id(first)), price: price.shortest() })
        })
    }

    /// Refuses an operation; on the asynchronous endpoint nobody hears of it, so its status and its hook have to tell.
    pub(crate) fn refuse(&mut self, item: &Item, refusal: Refusal, origin: Origin) -> Outcome {
        let unheard = origin.request.is_some() && item.kind.reaches_a_phone();
        let first = unheard.then(|| {
            let hook = item.hook.clone();
            let first = self.keep(item, origin, &Beginning { phase: Phase::Rejected, stages: &[], hook });
            for recipient in 0..recipients(item) {
                self.reject(first + recipient, &refusal);
            }
            first
        });
        Outcome { first, ..Outcome::from(Err(refusal)) }
    }

    /// Charges what is answered at once; it leaves a message with a status nevertheless.
    fn answer_at_once(
        &mut self,
        item: &Item,
        channel: Channel,
        origin: Origin,
        answer: impl FnOnce(u32, Amount) -> Payload,
    ) -> Result<Outcome, Refusal> {
        let stages = [Stage::new(channel, 1, None)];
        let each = stages[0].price(&self.scenario.prices);
        let account = &mut self.accounts[origin.account as usize];
        let before = account.balance();
        account.take(each)?;
        self.counts.reserve(each);
        self.counts.settle(channel, each, each);
        let first = self.keep(item, origin, &Beginning { phase: Phase::Queued, stages: &stages, hook: None });
        let charge = Some(Charge { reason: Reason::Charged, each, before });
        Ok(Outcome { result: Ok(answer(first, each)), first: Some(first), parts: None, charge })
    }

    /// Where the statuses of a message that was taken go.
    fn hook(&self, item: &Item, origin: Origin) -> Option<Arc<str>> {
        let notify = || self.accounts[origin.account as usize].notify.clone();
        match (item.kind, origin.request) {
            // The gateway does not keep the hook of a pipeline (contract 6.4 and 6.5).
            (Kind::Pipeline, Some(_)) if self.scenario.webhooks.async_pipeline => item.hook.clone().or_else(notify),
            (Kind::Pipeline, _) => notify(),
            _ => item.hook.clone(),
        }
    }

    /// Keeps a message for each recipient, at least one, and gives the index of the first.
    fn keep(&mut self, item: &Item, origin: Origin, beginning: &Beginning) -> u32 {
        let message = Message {
            id: item.id.clone(),
            hook: beginning.hook.clone(),
            phone: None,
            at: origin.at,
            state: State::at_intake(beginning.phase, origin.at),
            request: origin.request,
            envelope: origin.envelope,
            plan: self.plans.number(beginning.stages),
            account: origin.account,
            kind: item.kind,
        };
        let first = self.messages.count();
        for recipient in 0..recipients(item) {
            let phone = item.phones.get(recipient as usize).copied();
            let index = self.messages.add(Message { phone, ..message.clone() });
            self.schedule(index);
        }
        first
    }
}

/// How many messages an item is: one for each recipient, and one if none of them could be read.
fn recipients(item: &Item) -> u32 {
    u32::try_from(item.phones.len().max(1)).unwrap_or(u32::MAX)
}

/// The four digits of a code call.
fn code(chance: Chance, msg_id: u64) -> String {
    format!("{:04}", chance.draw(msg_id) % 10_000)
}

#[cfg(test)]
mod tests {
    use super::super::messages::FIRST_MSG_ID;
    use super::*;

    #[test]
    fn a_code_has_four_digits() {
        for msg_id in FIRST_MSG_ID..FIRST_MSG_ID + 20_000 {
            assert_eq!(code(Chance { seed: 0, decision: CODE }, msg_id).len(), 4);
        }
    }
}
