//! Receipts in memory.

use std::ops::Range;

use jiff::Timestamp;

use super::{LedgerContents, MemoryLedger};
use crate::receipts::add_receipt;
use crate::rules::erase_texts_from_receipt;
use crate::{LedgerError, LedgerFuture, NewReceipt, ReceiptOutcome, ReceiptStore, RowReceipts, RunId, StoredReceipt};
use campaign_core::domain::Row;

impl LedgerContents {
    pub fn store_receipts(&mut self, now: i64, receipts: Vec<NewReceipt>) -> Result<Vec<ReceiptOutcome>, LedgerError> {
        let at = Timestamp::from_millisecond(now.div_euclid(1_000)).unwrap_or(Timestamp::MAX);
        let (mut opted_out, mut opted_in) = (Vec::new(), Vec::new());
        let store = |mut new: NewReceipt| {
            let stored = self.stored_run_mut(new.run)?;
            let is_purged = stored.run.purged_at.is_some();
            if !is_purged && stored.forgotten.contains(new.row.get()) {
                erase_texts_from_receipt(&mut new.receipt);
            }
            new.limit_wish_times(stored.receipts.get(&new.row).map_or(&[], Vec::as_slice));
            let NewReceipt { run: _, row, order, receipt, opt_out, opt_in } = new;
            // Opt-outs and opt-ins count even if their receipts are not stored.
            opted_out.extend(opt_out);
            opted_in.extend(opt_in);
            if is_purged {
                return Ok(ReceiptOutcome::Known);
            }
            let outcome = add_receipt(stored.receipts.entry(row).or_default(), StoredReceipt { order, at, receipt });
            stored.run.receipts += u64::from(outcome == ReceiptOutcome::Stored);
            Ok(outcome)
        };
        let outcomes = receipts.into_iter().map(store).collect();
        self.opt_outs.drop_ended_opt_outs(&mut opted_out);
        self.opt_outs.add_opt_outs(opted_out);
        self.opt_outs.end_opt_outs(opted_in);
        outcomes
    }

    pub fn load_receipts(&self, run: RunId, rows: Range<u32>) -> Vec<RowReceipts> {
        let Ok(stored) = self.stored_run(run) else { return Vec::new() };
        let rows = stored.receipts.range(Row::new(rows.start)..Row::new(rows.end));
        rows.map(|(row, receipts)| (*row, receipts.clone())).collect()
    }
}

impl ReceiptStore for MemoryLedger {
    fn store_receipts(&self, receipts: Vec<NewReceipt>) -> LedgerFuture<'_, Vec<ReceiptOutcome>> {
        self.write_contents(move |contents, now| contents.store_receipts(now, receipts))
    }

    fn remember_check_values<'a>(
        &'a self,
        address: &'a str,
        check_values: Option<Vec<String>>,
    ) -> LedgerFuture<'a, Vec<String>> {
        match check_values {
            Some(check_values) => self.write_contents(move |contents, _| {
                contents.webhook_secrets.insert(address.to_owned(), check_values.clone());
                Ok(check_values)
            }),
            None => {
                self.read_contents(move |contents| contents.webhook_secrets.get(address).cloned().unwrap_or_default())
            }
        }
    }

    fn load_figures(&self, run: RunId) -> LedgerFuture<'_, Option<Vec<u8>>> {
        self.read_contents(move |contents| contents.figures.get(&run).cloned())
    }

    fn load_receipts(&self, run: RunId, rows: Range<u32>) -> LedgerFuture<'_, Vec<RowReceipts>> {
        self.read_contents(move |contents| contents.load_receipts(run, rows))
    }
}
