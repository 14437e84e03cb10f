//! Taking messages: what is checked against the account, reserved, kept, or refused.

use std::sync::Arc;

use super::plan;
use super::{
    ChannelStage, Charge, CodeCall, GatewayEmulator, ItemOutcome, LifecycleState, MessageFacts, MessageLifecycle,
    OperationError, OperationOrigin, Phase, RandomDraw, ResultData, SandboxMessage, SendResult, lookup_record,
    msg_id_of,
};
use crate::domain::{Amount, Channel, Phone};
use crate::sandbox::journal::ChargeReason;
use crate::sandbox::request::{ClientId, Kind, RequestItem, SendRequest};

/// The decision that the digits of code calls are drawn for.
const CODE_DECISION: u64 = 10 << 48;

/// What a message begins with.
struct InitialMessage<'a> {
    phase: Phase,
    /// None if it was refused.
    stages: &'a [ChannelStage],
    hook: Option<Arc<str>>,
}

impl GatewayEmulator {
    /// Takes a message for each recipient of an item, if the account may send it and can pay for it.
    pub(crate) fn accept_send(
        &mut self,
        item: &RequestItem,
        load: &SendRequest,
        origin: OperationOrigin,
    ) -> Result<ItemOutcome, OperationError> {
        let recipients = u32::try_from(item.phones.len()).unwrap_or(u32::MAX);
        let each = plan::highest_price(&load.stages, &self.scenario.prices);
        let account = &mut self.accounts[origin.account as usize];
        account.check_allowed(load)?;
        let before = account.balance();
        let all = each.saturating_mul(recipients.into());
        account.charge(all)?;
        self.counts.reserve_funds(all);
        let hook = self.status_address(item, origin);
        let first =
            self.store_messages(item, origin, &InitialMessage { phase: Phase::Queued, stages: &load.stages, hook });
        let parts = plan::most_parts(&load.stages);
        let all_parts = u64::from(parts) * u64::from(recipients);
        self.counts.messages += u64::from(recipients);
        self.counts.parts += all_parts;
        let msg_id = msg_id_of(first);
        let id = item.id.clone().unwrap_or(ClientId::Whole(msg_id));
        let result = Ok(ResultData::Sent(SendResult { id, msg_id, data: 1, parts: all_parts }));
        let charge = Some(Charge { reason: ChargeReason::Reserved, each, before });
        Ok(ItemOutcome { result, first: Some(first), parts: Some(parts), charge })
    }

    /// Looks a number up.
    pub(crate) fn look_up_number(
        &mut self,
        item: &RequestItem,
        phone: Phone,
        origin: OperationOrigin,
    ) -> Result<ItemOutcome, OperationError> {
        let status = self.lookup_status(phone, origin);
        self.answer_at_once(item, Channel::Hlr, origin, |_, _| ResultData::Record(lookup_record(phone, &status)))
    }

    /// How a lookup ends, known at once: its answer tells what becomes of the message that it leaves.
    fn lookup_status(&self, phone: Phone, origin: OperationOrigin) -> String {
        let facts = MessageFacts { phone, envelope: origin.envelope.into(), endpoint: origin.endpoint() };
        let stages = [ChannelStage::new(Channel::Hlr, 1, None)];
        let life = MessageLifecycle { scenario: &self.scenario, facts, stages: &stages, intake: origin.at };
        let mut state = LifecycleState::at_intake(Phase::Queued, origin.at);
        while let Some(next) = life.next_state(state).filter(|_| !state.phase.is_final()) {
            state = next;
        }
        state.phase.status_name(&self.scenario).to_owned()
    }

    /// Calls a number from one whose last four digits are the code.
    pub(crate) fn make_code_call(
        &mut self,
        item: &RequestItem,
        origin: OperationOrigin,
    ) -> Result<ItemOutcome, OperationError> {
        let chance = RandomDraw { seed: self.scenario.seed, decision: CODE_DECISION };
        self.answer_at_once(item, Channel::CallOtp, origin, |first, price| {
            ResultData::CodeCall(CodeCall { code: draw_code(chance, msg_id_of(first)), price: price.trim_decimals() })
        })
    }

    /// Refuses an operation; on the asynchronous endpoint nobody hears of it, so its status and its hook have to tell.
    pub(crate) fn reject_operation(
        &mut self,
        item: &RequestItem,
        refusal: OperationError,
        origin: OperationOrigin,
    ) -> ItemOutcome {
        let unheard = origin.request.is_some() && item.kind.reaches_a_phone();
        let first = unheard.then(|| {
            let hook = item.hook.clone();
            let first =
                self.store_messages(item, origin, &InitialMessage { phase: Phase::Rejected, stages: &[], hook });
            for recipient in 0..count_messages(item) {
                self.record_rejection(first + recipient, &refusal);
            }
            first
        });
        ItemOutcome { first, ..ItemOutcome::from(Err(refusal)) }
    }

    /// Charges what is answered at once; it leaves a message with a status nevertheless.
    fn answer_at_once(
        &mut self,
        item: &RequestItem,
        channel: Channel,
        origin: OperationOrigin,
        answer: impl FnOnce(u32, Amount) -> ResultData,
    ) -> Result<ItemOutcome, OperationError> {
        let stages = [ChannelStage::new(channel, 1, None)];
        let each = stages[0].price(&self.scenario.prices);
        let account = &mut self.accounts[origin.account as usize];
        let before = account.balance();
        account.charge(each)?;
        self.counts.reserve_funds(each);
        self.counts.settle_funds(channel, each, each);
        let first =
            self.store_messages(item, origin, &InitialMessage { phase: Phase::Queued, stages: &stages, hook: None });
        let charge = Some(Charge { reason: ChargeReason::Charged, each, before });
        Ok(ItemOutcome { result: Ok(answer(first, each)), first: Some(first), parts: None, charge })
    }

    /// Where the statuses of a message that was taken go.
    fn status_address(&self, item: &RequestItem, origin: OperationOrigin) -> Option<Arc<str>> {
        let notify = || self.accounts[origin.account as usize].notify.clone();
        match (item.kind, origin.request) {
            // The gateway does not keep the hook of a pipeline (contract 6.4 and 6.5).
            (Kind::Pipeline, Some(_)) if self.scenario.webhooks.async_pipeline => item.hook.clone().or_else(notify),
            (Kind::Pipeline, _) => notify(),
            _ => item.hook.clone(),
        }
    }

    /// Keeps a message for each recipient, at least one, and gives the index of the first.
    fn store_messages(&mut self, item: &RequestItem, origin: OperationOrigin, beginning: &InitialMessage) -> u32 {
        let message = SandboxMessage {
            id: item.id.clone(),
            hook: beginning.hook.clone(),
            phone: None,
            at: origin.at,
            state: LifecycleState::at_intake(beginning.phase, origin.at),
            request: origin.request,
            envelope: origin.envelope,
            plan: self.plans.intern(beginning.stages),
            account: origin.account,
            kind: item.kind,
        };
        let first = self.messages.len();
        for recipient in 0..count_messages(item) {
            let phone = item.phones.get(recipient as usize).copied();
            let index = self.messages.insert(SandboxMessage { phone, ..message.clone() });
            self.schedule_next_state(index);
        }
        first
    }
}

/// How many messages an item is: one for each recipient, and one if none of them could be read.
fn count_messages(item: &RequestItem) -> u32 {
    u32::try_from(item.phones.len().max(1)).unwrap_or(u32::MAX)
}

/// The four digits of a code call.
fn draw_code(chance: RandomDraw, msg_id: u64) -> String {
    format!("{:04}", chance.draw_number(msg_id) % 10_000)
}

#[cfg(test)]
mod tests {
    use super::super::messages::FIRST_MSG_ID;
    use super::*;

    #[test]
    fn call_code_has_four_digits() {
        for msg_id in FIRST_MSG_ID..FIRST_MSG_ID + 20_000 {
            assert_eq!(draw_code(RandomDraw { seed: 0, decision: CODE_DECISION }, msg_id).len(), 4);
        }
    }
}
