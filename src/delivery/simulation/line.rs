//! One process's line to the platform: the real reading of answers over simulated bytes.

use std::sync::{Arc, Mutex};

use tokio::time::sleep;

use super::disk::SimulatedDisk;
use super::judge::PromiseJudge;
use super::life::ProcessLife;
use super::mistake::Mistake;
use super::plan::{StatusOracle, WorldPlan};
use super::platform::{SimulatedPlatform, TimedAnswer};
use crate::domain::{MessageId, Status};
use crate::gateway::{
    AnswerRules, BoxFuture, Envelope, Gateway, GatewayReply, HttpExchange, MayLeave, RedactingReader, StatusAnswer,
    read_reply, read_status_answers,
};

pub(super) struct SimulatedGateway {
    pub(super) plan: Arc<WorldPlan>,
    pub(super) process: usize,
    pub(super) life: Arc<ProcessLife>,
    pub(super) platform: Arc<SimulatedPlatform>,
    pub(super) disk: Arc<Mutex<SimulatedDisk>>,
    pub(super) judge: Arc<PromiseJudge>,
    pub(super) mistake: Option<Mistake>,
}

impl SimulatedGateway {
    /// Waits for an answer that may never come.
    async fn wait_for_answer(&self, answer: TimedAnswer) -> HttpExchange {
        match answer.after {
            Some(time) => sleep(time).await,
            None => std::future::pending().await,
        }
        self.life.take_step().await;
        answer.exchange
    }

    /// What a wrong client makes of what was seen.
    fn apply_mistake(&self, exchange: HttpExchange) -> HttpExchange {
        let unsent = HttpExchange::NotConnected("no connection".into());
        match (self.mistake, &exchange) {
            (Some(Mistake::SilenceIsNotSent), HttpExchange::TimedOut(_) | HttpExchange::Broken(_)) => unsent,
            (Some(Mistake::StatusIsNotSent), HttpExchange::Answer { status, .. }) if *status != 200 => unsent,
            _ => exchange,
        }
    }
}

impl Gateway for SimulatedGateway {
    fn submit<'a>(&'a self, envelope: &'a Envelope, may_leave: MayLeave) -> BoxFuture<'a, Option<GatewayReply>> {
        Box::pin(async move {
            self.life.take_step().await;
            if !may_leave() {
                return None;
            }
            // From here on the bytes are on their way, whatever becomes of the process.
            let arrived = SimulatedPlatform::read_operations(envelope);
            self.judge.check_arrival((self.process, &self.life), &self.disk.lock().unwrap(), envelope, &arrived);
            let exchange = self.wait_for_answer(self.platform.receive_envelope(&arrived)).await;
            let rules = AnswerRules {
                trust_status: self.plan.trust_status.clone(),
                fatal_errors: vec!["Not enough money".to_owned()],
            };
            let reply = read_reply(&rules, self.plan.endpoint, envelope, &self.apply_mistake(exchange));
            self.judge.check_answer(self.process, &reply);
            Some(reply)
        })
    }

    fn ask_statuses<'a>(&'a self, ids: &'a [MessageId]) -> BoxFuture<'a, Vec<StatusAnswer>> {
        Box::pin(async move {
            self.life.take_step().await;
            let numbers: Vec<u64> = ids.iter().map(|id| id.get()).collect();
            let exchange = self.wait_for_answer(self.platform.answer_statuses(&numbers)).await;
            let mut told = read_status_answers(ids, &exchange, &RedactingReader::new(""));
            let blind = matches!(self.plan.oracle, StatusOracle::KnowsAll | StatusOracle::DeniesAll);
            if self.mistake == Some(Mistake::BlindStatusTrusted) && blind && told.len() > 1 {
                told[0] = StatusAnswer::Denied(String::new());
                told[1] = StatusAnswer::Known { status: Status::Delivered, msg_id: None, channel: None, updated: None };
            }
            told
        })
    }
}
