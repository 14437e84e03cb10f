//! The course of a run: who takes it, who ends it, and what opens it again.

use jiff::Timestamp;

use crate::ledger::{
    CampaignLock, Epoch, ExcludedRows, Lease, LedgerError, NewNotification, NewRowEvent, RetriedRow, RetryOrder,
    RowChange, RowStates, Run, RunEnd, RunProgress, StateCounts,
};

impl Run {
    /// Whether a process has the whole run by this right still; only then may it record or end anything.
    #[must_use]
    pub fn is_leased(&self, lease: Lease) -> bool {
        self.key == lease.run && self.epoch == Some(lease.epoch)
    }

    /// Whether a process may send any row of it by this right: not where rows are sent in shares.
    pub(in crate::ledger) fn may_send_whole_run(&self, lease: Lease) -> bool {
        self.is_leased(lease) && self.sharding.is_none()
    }

    /// Whether a process that drew rows of it may send them: not once whoever has the whole run ended it.
    pub(in crate::ledger) fn may_send_drawn_rows(&self) -> bool {
        self.shared || self.ended_at.is_none()
    }

    /// A process takes it: what its last end said is not true any more.
    pub(in crate::ledger) fn start_claim(&mut self, epoch: Epoch) {
        self.epoch = Some(epoch);
        (self.stop, self.stop_reason, self.counts, self.ended_at) = (None, None, None, None);
    }

    /// Whoever has it ends it and gives it up, which gives what is told of it; from anybody else it is nothing.
    pub(in crate::ledger) fn record_end(&mut self, lease: Lease, end: RunEnd) -> Vec<NewNotification> {
        if !self.is_leased(lease) {
            return Vec::new();
        }
        let RunEnd {
            progress,
            stop,
            stop_reason: stopped,
            counts,
            parts,
            receipts,
            results,
            lag,
            at,
            notifications: told,
        } = end;
        (self.epoch, self.stop_requested) = (None, false);
        (self.progress, self.stop, self.stop_reason) = (progress, stop, stopped);
        self.results = results;
        // Others go on with a shared run: what one of them counts at its end is not what it comes to.
        if !self.shared {
            (self.counts, self.receipts_counted, self.ended_at) = (Some((counts, parts)), receipts, Some(at));
        }
        // What was seen once of the gateway stays seen.
        self.lag = self.lag.max(lag);
        told
    }

    /// Another run takes its place: it ends as it is.
    pub(in crate::ledger) fn mark_replaced(&mut self, at: Timestamp) {
        (self.progress, self.epoch, self.ended_at) = (RunProgress::Replaced, None, Some(at));
        self.skip_unsent();
    }

    /// Counts the rows as skipped that a replaced run did not send, as their states say. An earlier version counted them as
    /// planned.
    pub(in crate::ledger) fn skip_unsent(&mut self) {
        if let (RunProgress::Replaced, Some((counts, _))) = (self.progress, &mut self.counts) {
            counts.skip_planned();
        }
    }

    /// Its rows were counted anew when it had so many receipts; nothing where somebody has it by now, or never ended it.
    pub(in crate::ledger) fn set_counts(&mut self, counts: StateCounts, parts: u64, receipts: u64) {
        if self.counts.is_some() && self.epoch.is_none() {
            (self.counts, self.receipts_counted) = (Some((counts, parts)), receipts);
        }
    }

    /// An answer came after its end and proves more than was known: what its end counted is counted anew.
    pub(in crate::ledger) fn recount(&mut self, states: &RowStates, left_out: &ExcludedRows) {
        if let Some(counts) = &mut self.counts {
            *counts = (states.count_states(self.recipients, left_out), states.billed_parts().billed);
            self.receipts_counted = self.receipts;
        }
    }

    /// What was known of its rows goes, which came to these counts; tells whether it does: not where somebody has it, or more
    /// became known of it since it was read as `counted`.
    pub(in crate::ledger) fn mark_purged(&mut self, at: Timestamp, counted: &Run, counts: (StateCounts, u64)) -> bool {
        let stands = |run: &Self| (run.progress, run.receipts, run.ended_at, run.blocks.len(), run.purged_at);
        let is_over = self.epoch.is_none() && self.progress != RunProgress::Open && self.purged_at.is_none();
        if !is_over || stands(self) != stands(counted) {
            return false;
        }
        (self.purged_at, self.counts, self.receipts_counted) = (Some(at), Some(counts), self.receipts);
        true
    }

    /// Something was learnt or decided about its rows: where one is to be sent again, there is a run to go on with.
    pub(in crate::ledger) fn apply_changes<'a>(&mut self, changes: impl IntoIterator<Item = &'a RowChange>) {
        if changes.into_iter().any(|change| matches!(change, RowChange::SendAgain { .. } | RowChange::Retry { .. })) {
            self.progress = RunProgress::Open;
        }
    }
}

/// Refuses whoever takes a run without holding its campaign on its account, and everybody once it was purged.
pub(in crate::ledger) fn check_lock(hold: &CampaignLock, run: &Run) -> Result<(), LedgerError> {
    LedgerError::refuse_purged(run)?;
    if hold.covers_run(run) { Ok(()) } else { Err(LedgerError::CampaignNotLocked { run: run.name() }) }
}

impl RetryOrder {
    /// What the order of that number says of each row.
    pub(in crate::ledger) fn into_events(self, number: u32) -> Vec<NewRowEvent> {
        let by = self.by;
        let event = |RetriedRow { row, envelope }| NewRowEvent {
            row,
            envelope,
            change: RowChange::Retry { by: by.clone(), order: number },
        };
        self.rows.into_iter().map(event).collect()
    }
}
