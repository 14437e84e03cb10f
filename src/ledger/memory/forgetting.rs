//! Forgetting a person in memory.

use roaring::{RoaringBitmap, RoaringTreemap};

use super::contents::parse_instant;
use super::{LedgerContents, MemoryLedger};
use crate::domain::{Addressee, Phone, Row};
use crate::ledger::rules::{NumberErasure, forget_in_change, forget_in_receipt};
use crate::ledger::{
    ForgetOrder, Forgetting, LedgerError, LedgerFuture, NewCopies, NumberKey, NumberSet, OPTED_OUT, Ownership,
    RowState, Run, RunId, StateCounts,
};

/// With what numbers are hashed in memory.
const NUMBER_KEY: [u8; NumberKey::LENGTH] = *b"numbers that are kept in memory.";

impl LedgerContents {
    fn forget_number(&mut self, order: ForgetOrder) -> Result<(), LedgerError> {
        let ForgetOrder { phone, rows, opt_out } = order;
        let key = NumberKey::new(NUMBER_KEY);
        let forgotten = NumberErasure { phone, stays: key.hash_number(phone) };
        self.opt_outs.forget_number(forgotten, key, opt_out);
        for (run, rows) in rows {
            let book = self.stored_run_mut(run)?;
            for (number, envelope) in &mut book.envelopes {
                let mut none = Vec::new();
                let outcomes = envelope.settled.as_mut().map_or(&mut none, |(_, outcomes)| outcomes);
                if forgotten.erase_from_envelope(&mut envelope.rows, outcomes, &rows) {
                    let alone = envelope.rows.iter().all(|sent| rows.contains(sent.row.get()));
                    let kept = book.evidence.remove(number).filter(|_| !alone);
                    book.evidence.extend(kept.map(|body| (*number, forgotten.erase_from_text(&body))));
                }
            }
            let about = |row: &Row| rows.contains(row.get());
            let told = book.receipts.iter_mut().filter(|(row, _)| about(row));
            told.flat_map(|(_, kept)| kept).for_each(|kept| forget_in_receipt(&mut kept.receipt));
            let decided = book.events.iter_mut().filter(|event| about(&event.row));
            decided.for_each(|event| forget_in_change(&mut event.change));
            let asked = book.questions.iter_mut().filter(|(row, _)| about(row));
            asked.for_each(|(_, question)| question.answer = forgotten.erase_from_text(&question.answer));
            let out = book.excluded.rows();
            (&rows - out).iter().for_each(|row| book.excluded.insert(Row::new(row), RowState::Skipped, OPTED_OUT));
            book.forgotten |= &rows;
            book.rows_to_forget |= rows;
        }
        let books: Vec<RunId> = self.stored_runs().map(|book| book.run.key).collect();
        for run in books {
            let stopped = &mut self.stored_run_mut(run)?.run.stop_reason;
            *stopped = stopped.take().map(|words| forgotten.erase_from_text(&words));
        }
        self.notifications.iter_mut().for_each(|waiting| waiting.forget(forgotten));
        Ok(())
    }

    fn purge_run(&mut self, now: i64, counted: &Run, counts: (StateCounts, u64)) -> Result<Ownership, LedgerError> {
        let book = self.stored_run_mut(counted.key)?;
        if !book.run.mark_purged(parse_instant(now)?, counted, counts) {
            return Ok(Ownership::Lost);
        }
        let key = NumberKey::new(NUMBER_KEY);
        book.purge_records(&key);
        self.opt_outs.set_key(key);
        Ok(Ownership::Held)
    }

    fn list_rows_to_forget(&self) -> Vec<(RunId, RoaringBitmap)> {
        let waiting = self.stored_runs().filter(|book| !book.rows_to_forget.is_empty());
        waiting.map(|book| (book.run.key, book.rows_to_forget.clone())).collect()
    }
}

impl Forgetting for MemoryLedger {
    fn forget_number(&self, order: ForgetOrder) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, _| contents.forget_number(order))
    }

    fn list_rows_to_forget(&self) -> LedgerFuture<'_, Vec<(RunId, RoaringBitmap)>> {
        self.read_contents(LedgerContents::list_rows_to_forget)
    }

    fn mark_rows_forgotten(&self, runs: Vec<RunId>) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, _| {
            runs.into_iter().try_for_each(|run| {
                contents.stored_run_mut(run)?.rows_to_forget.clear();
                Ok(())
            })
        })
    }

    fn prepare_replacement_copies<'a>(&'a self, _: &'a Run) -> LedgerFuture<'a, Box<dyn NewCopies>> {
        Box::pin(async { Ok(self.copy_store().prepare()) })
    }

    fn purge_run(&self, counted: Run, counts: StateCounts, parts: u64) -> LedgerFuture<'_, Ownership> {
        self.write_contents(move |contents, now| contents.purge_run(now, &counted, (counts, parts)))
    }

    fn keep_cancelled_numbers(&self, run: RunId, numbers: RoaringTreemap) -> LedgerFuture<'_, ()> {
        self.write_contents(move |contents, _| {
            let key = NumberKey::new(NUMBER_KEY);
            let stays = |member| Phone::new(member).map(|phone| Addressee::Forgotten(key.hash_number(phone)).to_u64());
            contents.stored_run_mut(run)?.cancelled = numbers.iter().filter_map(stays).collect();
            contents.opt_outs.set_key(key);
            Ok(())
        })
    }

    fn load_cancelled_numbers(&self, run: RunId) -> LedgerFuture<'_, NumberSet> {
        self.read_contents(move |contents| {
            let kept = contents.stored_run(run).map(|book| book.cancelled.clone()).unwrap_or_default();
            NumberSet::new(kept, contents.opt_outs.key())
        })
    }

    fn discard_copies<'a>(&'a self, run: &'a Run) -> LedgerFuture<'a, ()> {
        Box::pin(async {
            self.copy_store().set_aside(&run.name());
            Ok(())
        })
    }

    fn overwrite_free_space(&self) -> LedgerFuture<'_, ()> {
        self.read_contents(|_| ())
    }
}
