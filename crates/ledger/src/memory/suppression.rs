//! The suppression list, forgotten numbers and recent single messages in memory.

use std::sync::Arc;

use jiff::Timestamp;
use roaring::RoaringBitmap;

use super::contents::timestamp_from_micros;
use super::{LedgerContents, MemoryLedger};
use crate::guards::{RepeatKey, is_expired};
use crate::rules::{
    NumberErasure, REPLACED_REASON, ReservationRelease, check_repeat, erase_text_from_change, erase_texts_from_receipt,
    look_for_repeat,
};
use crate::{
    AdditionMode, Additions, ConsentBlock, ConsentEvidence, ConsentStore, ForgetOrder, Forgetting, LedgerError,
    LedgerFuture, NumberKey, NumberSet, OPTED_OUT, OptIn, OptOut, OptOutEnd, OptOutFilter, OptOutPage, OptOutRecord,
    OptOutRemoval, Ownership, PurgeOrder, RemovalTarget, RepeatCheck, RepeatGuard, RepeatRequest, RowSpan, RowState,
    Run, RunId, SentRow, SuppressedNumbers, SuppressionList, SuppressionPolicy, rejection_source, reply_source,
};
use campaign_core::domain::{Addressee, Phone, Row};

/// An opt-out with its history.
#[derive(Clone, Debug)]
struct ListedOptOut {
    opt_out: OptOut,
    /// The latest repetition while the opt-out is active.
    repetition: Option<OptOut>,
    /// `None` for an active opt-out.
    end: Option<OptOutEnd>,
}

impl ListedOptOut {
    fn new(opt_out: OptOut) -> Self {
        Self { opt_out, repetition: None, end: None }
    }

    fn is_active(&self) -> bool {
        self.end.is_none()
    }

    /// Keeps the latest of these opt-outs as the repetition, if it is later than this opt-out.
    fn keep_repetition(&mut self, opt_outs: impl IntoIterator<Item = OptOut>) {
        for new in opt_outs {
            if new.at > self.repetition.as_ref().unwrap_or(&self.opt_out).at {
                self.repetition = Some(new);
            }
        }
    }

    fn end(&mut self, at: Timestamp, by: &str, reason: &str) {
        self.end = Some(OptOutEnd { at, by: by.to_owned(), why: reason.to_owned() });
    }
}

/// The opt-outs and the version of the suppression list.
#[derive(Clone, Debug, Default)]
pub struct OptOutList {
    /// All opt-outs, active or ended.
    records: Vec<ListedOptOut>,
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
    pub(super) fn forget_number(&mut self, forgotten: NumberErasure, key: NumberKey, mut opt_out: OptOut) {
        self.key = Some(key);
        for known in self.records.iter_mut().filter(|known| known.opt_out.who == forgotten.phone.into()) {
            let ListedOptOut { opt_out, repetition, end } = known;
            forgotten.erase_from_opt_out(opt_out);
            repetition.iter_mut().for_each(|repetition| forgotten.erase_from_opt_out(repetition));
            end.iter_mut().for_each(|end| forgotten.erase_from_opt_out_end(end));
        }
        opt_out.who = forgotten.addressee();
        self.add_opt_outs(vec![opt_out]);
    }

    /// The hash that replaces a number once the number is forgotten. `None` if there is no hash key, or `addressee` is
    /// already a hash.
    pub(super) fn forgotten_form(&self, addressee: Addressee) -> Option<Addressee> {
        Some(Addressee::Forgotten(self.key.as_ref()?.hash_number(addressee.phone()?)))
    }

    /// The hash of the addressee's number if the list contains this hash, otherwise the addressee unchanged.
    fn as_listed(&self, addressee: Addressee) -> Addressee {
        self.forgotten_form(addressee)
            .filter(|hash| self.records.iter().any(|known| known.opt_out.who == *hash))
            .unwrap_or(addressee)
    }

    /// The active opt-outs.
    fn iter_active(&self) -> impl Iterator<Item = &OptOut> {
        self.records.iter().filter(|known| known.is_active()).map(|known| &known.opt_out)
    }

    /// Adds opt-outs that are not covered yet, and ends those that they replace.
    pub fn add_opt_outs(&mut self, opt_outs: Vec<OptOut>) -> Additions {
        let (are_few, mut additions) = (opt_outs.len() <= Additions::MAX_LISTED, Additions::default());
        for mut opt_out in opt_outs {
            opt_out.who = self.as_listed(opt_out.who);
            let mut replaced = Vec::new();
            for known in self.records.iter_mut().filter(|known| known.is_active() && opt_out.replaces(&known.opt_out)) {
                known.end(opt_out.at, &opt_out.source, REPLACED_REASON);
                replaced.extend(known.repetition.take());
                replaced.push(known.opt_out.clone());
            }
            let known = self.records.iter_mut().find(|known| known.is_active() && known.opt_out.covers(&opt_out));
            match known {
                Some(known) => {
                    additions.existing += 1;
                    additions.known.extend(Some(known.opt_out.clone()).filter(|_| are_few));
                    known.keep_repetition([opt_out]);
                }
                None => {
                    additions.added += 1;
                    let mut new = ListedOptOut::new(opt_out);
                    new.keep_repetition(replaced);
                    self.records.push(new);
                }
            }
        }
        if additions.added > 0 {
            self.version += 1;
        }
        additions
    }

    fn remove_opt_outs(&mut self, at: Timestamp, removal: &OptOutRemoval) -> Vec<OptOut> {
        let addressee = match &removal.target {
            RemovalTarget::Number { phone, .. } => Some(self.as_listed((*phone).into())),
            RemovalTarget::Entries(_) => None,
        };
        let is_target = |opt_out: &OptOut| match &removal.target {
            RemovalTarget::Number { scope, .. } => {
                Some(opt_out.who) == addressee && scope.as_ref().is_none_or(|scope| *scope == opt_out.scope)
            }
            RemovalTarget::Entries(entries) => entries.contains(opt_out),
        };
        let mut removed = Vec::new();
        for known in self.records.iter_mut().filter(|known| known.is_active() && is_target(&known.opt_out)) {
            known.end(at, &removal.by, removal.why.as_deref().unwrap_or_default());
            removed.push(known.opt_out.clone());
        }
        if !removed.is_empty() {
            self.version += 1;
        }
        removed
    }

    /// Ends the opt-outs that precede these opt-ins. If an opt-out was repeated after the opt-in, its latest repetition
    /// is put on the list.
    pub(super) fn end_opt_outs(&mut self, mut opted_in: Vec<OptIn>) {
        opted_in.iter_mut().for_each(|opt_in| opt_in.who = self.as_listed(opt_in.who));
        let (mut has_ended, mut later) = (false, Vec::new());
        for known in self.records.iter_mut().filter(|known| known.is_active()) {
            let Some(opt_in) = OptIn::find_latest(&opted_in, &known.opt_out) else { continue };
            later.extend(known.repetition.take().filter(|repetition| !opt_in.ends(repetition)));
            known.end(opt_in.at, &opt_in.source, &opt_in.reason);
            has_ended = true;
        }
        self.add_opt_outs(later);
        self.version += u64::from(has_ended);
    }

    /// Replaces each number with its hash if the list contains the hash, and drops opt-outs that a later opt-in has
    /// already ended.
    pub(super) fn drop_ended_opt_outs(&self, opt_outs: &mut Vec<OptOut>) {
        opt_outs.iter_mut().for_each(|new| new.who = self.as_listed(new.who));
        opt_outs.retain(|new| {
            !self.records.iter().any(|known| known.end.as_ref().is_some_and(|end| end.revokes(&known.opt_out, new)))
        });
    }

    /// The rows of an envelope whose recipients opted out of this run's messages.
    pub(super) fn find_opted_out_rows(&self, run: &Run, rows: &[SentRow]) -> Vec<Row> {
        let is_suppressed = |sent: &&SentRow| {
            let addressee = self.as_listed(sent.to);
            self.iter_active().any(|opt_out| opt_out.who == addressee && run.is_suppressed_by(opt_out))
        };
        rows.iter().filter(is_suppressed).map(|sent| sent.row).collect()
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
            let suppressed = list.iter_active().filter(|opt_out| policy.applies_opt_out(campaign, opt_out));
            let numbers = suppressed.map(|opt_out| opt_out.who.to_u64()).collect();
            SuppressedNumbers { version: list.version, numbers: NumberSet::new(numbers, list.key()) }
        })
    }

    fn list_opt_outs(&self, filter: OptOutFilter) -> LedgerFuture<'_, OptOutPage> {
        self.read_contents(move |contents| {
            let list = &contents.opt_outs;
            match filter {
                OptOutFilter::Listed { behind, at_most } => list.list_page(behind, at_most),
                OptOutFilter::OfNumber(phone) => list.list_for_number(phone, |end| end.is_none()),
                OptOutFilter::EndedOfNumber(phone) => list.list_for_number(phone, Option::is_some),
            }
        })
    }
}

impl OptOutList {
    fn list_page(&self, offset: Option<i64>, at_most: u32) -> OptOutPage {
        let offset = usize::try_from(offset.unwrap_or(0)).unwrap_or(0);
        let records = (1..).zip(&self.records).skip(offset);
        let part: Vec<(i64, &OptOut)> = records
            .filter(|(_, known)| known.is_active())
            .map(|(key, known)| (key, &known.opt_out))
            .take(at_most as usize)
            .collect();
        let next = part.last().filter(|_| part.len() >= at_most as usize).map(|(key, _)| *key);
        let to_record = |(_, opt_out): (i64, &OptOut)| OptOutRecord { opt_out: opt_out.clone(), end: None };
        OptOutPage { entries: part.into_iter().map(to_record).collect(), next }
    }

    fn list_for_number(&self, phone: Phone, matches_end: impl Fn(&Option<OptOutEnd>) -> bool) -> OptOutPage {
        let addressee = self.as_listed(phone.into());
        let records = self.records.iter().filter(|known| known.opt_out.who == addressee && matches_end(&known.end));
        let to_record = |known: &ListedOptOut| OptOutRecord { opt_out: known.opt_out.clone(), end: known.end.clone() };
        OptOutPage { entries: records.map(to_record).collect(), next: None }
    }

    /// The numbers that opted out because of the run with this name.
    pub(super) fn numbers_opted_out_by_run(&self, run: &str) -> NumberSet {
        let sources = [reply_source(run), rejection_source(run)];
        let from_run = self.iter_active().filter(|opt_out| sources.iter().any(|source| **source == *opt_out.source));
        NumberSet::new(from_run.map(|opt_out| opt_out.who.to_u64()).collect(), self.key())
    }
}

/// The key for hashes of numbers.
const NUMBER_KEY: [u8; NumberKey::LENGTH] = *b"numbers that are kept in memory.";

impl LedgerContents {
    fn forget_number(&mut self, order: ForgetOrder) -> Result<(), LedgerError> {
        let ForgetOrder { phone, rows, cancelled_in, opt_out } = order;
        let key = NumberKey::new(NUMBER_KEY);
        let forgotten = NumberErasure { phone, hash: key.hash_number(phone) };
        self.opt_outs.forget_number(forgotten, key, opt_out);
        for (run, rows) in rows {
            let stored = self.stored_run_mut(run)?;
            for envelope in stored.envelopes.values_mut() {
                forgotten.erase_from_envelope(envelope, &rows);
            }
            let has_row = |row: &Row| rows.contains(row.get());
            let receipts = stored.receipts.iter_mut().filter(|(row, _)| has_row(row));
            receipts.flat_map(|(_, stored)| stored).for_each(|stored| erase_texts_from_receipt(&mut stored.receipt));
            let events = stored.events.iter_mut().filter(|event| has_row(&event.row));
            events.for_each(|event| erase_text_from_change(&mut event.change));
            let inquiries = stored.inquiries.iter_mut().filter(|(row, _)| has_row(row));
            inquiries.for_each(|(_, inquiry)| forgotten.erase_from_inquiry(inquiry));
            stored.consents.retain(|row, _| !has_row(row));
            let excluded = stored.excluded.rows();
            (&rows - excluded)
                .iter()
                .for_each(|row| stored.excluded.insert(Row::new(row), RowState::Skipped, OPTED_OUT));
            stored.forgotten |= &rows;
            stored.rows_to_forget |= rows;
        }
        for run in cancelled_in {
            self.stored_run_mut(run)?.cancelled.insert(forgotten.addressee().to_u64());
        }
        let stored_runs: Vec<RunId> = self.stored_runs().map(|stored| stored.run.key).collect();
        for run in stored_runs {
            let reason = &mut self.stored_run_mut(run)?.run.stop_reason;
            *reason = reason.take().map(|text| forgotten.erase_from_text(&text));
        }
        self.notifications.iter_mut().for_each(|queued| queued.erase_number(forgotten));
        Ok(())
    }

    fn purge_run(&mut self, now: i64, order: PurgeOrder) -> Result<Ownership, LedgerError> {
        let PurgeOrder { counted, counts, parts, cancelled } = order;
        let stored = self.stored_run_mut(counted.key)?;
        if !stored.run.mark_purged(timestamp_from_micros(now)?, &counted, (counts, parts)) {
            return Ok(Ownership::Lost);
        }
        let key = NumberKey::new(NUMBER_KEY);
        let to_hash = |member| Phone::new(member).map(|phone| Addressee::Forgotten(key.hash_number(phone)).to_u64());
        stored.cancelled.extend(cancelled.iter().filter_map(to_hash));
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
        purged.iter().for_each(|run| drop(self.stored_copies().set_aside(&run.name())));
        Box::pin(async { Ok(()) })
    }
}

impl ConsentStore for MemoryLedger {
    fn load_consents(&self, run: RunId, rows: RowSpan) -> LedgerFuture<'_, Vec<ConsentEvidence>> {
        self.read_contents(move |contents| contents.list_consents(run, rows))
    }
}

impl LedgerContents {
    pub(super) fn store_consents(&mut self, run: RunId, blocks: &[ConsentBlock]) -> Result<(), LedgerError> {
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
                    if let RepeatCheck::Reserved(reservation) = &check {
                        repeats.insert(hash, reservation.until);
                    }
                    check
                }
                RepeatRequest::Release(reservation) => {
                    match reservation.plan_release(repeats.get(&reservation.hash).copied(), now) {
                        ReservationRelease::Nothing => {}
                        ReservationRelease::Restore(before) => drop(repeats.insert(reservation.hash, before)),
                        ReservationRelease::Delete => drop(repeats.remove(&reservation.hash)),
                    }
                    look_for_repeat(repeats.get(&reservation.hash).copied(), now)
                }
            })
        })
    }
}
