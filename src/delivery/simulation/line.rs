//! One process's line to the platform: the real reading of answers over simulated bytes.

use std::sync::{Arc, Mutex};

use tokio::time::sleep;

use super::disk::Disk;
use super::judge::Judge;
use super::life::Life;
use super::mistake::Mistake;
use super::plan::{Oracle, Plan};
use super::platform::{Answer, Platform};
use crate::domain::{MessageId, Status};
use crate::gateway::{
    BoxFuture, Envelope, Exchange, Gateway, MayLeave, Reply, Rules, StatusAnswer, Words, answers, read,
};

pub(super) struct Line {
    pub(super) plan: Arc<Plan>,
    pub(super) process: usize,
    pub(super) life: Arc<Life>,
    pub(super) platform: Arc<Platform>,
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) judge: Arc<Judge>,
    pub(super) mistake: Option<Mistake>,
}

impl Line {
    /// Waits for an answer that may never come.
    async fn wait(&self, answer: Answer) -> Exchange {
        match answer.after {
            Some(time) => sleep(time).await,
            None => std::future::pending().await,
        }
        self.life.step().await;
        answer.exchange
    }

    /// What a wrong client makes of what was seen.
    fn mistaken(&self, exchange: Exchange) -> Exchange {
        let unsent = Exchange::NotConnected("no connection".into());
        match (self.mistake, &exchange) {
            (Some(Mistake::SilenceIsNotSent), Exchange::TimedOut(_) | Exchange::Broken(_)) => unsent,
            (Some(Mistake::StatusIsNotSent), Exchange::Answer { status, .. }) if *status != 200 => unsent,
            _ => exchange,
        }
    }
}

impl Gateway for Line {
    fn submit<'a>(&'a self, envelope: &'a Envelope, may_leave: MayLeave) -> BoxFuture<'a, Option<Reply>> {
        Box::pin(async move {
            self.life.step().await;
            if !may_leave() {
                return None;
            }
            // From here on the bytes are on their way, whatever becomes of the process.
            let arrived = Platform::read(envelope);
            self.judge.arrived((self.process, &self.life), &self.disk.lock().unwrap(), envelope, &arrived);
            let exchange = self.wait(self.platform.receive(&arrived)).await;
            let rules = Rules {
                trust_status: self.plan.trust_status.clone(),
                fatal_errors: vec!["Not enough money".to_owned()],
            };
            let reply = read(&rules, self.plan.endpoint, envelope, &self.mistaken(exchange));
            self.judge.answered(self.process, &reply);
            Some(reply)
        })
    }

    fn statuses<'a>(&'a self, ids: &'a [MessageId]) -> BoxFuture<'a, Vec<StatusAnswer>> {
        Box::pin(async move {
            self.life.step().await;
            let numbers: Vec<u64> = ids.iter().map(|id| id.get()).collect();
            let exchange = self.wait(self.platform.statuses(&numbers)).await;
            let mut told = answers(ids, &exchange, &Words::new(""));
            let blind = matches!(self.plan.oracle, Oracle::KnowsAll | Oracle::DeniesAll);
            if self.mistake == Some(Mistake::BlindOracleBelieved) && blind && told.len() > 1 {
                told[0] = StatusAnswer::Denied(String::new());
                told[1] = StatusAnswer::Known { status: Status::Delivered, msg_id: None, channel: None, updated: None };
            }
            told
        })
    }
}
