//! Operations: accepting messages, lookups and verification calls, and answering status and template requests.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    ChannelStage, Charge, CodeCall, GatewayEmulator, ItemOutcome, LifecycleState, MessageLifecycle, OperationError,
    OperationOrigin, Phase, ReplyRecord, ResultData, SandboxMessage, SendResult, StatusRecord, WireTime, messages,
    msg_id_of,
};
use crate::journal::ChargeReason;
use crate::request::{ClientId, MessageInquiry, OperationType, RequestItem, SendRequest, TemplateCall};
use crate::scenario::{Blindness, MessageFacts, RandomDraw};
use campaign_core::domain::{Amount, Channel, Phone};

/// The decision number for the digits of verification calls.
const CODE_DECISION: u64 = 10 << 48;

/// The initial values of a message.
struct InitialMessage<'a> {
    phase: Phase,
    /// Empty if the message was rejected.
    stages: &'a [ChannelStage],
    hook: Option<Arc<str>>,
}

impl GatewayEmulator {
    /// Accepts a message for each recipient of an item, if the account may send it and can pay for it.
    pub(crate) fn accept_send(
        &mut self,
        item: &RequestItem,
        send: &SendRequest,
        origin: OperationOrigin,
    ) -> Result<ItemOutcome, OperationError> {
        let recipients = u32::try_from(item.phones.len()).unwrap_or(u32::MAX);
        let price = messages::highest_price(&send.stages, &self.scenario.prices);
        let account = &mut self.accounts[origin.account as usize];
        account.check_allowed(send)?;
        let balance_before = account.balance();
        let total_price = price.saturating_mul(recipients.into());
        account.charge(total_price)?;
        self.counts.reserve_funds(total_price);
        let hook = self.status_address(item, origin);
        let first =
            self.store_messages(item, origin, &InitialMessage { phase: Phase::Queued, stages: &send.stages, hook });
        let parts = messages::most_parts(&send.stages);
        let total_parts = u64::from(parts) * u64::from(recipients);
        self.counts.messages += u64::from(recipients);
        self.counts.parts += total_parts;
        let msg_id = msg_id_of(first);
        let id = item.id.clone().unwrap_or(ClientId::Whole(msg_id));
        let result = Ok(ResultData::Sent(SendResult { id, msg_id, data: 1, parts: total_parts }));
        let charge = Some(Charge { reason: ChargeReason::Reserved, amount: price, balance_before });
        Ok(ItemOutcome { result, first: Some(first), parts: Some(parts), charge })
    }

    /// Looks up a phone number.
    pub(crate) fn look_up_number(
        &mut self,
        item: &RequestItem,
        phone: Phone,
        origin: OperationOrigin,
    ) -> Result<ItemOutcome, OperationError> {
        let status = self.lookup_status(phone, origin);
        self.answer_at_once(item, Channel::Hlr, origin, |_, _| ResultData::Record(lookup_record(phone, &status)))
    }

    /// The final status of a lookup. The status is determined in advance, because the answer contains it.
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

    /// Calls a phone number from a number whose last four digits are the code.
    pub(crate) fn make_code_call(
        &mut self,
        item: &RequestItem,
        origin: OperationOrigin,
    ) -> Result<ItemOutcome, OperationError> {
        let draw = RandomDraw { seed: self.scenario.seed, decision: CODE_DECISION };
        self.answer_at_once(item, Channel::CallOtp, origin, |first, price| {
            ResultData::CodeCall(CodeCall { code: draw_code(draw, msg_id_of(first)), price: price.trim_decimals() })
        })
    }

    /// Rejects an operation. On the asynchronous endpoint, only the message's status and webhook report the rejection.
    pub(crate) fn reject_operation(
        &mut self,
        item: &RequestItem,
        refusal: OperationError,
        origin: OperationOrigin,
    ) -> ItemOutcome {
        let has_status = origin.request.is_some() && item.kind.reaches_a_phone();
        let first = has_status.then(|| {
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

    /// Charges and answers an operation immediately, and stores a message whose status can be queried.
    fn answer_at_once(
        &mut self,
        item: &RequestItem,
        channel: Channel,
        origin: OperationOrigin,
        answer: impl FnOnce(u32, Amount) -> ResultData,
    ) -> Result<ItemOutcome, OperationError> {
        let stages = [ChannelStage::new(channel, 1, None)];
        let price = stages[0].price(&self.scenario.prices);
        let account = &mut self.accounts[origin.account as usize];
        let balance_before = account.balance();
        account.charge(price)?;
        self.counts.reserve_funds(price);
        self.counts.settle_funds(channel, price, price);
        let first =
            self.store_messages(item, origin, &InitialMessage { phase: Phase::Queued, stages: &stages, hook: None });
        let charge = Some(Charge { reason: ChargeReason::Charged, amount: price, balance_before });
        Ok(ItemOutcome { result: Ok(answer(first, price)), first: Some(first), parts: None, charge })
    }

    /// The webhook address for the statuses of an accepted message.
    fn status_address(&self, item: &RequestItem, origin: OperationOrigin) -> Option<Arc<str>> {
        let notify = || self.accounts[origin.account as usize].notify.clone();
        match (item.kind, origin.request) {
            // The gateway ignores the hook of a pipeline (contract 6.4 and 6.5).
            (OperationType::Pipeline, Some(_)) if self.scenario.webhooks.async_pipeline => {
                item.hook.clone().or_else(notify)
            }
            (OperationType::Pipeline, _) => notify(),
            _ => item.hook.clone(),
        }
    }

    /// Stores a message for each recipient, or one message without a recipient, and returns the index of the first
    /// message.
    fn store_messages(&mut self, item: &RequestItem, origin: OperationOrigin, initial: &InitialMessage) -> u32 {
        let message = SandboxMessage {
            id: item.id.clone(),
            hook: initial.hook.clone(),
            phone: None,
            at: origin.at,
            state: LifecycleState::at_intake(initial.phase, origin.at),
            request: origin.request,
            envelope: origin.envelope,
            plan: self.plans.intern(initial.stages),
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

/// The number of messages that an item creates: one for each recipient, or one if no recipient could be read.
fn count_messages(item: &RequestItem) -> u32 {
    u32::try_from(item.phones.len().max(1)).unwrap_or(u32::MAX)
}

/// The four digits of a verification call.
fn draw_code(draw: RandomDraw, msg_id: u64) -> String {
    format!("{:04}", draw.draw_number(msg_id) % 10_000)
}

/// The decision number for made-up identifiers.
const MADE_UP_ID_DECISION: u64 = 9 << 48;

impl GatewayEmulator {
    /// The status of a message, as far as the scenario makes it visible.
    pub(crate) fn status_record(
        &self,
        inquiry: &MessageInquiry,
        origin: OperationOrigin,
    ) -> Result<ResultData, OperationError> {
        match self.scenario.status_blind {
            Some(Blindness::Denies) => return Err(OperationError::NOT_FOUND),
            Some(Blindness::Affirms) => return Ok(ResultData::Status(self.made_up_status(inquiry))),
            None => {}
        }
        let (index, message) = self.messages.find_message(origin.account, inquiry).ok_or(OperationError::NOT_FOUND)?;
        if message.at.saturating_add(self.scenario.status_lag) > self.now {
            return Err(OperationError::NOT_FOUND);
        }
        let msg_id = msg_id_of(index).to_string();
        Ok(ResultData::Status(StatusRecord {
            id: message.id.as_ref().map_or_else(|| msg_id.clone(), ClientId::to_string),
            msg_id,
            channel: self.type_name(message, message.state),
            status: message.state.phase.status_name(&self.scenario).to_owned(),
            updated: WireTime(message.state.since),
            replies: self.reply_records(message, message.state),
        }))
    }

    /// The reply to a message, if the message has a reply in this state.
    pub(crate) fn reply_records(&self, message: &SandboxMessage, state: LifecycleState) -> Option<[ReplyRecord; 1]> {
        let life = self.lifecycle(message).filter(|_| state.phase == Phase::Replied)?;
        let stage = self.current_stage(message, state)?;
        let reply = life.choose_pattern(stage.channel).resolve_behaviour(&self.scenario).reply.as_ref()?;
        Some([ReplyRecord { datetime: WireTime(state.since), message: reply.message.clone() }])
    }

    /// The status that a gateway makes up if it claims to know every message.
    fn made_up_status(&self, inquiry: &MessageInquiry) -> StatusRecord {
        let draw = RandomDraw { seed: self.scenario.seed, decision: MADE_UP_ID_DECISION };
        let make_up_id = |known: &ClientId| {
            let drawn = known.to_string().bytes().fold(0, |sum, byte| draw.draw_number(sum ^ u64::from(byte)));
            (900_000_000 + drawn % 100_000_000).to_string()
        };
        let (id, msg_id) = match inquiry {
            MessageInquiry::Id(id) => (id.to_string(), make_up_id(id)),
            MessageInquiry::MsgId(msg_id) => (make_up_id(msg_id), msg_id.to_string()),
        };
        let status = Phase::Queued.status_name(&self.scenario).to_owned();
        StatusRecord { id, msg_id, channel: "sms", status, updated: WireTime(self.now), replies: None }
    }

    /// Executes an operation on templates.
    pub(crate) fn run_template_call(
        &mut self,
        call: &TemplateCall,
        origin: OperationOrigin,
    ) -> Result<ResultData, OperationError> {
        let now = origin.at;
        let templates = &mut self.accounts[origin.account as usize].templates;
        let deletion_record = |count: u64| json!({ "deleted": count });
        let record = match call {
            TemplateCall::Create { name, text } => templates.create_sms(name, text, now)?,
            TemplateCall::List => templates.list_sms(),
            TemplateCall::Delete(id) => deletion_record(templates.sms.delete_template(*id, None)),
            TemplateCall::CreateViber { signature, text } => templates.create_viber(signature, text, now)?,
            TemplateCall::ListViber => templates.list_viber(&self.scenario, now),
            TemplateCall::DeleteViber { id, text } => {
                deletion_record(templates.viber.delete_template(*id, text.as_deref()))
            }
        };
        Ok(ResultData::Record(record))
    }
}

/// The record of a looked-up number with this status (contract 4.3 `hlr`). Every number belongs to one fictitious
/// Ukrainian operator and always has the same record.
pub(crate) fn lookup_record(phone: Phone, status: &str) -> Value {
    const OPERATOR: u64 = 25_501;
    const SUBSCRIBERS: u64 = 10_000_000_000;
    let country = json!({ "name": "Ukraine", "prefix": 380 });
    json!({
        "phone": phone.to_u64(),
        "status": status,
        "imsi": OPERATOR * SUBSCRIBERS + phone.to_u64() % SUBSCRIBERS,
        "mccmnc": OPERATOR,
        "ported": false,
        "network": { "origin": { "name": "Sandbox Mobile", "prefix": 50, "country": country } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::messages::FIRST_MSG_ID;

    #[test]
    fn call_code_has_four_digits() {
        for msg_id in FIRST_MSG_ID..FIRST_MSG_ID + 20_000 {
            assert_eq!(draw_code(RandomDraw { seed: 0, decision: CODE_DECISION }, msg_id).len(), 4);
        }
    }
}
