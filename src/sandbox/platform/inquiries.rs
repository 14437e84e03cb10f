//! What an account asks about itself and its messages, and what it does with its templates.

use serde_json::json;

use super::{
    Chance, Message, Origin, Payload, Phase, Platform, Refusal, ReplyRecord, State, StatusRecord, WireMoment, msg_id,
};
use crate::sandbox::request::{ClientId, Question, TemplateCall};
use crate::sandbox::scenario::Blindness;

/// The decision that made-up identifiers are drawn for.
const MADE_UP: u64 = 9 << 48;

impl Platform {
    /// The status of a message, as far as the scenario lets it be seen.
    pub(crate) fn status(&self, question: &Question, origin: Origin) -> Result<Payload, Refusal> {
        match self.scenario.status_blind {
            Some(Blindness::Denies) => return Err(Refusal::NOT_FOUND),
            Some(Blindness::Affirms) => return Ok(Payload::Status(self.affirmed(question))),
            None => {}
        }
        let (index, message) = self.messages.find(origin.account, question).ok_or(Refusal::NOT_FOUND)?;
        if message.at.after(self.scenario.status_lag) > self.now {
            return Err(Refusal::NOT_FOUND);
        }
        let msg_id = msg_id(index).to_string();
        Ok(Payload::Status(StatusRecord {
            id: message.id.as_ref().map_or_else(|| msg_id.clone(), ClientId::to_string),
            msg_id,
            channel: self.label(message, message.state),
            status: message.state.phase.word(&self.scenario).to_owned(),
            updated: WireMoment(message.state.since),
            replies: self.replies(message, message.state),
        }))
    }

    /// The reply to a message that has one in this state.
    pub(crate) fn replies(&self, message: &Message, state: State) -> Option<[ReplyRecord; 1]> {
        let life = self.life(message).filter(|_| state.phase == Phase::Replied)?;
        let stage = self.stage(message, state)?;
        let reply = life.pattern(stage.channel).behaviour(&self.scenario).reply.as_ref()?;
        Some([ReplyRecord { datetime: WireMoment(state.since), message: reply.message.clone() }])
    }

    /// What a gateway says that takes every question for a message.
    fn affirmed(&self, question: &Question) -> StatusRecord {
        let chance = Chance { seed: self.scenario.seed, decision: MADE_UP };
        let made_up = |asked: &ClientId| {
            let drawn = asked.to_string().bytes().fold(0, |sum, byte| chance.draw(sum ^ u64::from(byte)));
            (900_000_000 + drawn % 100_000_000).to_string()
        };
        let (id, msg_id) = match question {
            Question::Id(id) => (id.to_string(), made_up(id)),
            Question::MsgId(msg_id) => (made_up(msg_id), msg_id.to_string()),
        };
        let status = Phase::Queued.word(&self.scenario).to_owned();
        StatusRecord { id, msg_id, channel: "sms", status, updated: WireMoment(self.now), replies: None }
    }

    /// Does something with the account's templates.
    pub(crate) fn template(&mut self, call: &TemplateCall, origin: Origin) -> Result<Payload, Refusal> {
        let now = origin.at;
        let templates = &mut self.accounts[origin.account as usize].templates;
        let deleted = |deleted: u64| json!({ "deleted": deleted });
        let told = match call {
            TemplateCall::Create { name, text } => templates.create(name, text, now)?,
            TemplateCall::List => templates.list(),
            TemplateCall::Delete(id) => deleted(templates.sms.delete(*id, None)),
            TemplateCall::CreateViber { signature, text } => templates.create_viber(signature, text, now)?,
            TemplateCall::ListViber => templates.list_viber(&self.scenario, now),
            TemplateCall::DeleteViber { id, text } => deleted(templates.viber.delete(*id, text.as_deref())),
        };
        Ok(Payload::Record(told))
    }
}
