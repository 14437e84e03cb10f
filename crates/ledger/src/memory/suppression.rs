//! The suppression list, forgotten numbers and recent single messages in memory.

use std::sync::Arc;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::contents::timestamp_from_micros;
use super::{LedgerContents, MemoryLedger};
use crate::guards::{RepeatKey, is_expired};
use crate::rules::{
    NumberErasure, PlaceRelease, check_repeat, erase_text_from_change, erase_texts_from_receipt, look_for_repeat,
};
use crate::{
    AdditionMode, Additions, ConsentBlock, ConsentEvidence, ConsentStore, ForgetOrder, Forgetting, LedgerError,
    LedgerFuture, NumberKey, NumberSet, OPTED_OUT, OptIn, OptOut, OptOutEnd, OptOutFilter, OptOutPage, OptOutRecord,
    OptOutRemoval, Ownership, PurgeOrder, RemovalTarget, RepeatCheck, RepeatGuard, RepeatRequest, RowSpan, RowState,
    Run, RunId, SentRow, SuppressedNumbers, SuppressionList, SuppressionPolicy, rejection_source, reply_source,
};
use campaign_core::domain::{Addressee, Phone, Row};

/// The reason for removing imported entries that a recipient's own opt-out replaces.
const REPLACED_REASON: &str = "replaced by an opt-out of their own";

/// The list with its version.
#[derive(Clone, Debug, Default)]
pub struct OptOutList {
    /// All opt-outs. Active ones have no end.
    records: Vec<(OptOut, Option<OptOutEnd>)>,
    version: u64,
    /// The key for hashes of forgotten numbers.
    key: Option<NumberKey>,
}

impl OptOutList {
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn key(&self) -> Option<NumberKey> {
        self.key.clone()
    }

    pub(super) fn set_key(&mut self, key: NumberKey) {
        self.key = Some(key);
    }

    /// Replaces a number with its hash, and adds an opt-out for the hash if there is none.
    pub(super) fn forget_number(&mut self, forgotten: NumberErasure, key: NumberKey, opt_out: OptOut) {
        self.key = Some(key);
        for (known, end) in self.records.iter_mut().filter(|(known, _)| known.who == forgotten.phone.into()) {
            forgotten.erase_from_opt_out(known);
            if let Some(end) = end {
                forgotten.erase_from_opt_out_end(end);
            }
        }
        self.add_opt_outs(vec![OptOut { who: forgotten.addressee(), ..opt_out }]);
    }

    /// The hash that stands for a number once the number is forgotten. `None` if there is no hash key, or `who` is
    /// already a hash.
    pub(super) fn forgotten_form(&self, who: Addressee) -> Option<Addressee> {
        Some(Addressee::Forgotten(self.key.as_ref()?.hash_number(who.phone()?)))
    }

    /// The hash of the addressee's number if the list contains this hash, otherwise the addressee unchanged.
    fn as_listed(&self, who: Addressee) -> Addressee {
        self.forgotten_form(who)
            .filter(|stays| self.records.iter().any(|(known, _)| known.who == *stays))
            .unwrap_or(who)
    }

    /// The active opt-outs.
    fn iter_active(&self) -> impl Iterator<Item = &OptOut> {
        self.records.iter().filter(|(_, end)| end.is_none()).map(|(opt_out, _)| opt_out)
    }

    /// Adds opt-outs.
    pub fn add_opt_outs(&mut self, opt_outs: Vec<OptOut>) -> Additions {
        let (few, mut additions) = (opt_outs.len() <= Additions::MAX_LISTED, Additions::default());
        for mut opt_out in opt_outs {
            opt_out.who = self.as_listed(opt_out.who);
            for (_, end) in self.records.iter_mut().filter(|(known, end)| end.is_none() && opt_out.replaces(known)) {
                let (by, why) = (opt_out.source.to_string(), REPLACED_REASON.to_owned());
                *end = Some(OptOutEnd { at: opt_out.at, by, why });
            }
            let known = self.iter_active().find(|known| known.covers(&opt_out)).cloned();
            match known {
                Some(known) => {
                    additions.already += 1;
                    additions.known.extend(Some(known).filter(|_| few));
                }
                None => {
                    additions.added += 1;
                    self.records.push((opt_out, None));
                }
            }
        }
        self.version += u64::from(additions.added > 0);
        additions
    }

    fn remove_opt_outs(&mut self, at: Timestamp, removal: &OptOutRemoval) -> Vec<OptOut> {
        let who = match &removal.target {
            RemovalTarget::Number { phone, .. } => Some(self.as_listed((*phone).into())),
            RemovalTarget::Entries(_) => None,
        };
        let is_meant = |opt_out: &OptOut| match &removal.target {
            RemovalTarget::Number { scope, .. } => {
                Some(opt_out.who) == who && scope.as_ref().is_none_or(|scope| *scope == opt_out.scope)
            }
            RemovalTarget::Entries(entries) => entries.contains(opt_out),
        };
        let mut removed = Vec::new();
        let (by, why) = (removal.by.to_string(), removal.why.as_deref().unwrap_or_default().to_owned());
        for (opt_out, end) in self.records.iter_mut().filter(|(opt_out, end)| end.is_none() && is_meant(opt_out)) {
            *end = Some(OptOutEnd { at, by: by.clone(), why: why.clone() });
            removed.push(opt_out.clone());
        }
        self.version += u64::from(!removed.is_empty());
        removed
    }

    /// Ends the opt-outs that precede these opt-ins.
    pub(super) fn end_opt_outs(&mut self, opted_in: Vec<OptIn>) {
        let mut ended = false;
        for mut opt_in in opted_in {
            opt_in.who = self.as_listed(opt_in.who);
            for (_, end) in self.records.iter_mut().filter(|(known, end)| end.is_none() && opt_in.ends(known)) {
                let (by, why) = (opt_in.source.to_string(), opt_in.reason.to_string());
                *end = Some(OptOutEnd { at: opt_in.at, by, why });
                ended = true;
            }
        }
        self.version += u64::from(ended);
    }

    /// The rows of an envelope whose recipients opted out of this run's messages.
    pub(super) fn find_opted_out_rows(&self, run: &Run, rows: &[SentRow]) -> Vec<Row> {
        let is_out = |sent: &&SentRow| {
            let who = self.as_listed(sent.to);
            self.iter_active().any(|out| out.who == who && run.is_suppressed_by(out))
        };
        rows.iter().filter(is_out).map(|sent| sent.row).collect()
    }
}

impl SuppressionList for MemoryLedger {
    fn add_opt_outs(&self, opt_outs: Arc<[OptOut]>, mode: AdditionMode) -> LedgerFuture<'_, Additions> {
        match mode {
            AdditionMode::Add => {
                self.write_contents(move |contents, _| Ok(contents.opt_outs.add_opt_outs(opt_outs.to_vec())))
            }
            AdditionMode::Preview => self.read_contents(move |contents| Additions {
                known: Vec::new(),
                ..contents.opt_outs.clone().add_opt_outs(opt_outs.to_vec())
            }),
        }
    }

    fn remove_opt_outs(&self, removal: OptOutRemoval) -> LedgerFuture<'_, Vec<OptOut>> {
        self.write_contents(move |contents, now| {
            Ok(contents.opt_outs.remove_opt_outs(timestamp_from_micros(now)?, &removal))
        })
    }

    fn load_suppressed_numbers<'a>(
        &'a self,
        campaign: &'a str,
        policy: SuppressionPolicy,
    ) -> LedgerFuture<'a, SuppressedNumbers> {
        self.read_contents(move |contents| {
            let list = &contents.opt_outs;
            let held = list.iter_active().filter(|opt_out| policy.applies_opt_out(campaign, opt_out));
            let numbers = held.map(|opt_out| opt_out.who.to_u64()).collect();
            SuppressedNumbers { version: list.version, numbers: NumberSet::new(numbers, list.key()) }
        })
    }

    fn list_opt_outs(&self, wanted: OptOutFilter) -> LedgerFuture<'_, OptOutPage> {
        self.read_contents(move |contents| {
            let list = &contents.opt_outs;
            match wanted {
                OptOutFilter::Listed { behind, at_most } => list.list_page(behind, at_most),
                OptOutFilter::OfNumber(phone) => list.list_of_number(phone, |end| end.is_none()),
                OptOutFilter::EndedOfNumber(phone) => list.list_of_number(phone, Option::is_some),
            }
        })
    }
}

impl OptOutList {
    fn list_page(&self, behind: Option<i64>, at_most: u32) -> OptOutPage {
        let behind = usize::try_from(behind.unwrap_or(0)).unwrap_or(0);
        let records = (1..).zip(&self.records).skip(behind);
        let part: Vec<(i64, &OptOut)> = records
            .filter(|(_, (_, end))| end.is_none())
            .map(|(key, (opt_out, _))| (key, opt_out))
            .take(at_most as usize)
            .collect();
        let next = part.last().filter(|_| part.len() >= at_most as usize).map(|(key, _)| *key);
        let record = |(_, opt_out): (i64, &OptOut)| OptOutRecord { opt_out: opt_out.clone(), end: None };
        OptOutPage { entries: part.into_iter().map(record).collect(), next }
    }

    fn list_of_number(&self, phone: Phone, is_wanted: impl Fn(&Option<OptOutEnd>) -> bool) -> OptOutPage {
        let who = self.as_listed(phone.into());
        let found = self.records.iter().filter(|(opt_out, end)| opt_out.who == who && is_wanted(end));
        let record =
            |(opt_out, end): &(OptOut, Option<OptOutEnd>)| OptOutRecord { opt_out: opt_out.clone(), end: end.clone() };
        OptOutPage { entries: found.map(record).collect(), next: None }
    }

    /// The numbers that opted out because of the run with this name.
    pub(super) fn numbers_opted_out_of(&self, run: &str) -> NumberSet {
        let sources = [reply_source(run), rejection_source(run)];
        let from_run = self.iter_active().filter(|opt_out| sources.iter().any(|of| **of == *opt_out.source));
        NumberSet::new(from_run.map(|opt_out| opt_out.who.to_u64()).collect(), self.key())
    }
}

/// The key for hashes of numbers.
const NUMBER_KEY: [u8; NumberKey::LENGTH] = *b"numbers that are kept in memory.";

impl LedgerContents {
    fn forget_number(&mut self, order: ForgetOrder) -> Result<(), LedgerError> {
        let ForgetOrder { phone, rows, cancelled_in, opt_out } = order;
        let key = NumberKey::new(NUMBER_KEY);
        let forgotten = NumberErasure { phone, stays: key.hash_number(phone) };
        self.opt_outs.forget_number(forgotten, key, opt_out);
        for (run, rows) in rows {
            let stored = self.stored_run_mut(run)?;
            for envelope in stored.envelopes.values_mut() {
                forgotten.erase_from_envelope(envelope, &rows);
            }
            let about = |row: &Row| rows.contains(row.get());
            let reported = stored.receipts.iter_mut().filter(|(row, _)| about(row));
            reported.flat_map(|(_, kept)| kept).for_each(|kept| erase_texts_from_receipt(&mut kept.receipt));
            let decided = stored.events.iter_mut().filter(|event| about(&event.row));
            decided.for_each(|event| erase_text_from_change(&mut event.change));
            let asked = stored.inquiries.iter_mut().filter(|(row, _)| about(row));
            asked.for_each(|(_, inquiry)| forgotten.erase_from_inquiry(inquiry));
            stored.consents.retain(|row, _| !about(row));
            let out = stored.excluded.rows();
            (&rows - out).iter().for_each(|row| stored.excluded.insert(Row::new(row), RowState::Skipped, OPTED_OUT));
            stored.forgotten |= &rows;
            stored.rows_to_forget |= rows;
        }
        for run in cancelled_in {
            self.stored_run_mut(run)?.cancelled.insert(forgotten.addressee().to_u64());
        }
        let stored_runs: Vec<RunId> = self.stored_runs().map(|stored| stored.run.key).collect();
        for run in stored_runs {
            let stopped = &mut self.stored_run_mut(run)?.run.stop_reason;
            *stopped = stopped.take().map(|words| forgotten.erase_from_text(&words));
        }
        self.notifications.iter_mut().for_each(|waiting| waiting.forget(forgotten));
        Ok(())
    }

    fn purge_run(&mut self, now: i64, order: PurgeOrder) -> Result<Ownership, LedgerError> {
        let PurgeOrder { counted, counts, parts, cancelled } = order;
        let stored = self.stored_run_mut(counted.key)?;
        if !stored.run.mark_purged(timestamp_from_micros(now)?, &counted, (counts, parts)) {
            return Ok(Ownership::Lost);
        }
        let key = NumberKey::new(NUMBER_KEY);
        let stays = |member| Phone::new(member).map(|phone| Addressee::Forgotten(key.hash_number(phone)).to_u64());
        stored.cancelled.extend(cancelled.iter().filter_map(stays));
        stored.purge_records(&key);
        self.opt_outs.set_key(key);
        Ok(Ownership::Held)
    }

    fn list_rows_to_forget(&self) -> Vec<(RunId, RoaringBitmap)> {
        let waiting = self.stored_runs().filter(|stored| !stored.rows_to_forget.is_empty());
        waiting.map(|stored| (stored.run.key, stored.rows_to_forget.clone())).collect()
    }
}

impl Forgetting for MemoryLedger {
    fn forget_number(&self, order: ForgetOrder) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, _| contents.forget_number(order))
    }

    fn list_rows_to_forget(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        self.read_contents(LedgerContents::list_rows_to_forget)
    }

    fn purge_run(&self, order: PurgeOrder) -> LedgerFuture<'_, Ownership> {
        self.write_contents(move |contents, now| contents.purge_run(now, order))
    }

    fn overwrite_remains<'a>(&'a self, purged: &'a [Run]) -> LedgerFuture<'a, ()> {
        purged.iter().for_each(|run| drop(self.copy_store().set_aside(&run.name())));
        Box::pin(async { Ok(()) })
    }
}

impl ConsentStore for MemoryLedger {
    fn load_consents(&self, run: RunId, rows: RowSpan) -> LedgerFuture<'_, Vec<ConsentEvidence>> {
        self.read_contents(move |contents| contents.list_consents(run, rows))
    }
}

impl LedgerContents {
    pub(super) fn keep_consents(&mut self, run: RunId, blocks: &[ConsentBlock]) -> Result<(), LedgerError> {
        let stored = self.stored_run_mut(run)?;
        for block in blocks {
            let evidence = block.span().into_iter().flat_map(|span| block.list_evidence(span));
            stored.consents.extend(evidence.map(|evidence| (evidence.row, evidence)));
        }
        Ok(())
    }

    pub fn list_consents(&self, run: RunId, rows: RowSpan) -> Vec<ConsentEvidence> {
        let Ok(stored) = self.stored_run(run) else { return Vec::new() };
        stored.consents.range(rows.first..=rows.last).map(|(_, evidence)| evidence.clone()).collect()
    }
}

/// The key for hashes of messages. A ledger in memory needs no secret.
const MESSAGE_KEY: RepeatKey = RepeatKey(*b"messages that are kept in memory");

impl RepeatGuard for MemoryLedger {
    fn check_repeat(&self, request: RepeatRequest) -> LedgerFuture<'_, RepeatCheck> {
        self.write_contents(move |contents, now| {
            let repeats = &mut contents.repeats;
            Ok(match request {
                RepeatRequest::Look(message) => {
                    look_for_repeat(repeats.get(&MESSAGE_KEY.hash_message(&message)).copied(), now)
                }
                RepeatRequest::Reserve { message, again } => {
                    repeats.retain(|_, until| !is_expired(*until, now));
                    let hash = MESSAGE_KEY.hash_message(&message);
                    let check = check_repeat(hash, repeats.get(&hash).copied(), again, now);
                    if let RepeatCheck::Taken(place) = &check {
                        repeats.insert(hash, place.until);
                    }
                    check
                }
                RepeatRequest::Release(place) => {
                    match place.plan_release(repeats.get(&place.hash).copied(), now) {
                        PlaceRelease::Nothing => {}
                        PlaceRelease::Restore(before) => drop(repeats.insert(place.hash, before)),
                        PlaceRelease::Delete => drop(repeats.remove(&place.hash)),
                    }
                    look_for_repeat(repeats.get(&place.hash).copied(), now)
                }
            })
        })
    }
}
