//! Forgetting a person in memory.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::contents::instant;
use super::{Contents, MemoryLedger};
use crate::domain::{Addressee, Phone, Row};
use crate::ledger::rules::{Forgotten, forget_in_change, forget_in_receipt};
use crate::ledger::{
    ForgetOrder, Forgetting, LedgerError, LedgerFuture, NewCopies, NumberKey, NumberSet, OPTED_OUT, Ownership, Run,
    RunId, State, StateCounts,
};

/// With what numbers are hashed in memory.
const KEY: [u8; NumberKey::LENGTH] = *b"numbers that are kept in memory.";

impl Contents {
    fn forget(&mut self, order: ForgetOrder) -> Result<(), LedgerError> {
        let ForgetOrder { phone, rows, opt_out } = order;
        let key = NumberKey::new(KEY);
        let forgotten = Forgotten { phone, stays: key.forgotten(phone) };
        self.opt_outs.forget(forgotten, key, opt_out);
        for (run, rows) in rows {
            let book = self.book_mut(run)?;
            for (number, envelope) in &mut book.envelopes {
                let mut none = Vec::new();
                let outcomes = envelope.settled.as_mut().map_or(&mut none, |(_, outcomes)| outcomes);
                if forgotten.in_envelope(&mut envelope.rows, outcomes, &rows) {
                    let alone = envelope.rows.iter().all(|sent| rows.contains(sent.row.get()));
                    let kept = book.evidence.remove(number).filter(|_| !alone);
                    book.evidence.extend(kept.map(|body| (*number, forgotten.in_words(&body))));
                }
            }
            let about = |row: &Row| rows.contains(row.get());
            let told = book.receipts.iter_mut().filter(|(row, _)| about(row));
            told.flat_map(|(_, kept)| kept).for_each(|kept| forget_in_receipt(&mut kept.receipt));
            let decided = book.events.iter_mut().filter(|event| about(&event.row));
            decided.for_each(|event| forget_in_change(&mut event.change));
            let asked = book.questions.iter_mut().filter(|(row, _)| about(row));
            asked.for_each(|(_, question)| question.answer = forgotten.in_words(&question.answer));
            let out = book.left_out.rows();
            (&rows - out).iter().for_each(|row| book.left_out.insert(Row::new(row), State::Skipped, OPTED_OUT));
            book.forgotten |= &rows;
            book.to_be_forgotten |= rows;
        }
        let books: Vec<RunId> = self.books().map(|book| book.run.key).collect();
        for run in books {
            let stopped = &mut self.book_mut(run)?.run.stopped;
            *stopped = stopped.take().map(|words| forgotten.in_words(&words));
        }
        self.waiting.iter_mut().for_each(|waiting| waiting.forget(forgotten));
        Ok(())
    }

    fn purge(&mut self, now: i64, counted: &Run, counts: (StateCounts, u64)) -> Result<Ownership, LedgerError> {
        let book = self.book_mut(counted.key)?;
        if !book.run.purge(instant(now)?, counted, counts) {
            return Ok(Ownership::Lost);
        }
        let key = NumberKey::new(KEY);
        book.purge(&key);
        self.opt_outs.hash_with(key);
        Ok(Ownership::Held)
    }

    fn to_be_forgotten(&self) -> Vec<(RunId, RoaringBitmap)> {
        let waiting = self.books().filter(|book| !book.to_be_forgotten.is_empty());
        waiting.map(|book| (book.run.key, book.to_be_forgotten.clone())).collect()
    }
}

impl Forgetting for MemoryLedger {
    fn forget(&self, order: ForgetOrder) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.forget(order))
    }

    fn to_be_forgotten(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        self.look(Contents::to_be_forgotten)
    }

    fn forgot(&self, runs: Vec<RunId>) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| {
            runs.into_iter().try_for_each(|run| {
                contents.book_mut(run)?.to_be_forgotten.clear();
                Ok(())
            })
        })
    }

    fn prepare_other_copies<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(async { Ok(self.copies().prepare()) })
    }

    fn purge(&self, counted: Run, counts: StateCounts, parts: u64) -> LedgerFuture<'_, Ownership> {
        self.change(move |contents, now| contents.purge(now, &counted, (counts, parts)))
    }

    fn keep_cancelled(&self, run: RunId, numbers: RoaringTreemap) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| {
            let key = NumberKey::new(KEY);
            let stays = |member| Phone::new(member).map(|phone| Addressee::Forgotten(key.forgotten(phone)).get());
            contents.book_mut(run)?.cancelled = numbers.iter().filter_map(stays).collect();
            contents.opt_outs.hash_with(key);
            Ok(())
        })
    }

    fn kept_cancelled(&self, run: RunId) -> LedgerFuture<'_, NumberSet> {
        self.look(move |contents| {
            let kept = contents.book(run).map(|book| book.cancelled.clone()).unwrap_or_default();
            NumberSet::new(kept, contents.opt_outs.key())
        })
    }

    fn discard_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, ()> {
        Box::pin(async {
            self.copies().put_aside(&run.name());
            Ok(())
        })
    }

    fn sweep(&self) -> LedgerFuture<'_, ()> {
        self.look(|_| ())
    }
}
