//! Receipts in memory.

use std::ops::Range;

use jiff::Timestamp;

use super::{Contents, MemoryLedger};
use crate::domain::{Addressee, Row};
use crate::ledger::receipts::keep;
use crate::ledger::rules::forget_in_receipt;
use crate::ledger::{
    KeptReceipt, LedgerError, LedgerFuture, NewReceipt, Receipts, Reception, RowReceipts, RunId, StateCounts,
};

impl Contents {
    pub(crate) fn receive(&mut self, now: i64, receipts: Vec<NewReceipt>) -> Result<Vec<Reception>, LedgerError> {
        let at = Timestamp::from_millisecond(now.div_euclid(1_000)).unwrap_or(Timestamp::MAX);
        let mut opted_out = Vec::new();
        let keep = |NewReceipt { run, row, order, mut receipt, opt_out }| {
            // An opt-out is recorded even if its receipt is not stored.
            opted_out.extend(opt_out);
            let book = self.book_mut(run)?;
            if book.run.purged_at.is_some() {
                return Ok(Reception::Known);
            }
            if book.forgotten.contains(row.get()) {
                forget_in_receipt(&mut receipt);
            }
            let reception = keep(book.receipts.entry(row).or_default(), KeptReceipt { order, at, receipt });
            book.run.receipts += u64::from(reception == Reception::Kept);
            Ok(reception)
        };
        let receptions = receipts.into_iter().map(keep).collect();
        self.opt_outs.add(opted_out);
        receptions
    }

    pub(crate) fn counted(
        &mut self,
        run: RunId,
        counts: StateCounts,
        parts: u64,
        receipts: u64,
    ) -> Result<(), LedgerError> {
        self.book_mut(run)?.run.counted(counts, parts, receipts);
        Ok(())
    }

    pub(crate) fn sent_to(&self, run: RunId, row: Row) -> Option<Addressee> {
        let mut sent = self.book(run).ok()?.envelopes.values().flat_map(|envelope| &envelope.rows);
        sent.find(|sent| sent.row == row).map(|sent| sent.to)
    }

    pub(crate) fn receipts(&self, run: RunId, rows: Range<u32>) -> Vec<RowReceipts> {
        let Ok(book) = self.book(run) else { return Vec::new() };
        let rows = book.receipts.range(Row::new(rows.start)..Row::new(rows.end));
        rows.map(|(row, receipts)| (*row, receipts.clone())).collect()
    }
}

impl Receipts for MemoryLedger {
    fn receive(&self, receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<Reception>> {
        self.change(move |contents, now| contents.receive(now, receipts))
    }

    fn keep_hook_secrets<'a>(&'a self, address: &'a str, check_values: Vec<String>) -> LedgerFuture<'a, ()> {
        self.change(move |contents, _| {
            contents.hooks.insert(address.to_owned(), check_values);
            Ok(())
        })
    }

    fn hook_secrets<'a>(&'a self, address: &'a str) -> LedgerFuture<'a, Vec<String>> {
        self.look(move |contents| contents.hooks.get(address).cloned().unwrap_or_default())
    }

    fn counted(&self, run: RunId, counts: StateCounts, parts: u64, receipts: u64) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| contents.counted(run, counts, parts, receipts))
    }

    fn keep_figures(&self, run: RunId, figures: Vec<u8>) -> LedgerFuture<'_, ()> {
        self.change(move |contents, _| {
            contents.figures.insert(run, figures);
            Ok(())
        })
    }

    fn figures(&self, run: RunId) -> LedgerFuture<'_, Option<Vec<u8>>> {
        self.look(move |contents| contents.figures.get(&run).cloned())
    }

    fn sent_to(&self, run: RunId, row: Row) -> LedgerFuture<'_, Option<Addressee>> {
        self.look(move |contents| contents.sent_to(run, row))
    }

    fn receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>> {
        self.look(move |contents| contents.receipts(run, rows))
    }
}
