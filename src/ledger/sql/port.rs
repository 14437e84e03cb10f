//! The port: maps each call of it to the queries beside it.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::blocks::{self, Draw};
use super::change::Failure;
use super::dialect::{Adapter, Connection, Lock};
use super::look::look;
use super::places::{self, Place};
use super::runs::Stage;
use super::writer::Work;
use super::{envelopes, events, guard, hosts, left_out, pace, runs, stops};
use crate::domain::{Chain, LOOPBACK, MessageId};
use crate::ledger::earlier_words::rewrite_event;
use crate::ledger::rules::held;
use crate::ledger::{
    Allowance, AskedRow, Block, BlockRequest, Claim, Copies, DamagedRun, DrawRefusal, Drawn, EnvelopeRecord,
    EnvelopeSummary, Epoch, Hold, Intent, Lease, Ledger, LedgerError, LedgerFuture, LeftOut, NewCopies, NewRowEvent,
    NewRun, NumberSet, Origin, Ownership, Permit, QuestionTurn, RetryOrder, RowEvent, Rows, Run, RunEnd, RunFilter,
    RunId, Settlement, SharedRun, StrayCopies, Wait, hold,
};

impl Ledger for Adapter {
    fn create_run<'a>(&'a self, new: &'a NewRun) -> LedgerFuture<'a, Run> {
        let new = new.clone();
        Box::pin(async move {
            self.fit_for_sending().await?;
            self.write(move |connection, _| Box::pin(runs::create(connection, new.clone(), Stage::Preparing))).await
        })
    }

    fn open_run(&self, run: RunId, replaced: Option<RunId>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(runs::open(connection, now, run, replaced))))
    }

    fn runs(&self, wanted: RunFilter) -> LedgerFuture<'_, Vec<Run>> {
        Box::pin(async move { look!(self, runs::wanted, wanted.clone()) })
    }

    fn stored_runs(&self, wanted: RunFilter) -> LedgerFuture<'_, Vec<Result<Run, DamagedRun>>> {
        Box::pin(async move { look!(self, runs::stored, wanted.clone()) })
    }

    fn find(&self, id: MessageId) -> LedgerFuture<'_, Option<Origin>> {
        Box::pin(async move { look!(self, runs::find, id) })
    }

    fn hold<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, Option<Hold>> {
        Box::pin(async move {
            let taken = self.lock_campaign(campaign, account).await?;
            Ok(taken.map(|lock| Hold::new(campaign, account, lock)))
        })
    }

    fn is_held<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, bool> {
        Box::pin(async move { self.is_locked(&hold::name(campaign, account)).await })
    }

    fn held_since<'a>(&'a self, campaign: &'a str, account: &'a str) -> LedgerFuture<'a, Option<Timestamp>> {
        Box::pin(async move { self.locked_since(&hold::name(campaign, account)).await })
    }

    fn prepare_copies<'a>(&'a self, hold: &'a Hold) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(self.new_copies(hold))
    }

    fn copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, Copies> {
        Box::pin(async {
            LedgerError::refuse_purged(run)?;
            self.copies_of(run).await
        })
    }

    fn stray_copies(&self) -> LedgerFuture<'_, Vec<StrayCopies>> {
        Box::pin(self.strays())
    }

    fn put_copies_aside<'a>(&'a self, run: &'a str) -> LedgerFuture<'a, String> {
        Box::pin(self.put_stray_aside(run))
    }

    fn claim<'a>(&'a self, hold: &'a Hold, run: RunId) -> LedgerFuture<'a, Claim> {
        Box::pin(async move {
            self.fit_for_sending().await?;
            // Nobody comes meanwhile to the places that are shut; who comes to another keeps what it draws there.
            let (known, shut, _locks) = self.shut(run).await?;
            held(hold, &known)?;
            self.take(&known, shut).await
        })
    }

    fn draw<'a>(&'a self, shared: &'a SharedRun, wanted: BlockRequest) -> LedgerFuture<'a, Drawn> {
        Box::pin(async move {
            self.fit_for_sending().await?;
            let (place, lock) = places::free(self, &shared.campaign, &shared.account).await?;
            let (shared, epoch, random) = (shared.clone(), Epoch(rand::random()), rand::random());
            let draw = Draw { shared, wanted, place, epoch, random };
            let drawn =
                self.write(move |connection, now| Box::pin(blocks::draw(connection, now, draw.clone()))).await?;
            Ok(drawn.map_or_else(Drawn::Refused, |(run, lease)| {
                self.bind(lease.epoch, &hold::place_name(&run.campaign, &run.account, place));
                Drawn::Block(Block::new(run, lease, lock))
            }))
        })
    }

    fn draw_refusals<'a>(&'a self, shared: &'a SharedRun, wanted: BlockRequest) -> LedgerFuture<'a, Vec<DrawRefusal>> {
        Box::pin(async move { look!(self, blocks::refusals, self.now(), shared, wanted) })
    }

    fn rows_in_hand(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        Box::pin(async move {
            let (run, places) = self.places(run).await?;
            Ok(Rows::all_of(&places::taken(self, &run, &places).await?))
        })
    }

    fn end(&self, lease: Lease, end: RunEnd) -> LedgerFuture<'_, ()> {
        let numbers = self.numbers.clone();
        Box::pin(
            self.write(move |connection, now| {
                Box::pin(runs::end(connection, now, numbers.clone(), lease, end.clone()))
            }),
        )
    }

    fn begin(&self, mut intent: Intent) -> LedgerFuture<'_, Permit> {
        if !self.keeps_chains() {
            intent.rows.iter_mut().for_each(|sent| sent.chain = Chain::UNKNOWN);
        }
        let intent = Arc::new(intent);
        Box::pin(async move {
            self.be_heard(intent.lease.epoch).await?;
            // Nothing that is begun by a right that was lost could leave: it would be begun again and again.
            if !self.still_has(intent.lease.epoch) {
                return Ok(Permit::Lost);
            }
            self.write_gathered(|permit| Work::Begin(intent, permit)).await
        })
    }

    fn may_leave(&self, lease: Lease) -> bool {
        self.still_has(lease.epoch)
    }

    fn settle(&self, settlement: Settlement) -> LedgerFuture<'_, ()> {
        let settlement = Arc::new(settlement);
        Box::pin(self.write_gathered(|kept| Work::Settle(settlement, kept)))
    }

    fn retire(&self, run: RunId) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, now| Box::pin(runs::retire(connection, now, run))))
    }

    fn moved(&self, runs: Vec<RunId>, file: String) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(runs::moved(connection, runs.clone(), file.clone()))))
    }

    fn results_moved(&self, run: RunId, results: String) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(runs::results_moved(connection, run, results.clone()))))
    }

    fn request_stop(&self, run: RunId, requested: bool) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(stops::request(connection, run, requested))))
    }

    fn stop_requested(&self, run: RunId) -> LedgerFuture<'_, bool> {
        Box::pin(async move { look!(self, stops::requested, run) })
    }

    fn slow_down<'a>(&'a self, account: &'a str, wait: Option<Duration>) -> LedgerFuture<'a, ()> {
        let account = account.to_owned();
        Box::pin(self.write(move |connection, now| Box::pin(pace::slow_down(connection, now, account.clone(), wait))))
    }

    fn reserve<'a>(&'a self, account: &'a Allowance, count: u32) -> LedgerFuture<'a, Wait> {
        let account = account.clone();
        Box::pin(self.write(move |connection, now| {
            let account = account.clone();
            Box::pin(async move { pace::reserve(connection, now, &account, count).await })
        }))
    }

    fn reserve_question<'a>(&'a self, account: &'a Allowance, longest: Duration) -> LedgerFuture<'a, QuestionTurn> {
        let account = account.clone();
        Box::pin(self.write(move |connection, now| {
            let account = account.clone();
            Box::pin(async move { pace::reserve_question(connection, now, &account, longest).await })
        }))
    }

    fn uncount(&self, lease: Lease) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(blocks::uncount(connection, lease))))
    }

    fn envelope_summaries(&self, run: RunId) -> LedgerFuture<'_, Vec<EnvelopeSummary>> {
        Box::pin(async move { look!(self, envelopes::summaries, run) })
    }

    fn envelopes(&self, run: RunId, numbers: RangeInclusive<u32>) -> LedgerFuture<'_, Vec<EnvelopeRecord>> {
        Box::pin(async move { look!(self, envelopes::read, run, numbers.clone()) })
    }

    fn evidence(&self, run: RunId, envelope: u32) -> LedgerFuture<'_, Option<String>> {
        Box::pin(async move { look!(self, envelopes::evidence, run, envelope) })
    }

    fn left_out(&self, run: RunId) -> LedgerFuture<'_, LeftOut> {
        Box::pin(async move { look!(self, left_out::read, run) })
    }

    fn numbers_sent_to<'a>(&'a self, runs: &'a [RunId]) -> LedgerFuture<'a, NumberSet> {
        Box::pin(async move { look!(self, guard::numbers_sent_to, runs) })
    }

    fn rows_sent(&self, run: RunId) -> LedgerFuture<'_, RoaringBitmap> {
        Box::pin(async move { look!(self, guard::rows_sent, run) })
    }

    fn record(&self, lease: Lease, mut events: Vec<NewRowEvent>) -> LedgerFuture<'_, Ownership> {
        if !self.keeps_chains() {
            events.iter_mut().for_each(rewrite_event);
        }
        Box::pin(self.write(move |connection, now| Box::pin(events::record(connection, now, lease, events.clone()))))
    }

    fn retry(&self, lease: Lease, order: RetryOrder) -> LedgerFuture<'_, Ownership> {
        Box::pin(self.write(move |connection, now| Box::pin(events::retry(connection, now, lease, order.clone()))))
    }

    fn events(&self, run: RunId) -> LedgerFuture<'_, Vec<RowEvent>> {
        Box::pin(async move { look!(self, events::read, run) })
    }

    fn keep_asked(&self, run: RunId, questions: Vec<AskedRow>) -> LedgerFuture<'_, ()> {
        Box::pin(self.write(move |connection, _| Box::pin(events::asked(connection, run, questions.clone()))))
    }

    fn asked_rows(&self, run: RunId) -> LedgerFuture<'_, Vec<AskedRow>> {
        Box::pin(async move { look!(self, events::questions, run) })
    }

    fn remember_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, String> {
        if host == LOOPBACK {
            return Box::pin(
                async move { Ok(look!(self, hosts::known, profile)?.unwrap_or_else(|| LOOPBACK.to_owned())) },
            );
        }
        let (profile, host) = (profile.to_owned(), host.to_owned());
        Box::pin(self.write(move |connection, _| Box::pin(hosts::remember(connection, profile.clone(), host.clone()))))
    }

    fn trust_host<'a>(&'a self, profile: &'a str, host: &'a str) -> LedgerFuture<'a, ()> {
        let (profile, host) = (profile.to_owned(), host.to_owned());
        Box::pin(self.write(move |connection, _| Box::pin(hosts::trust(connection, profile.clone(), host.clone()))))
    }
}

impl Adapter {
    /// A run, and those of its places where nobody is, with their locks.
    pub(in crate::ledger) async fn shut(&self, run: RunId) -> Result<(Run, Vec<u32>, Vec<Lock>), LedgerError> {
        let (run, places) = self.places(run).await?;
        let (shut, locks) = places::shut(self, &run, &places).await?;
        Ok((run, shut, locks))
    }

    /// Takes a run but for the blocks at places that are not shut.
    pub(in crate::ledger) async fn take(&self, run: &Run, shut: Vec<u32>) -> Result<Claim, LedgerError> {
        let lease = Lease { run: run.key, rows: run.rows(), epoch: Epoch(rand::random()) };
        self.bind(lease.epoch, &hold::name(&run.campaign, &run.account));
        let numbers = self.numbers.clone();
        self.write(move |connection, now| {
            Box::pin(envelopes::claim(connection, now, numbers.clone(), lease, shut.clone()))
        })
        .await
    }

    /// A run, and its places if it is a shared one.
    pub(super) async fn places(&self, run: RunId) -> Result<(Run, Vec<Place>), LedgerError> {
        look!(self, run_and_places, run)
    }
}

async fn run_and_places(reader: &mut Connection, run: RunId) -> Result<(Run, Vec<Place>), Failure> {
    let run = runs::read(&mut *reader, run).await?;
    let places = blocks::places(reader, run.key).await?;
    Ok((run, places))
}
