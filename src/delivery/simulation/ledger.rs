//! The ledger as one process sees it: each change takes time, and may or may not be on the disk when the process ends.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use roaring::RoaringTreemap;
use tokio::time::sleep;

use super::disk::Disk;
use super::life::{Life, wall};
use super::mistake::Mistake;
use crate::ledger::{
    Allowance, Begun, EnvelopeRecord, EnvelopeSummary, Event, Intent, Ledger, LedgerError, LedgerFuture, LeftOut,
    NewEvent, NewRun, Owner, Question, Recorded, RetryOrder, Run, RunEnd, RunId, Settlement, Wait,
};

/// How long a commit takes before and after the instant at which it cannot be lost any more.
const COMMIT: Duration = Duration::from_millis(2);

/// One process's way to the disk.
pub(super) struct Desk {
    pub(super) disk: Arc<Mutex<Disk>>,
    pub(super) life: Arc<Life>,
    pub(super) mistake: Option<Mistake>,
}

impl Desk {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap()
    }

    /// A change: a process may end before it, and between the commit and its return.
    async fn write<T>(&self, change: impl FnOnce(&mut Disk, i64) -> T + Send) -> Result<T, LedgerError> {
        self.life.step().await;
        sleep(COMMIT).await;
        self.life.step().await;
        let told = change(&mut self.disk(), wall().as_microsecond());
        sleep(COMMIT).await;
        self.life.step().await;
        Ok(told)
    }

    async fn read<T>(&self, look: impl FnOnce(&Disk) -> T + Send) -> Result<T, LedgerError> {
        self.life.step().await;
        Ok(look(&self.disk()))
    }

    /// A change that is told before it is on the disk.
    async fn tell_before<T>(
        &self,
        told: T,
        change: impl FnOnce(&mut Disk, i64) + Send + 'static,
    ) -> Result<T, LedgerError> {
        let (disk, life) = (Arc::clone(&self.disk), Arc::clone(&self.life));
        tokio::spawn(async move {
            sleep(Duration::from_millis(50)).await;
            life.step().await;
            change(&mut disk.lock().unwrap(), wall().as_microsecond());
        });
        Ok(told)
    }

    async fn begin_as_planned(&self, intent: Intent) -> Result<Begun, LedgerError> {
        match self.mistake {
            Some(Mistake::NoIntent) => Ok(Begun::After(Wait::NONE)),
            Some(Mistake::IntentAfterTheSend) => {
                let change = move |disk: &mut Disk, now| disk.insert(now, &intent);
                self.tell_before(Begun::After(Wait::NONE), change).await
            }
            Some(Mistake::NoOwnerCheck) => {
                let change = |disk: &mut Disk, now| {
                    let owner = disk.run.owner.unwrap_or(intent.owner);
                    disk.begin(now, &Intent { owner, ..intent })
                };
                self.write(change).await
            }
            _ => self.write(|disk, now| disk.begin(now, &intent)).await,
        }
    }

    /// Makes the pace wrong before room is taken from it.
    fn spoil_pace(&self, account: &str, rate: Option<f64>) {
        let mut disk = self.disk();
        if self.mistake == Some(Mistake::BurstingPace)
            && let (Some(pace), Some(rate)) = (disk.paces.get_mut(account), rate)
        {
            // A whole second's room is there at once.
            pace.next_free -= if rate >= 1.0 { 900_000 } else { 0 };
        }
    }
}

fn elsewhere<T>() -> Result<T, LedgerError> {
    Err(LedgerError::Unreadable("this ledger keeps one run, which is there already".into()))
}

impl Ledger for Desk {
    fn create_run<'a>(&'a self, _: &'a NewRun) -> LedgerFuture<'a, Run> {
        Box::pin(async { elsewhere() })
    }

    fn open_run(&self, _: RunId, _: Option<RunId>) -> LedgerFuture<'_, ()> {
        Box::pin(async { elsewhere() })
    }

    fn retire(&self, _: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(async { elsewhere() })
    }

    fn runs(&self) -> LedgerFuture<'_, Vec<Run>> {
        Box::pin(async { self.read(|disk| vec![disk.run.clone()]).await })
    }

    fn run_names(&self) -> LedgerFuture<'_, Vec<String>> {
        Box::pin(async { elsewhere() })
    }

    fn claim(&self, _: RunId, owner: Owner) -> LedgerFuture<'_, usize> {
        Box::pin(async move {
            let mistake = self.mistake;
            let change = |disk: &mut Disk, now| {
                if mistake == Some(Mistake::DoubtSentAgain) {
                    disk.envelopes.retain(|_, envelope| envelope.settled.is_some());
                }
                disk.claim(now, owner)
            };
            self.write(change).await
        })
    }

    fn end(&self, _: RunId, owner: Owner, end: RunEnd) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.end(owner, end)).await })
    }

    fn begin(&self, intent: Intent) -> LedgerFuture<'_, Begun> {
        self.spoil_pace(&intent.account.name, intent.account.rate);
        Box::pin(async move { self.begin_as_planned(intent).await })
    }

    fn settle(&self, settlement: Settlement) -> LedgerFuture<'_, ()> {
        Box::pin(async move {
            if self.mistake == Some(Mistake::ToldBeforeTheCommit) {
                return self.tell_before((), move |disk, now| disk.settle(now, settlement)).await;
            }
            self.write(|disk, now| disk.settle(now, settlement)).await
        })
    }

    fn request_stop(&self, _: RunId, requested: bool) -> LedgerFuture<'_, ()> {
        Box::pin(async move { self.write(|disk, _| disk.run.stop_requested = requested).await })
    }

    fn stop_requested(&self, _: RunId) -> LedgerFuture<'_, bool> {
        Box::pin(async { self.read(|disk| disk.run.stop_requested).await })
    }

    fn slow_down<'a>(&'a self, account: &'a str, wait: Option<Duration>) -> LedgerFuture<'a, ()> {
        Box::pin(async move { self.write(|disk, now| disk.slow_down(now, account, wait)).await })
    }

    fn reserve<'a>(&'a self, account: &'a Allowance, count: u32) -> LedgerFuture<'a, Wait> {
        Box::pin(async move { self.write(|disk, now| disk.reserve(now, account, count)).await })
    }

    fn envelope_summaries(&self, _: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>> {
        let summary = |record: &EnvelopeRecord| {
            let rows = record.rows.iter().map(|sent| sent.row);
            let (first, last) = rows.clone().min().zip(rows.max())?;
            Some(EnvelopeSummary { envelope: record.envelope, first, last })
        };
        Box::pin(async move { self.read(|disk| disk.envelopes.values().filter_map(summary).collect()).await })
    }

    fn envelopes(&self, _: RunId, numbers: RangeInclusive<u32>) -> LedgerFuture<'_, Vec<EnvelopeRecord>> {
        let look = |disk: &Disk| disk.envelopes.range(numbers).map(|(_, record)| record.clone()).collect();
        Box::pin(async move { self.read(look).await })
    }

    fn evidence(&self, _: RunId, _: u32) -> LedgerFuture<'_, Option<String>> {
        Box::pin(async { Ok(None) })
    }

    fn left_out(&self, _: RunId) -> LedgerFuture<'_, LeftOut> {
        Box::pin(async { Ok(LeftOut::default()) })
    }

    fn numbers_sent_to<'a>(&'a self, _: &'a [RunId]) -> LedgerFuture<'a, RoaringTreemap> {
        Box::pin(async { elsewhere() })
    }

    fn record(&self, _: RunId, owner: Owner, events: Vec<NewEvent>) -> LedgerFuture<'_, Recorded> {
        Box::pin(async move { self.write(|disk, now| disk.record(now, owner, events)).await })
    }

    fn retry(&self, owner: Owner, order: RetryOrder) -> LedgerFuture<'_, Recorded> {
        Box::pin(async move { self.write(|disk, now| disk.retry(now, owner, order)).await })
    }

    fn events(&self, _: RunId) -> LedgerFuture<'_, Vec<Event>> {
        Box::pin(async { self.read(|disk| disk.events.clone()).await })
    }

    fn asked(&self, _: RunId, questions: Vec<Question>) -> LedgerFuture<'_, ()> {
        let change = |disk: &mut Disk, _| {
            disk.questions.extend(questions.into_iter().map(|question| (question.row, question)));
        };
        Box::pin(async move { self.write(change).await })
    }

    fn questions(&self, _: RunId) -> LedgerFuture<'_, Vec<Question>> {
        Box::pin(async { self.read(|disk| disk.questions.values().cloned().collect()).await })
    }

    fn remember_host<'a>(&'a self, _: &'a str, _: &'a str) -> LedgerFuture<'a, String> {
        Box::pin(async { elsewhere() })
    }

    fn trust_host<'a>(&'a self, _: &'a str, _: &'a str) -> LedgerFuture<'a, ()> {
        Box::pin(async { elsewhere() })
    }
}
