//! What an account asks about itself and its messages, and what it does with its templates.

use serde_json::json;

use super::{
    GatewayEmulator, LifecycleState, OperationError, OperationOrigin, Phase, RandomDraw, ReplyRecord, ResultData,
    SandboxMessage, StatusRecord, WireTime, msg_id_of,
};
use crate::sandbox::request::{ClientId, MessageQuery, TemplateCall};
use crate::sandbox::scenario::Blindness;

/// The decision that made-up identifiers are drawn for.
const MADE_UP_ID_DECISION: u64 = 9 << 48;

impl GatewayEmulator {
    /// The status of a message, as far as the scenario lets it be seen.
    pub(crate) fn status_record(
        &self,
        question: &MessageQuery,
        origin: OperationOrigin,
    ) -> Result<ResultData, OperationError> {
        match self.scenario.status_blind {
            Some(Blindness::Denies) => return Err(OperationError::NOT_FOUND),
            Some(Blindness::Affirms) => return Ok(ResultData::Status(self.made_up_status(question))),
            None => {}
        }
        let (index, message) = self.messages.find_message(origin.account, question).ok_or(OperationError::NOT_FOUND)?;
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

    /// The reply to a message that has one in this state.
    pub(crate) fn reply_records(&self, message: &SandboxMessage, state: LifecycleState) -> Option<[ReplyRecord; 1]> {
        let life = self.lifecycle(message).filter(|_| state.phase == Phase::Replied)?;
        let stage = self.current_stage(message, state)?;
        let reply = life.choose_pattern(stage.channel).resolve_behaviour(&self.scenario).reply.as_ref()?;
        Some([ReplyRecord { datetime: WireTime(state.since), message: reply.message.clone() }])
    }

    /// What a gateway says that takes every question for a message.
    fn made_up_status(&self, question: &MessageQuery) -> StatusRecord {
        let chance = RandomDraw { seed: self.scenario.seed, decision: MADE_UP_ID_DECISION };
        let made_up = |asked: &ClientId| {
            let drawn = asked.to_string().bytes().fold(0, |sum, byte| chance.draw_number(sum ^ u64::from(byte)));
            (900_000_000 + drawn % 100_000_000).to_string()
        };
        let (id, msg_id) = match question {
            MessageQuery::Id(id) => (id.to_string(), made_up(id)),
            MessageQuery::MsgId(msg_id) => (made_up(msg_id), msg_id.to_string()),
        };
        let status = Phase::Queued.status_name(&self.scenario).to_owned();
        StatusRecord { id, msg_id, channel: "sms", status, updated: WireTime(self.now), replies: None }
    }

    /// Does something with the account's templates.
    pub(crate) fn run_template_call(
        &mut self,
        call: &TemplateCall,
        origin: OperationOrigin,
    ) -> Result<ResultData, OperationError> {
        let now = origin.at;
        let templates = &mut self.accounts[origin.account as usize].templates;
        let deleted = |deleted: u64| json!({ "deleted": deleted });
        let told = match call {
            TemplateCall::Create { name, text } => templates.create_sms(name, text, now)?,
            TemplateCall::List => templates.list_sms(),
            TemplateCall::Delete(id) => deleted(templates.sms.delete_template(*id, None)),
            TemplateCall::CreateViber { signature, text } => templates.create_viber(signature, text, now)?,
            TemplateCall::ListViber => templates.list_viber(&self.scenario, now),
            TemplateCall::DeleteViber { id, text } => deleted(templates.viber.delete_template(*id, text.as_deref())),
        };
        Ok(ResultData::Record(told))
    }
}
