//! Queries and requests that use only the methods of the ledger port, so they work with every ledger.

use roaring::RoaringBitmap;

use super::{
    Allowance, ApprovalFilter, DamagedPlan, EndedOptOut, EnvelopeFilter, Ledger, LedgerError, MessageOrigin,
    NumberFilter, OptOut, OptOutFilter, OptOutRecord, Plan, PlanFilter, PlanRecord, RateRequest, RowSpan, Run,
    RunFilter, RunId, RunUpdate, SlotPermit, SlotWait, StoredApproval, StoredApprovalRule, StoredPlanRecord,
    WaitReason,
};
use campaign_core::domain::{Addressee, MessageId, Phone, Row};

impl dyn Ledger + '_ {
    /// The opened runs that match the filter, oldest first.
    ///
    /// # Errors
    /// If one of their records is damaged, or the ledger cannot be read.
    pub async fn list_runs(&self, filter: RunFilter) -> Result<Vec<Run>, LedgerError> {
        let stored = self.list_stored_runs(filter).await?;
        stored.into_iter().map(|run| run.map_err(|damaged| damaged.error)).collect()
    }

    /// The run and row of a message identifier. The lookup uses ranges, so nothing is stored per message.
    ///
    /// # Errors
    /// If the record of the run is damaged, or the ledger cannot be read.
    pub async fn find_message(&self, id: MessageId) -> Result<Option<MessageOrigin>, LedgerError> {
        let runs = self.list_runs(RunFilter::with_id(id)).await?;
        Ok(runs.iter().find_map(|run| Some(MessageOrigin { run: run.key, row: run.find_row(id)? })))
    }

    /// The rows that processes own in a shared or sharded run.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn load_claimed_rows(&self, run: RunId) -> Result<RoaringBitmap, LedgerError> {
        let rows: Vec<RowSpan> = self.list_owned_blocks(run).await?.iter().map(|block| block.rows).collect();
        Ok(RowSpan::union(&rows))
    }

    /// The addressee of a row. `None` for a row without an envelope.
    ///
    /// # Errors
    /// If all records of its envelopes are damaged, or the ledger cannot be read.
    pub async fn find_addressee(&self, run: RunId, row: Row) -> Result<Option<Addressee>, LedgerError> {
        let envelopes = self.load_envelopes(run, EnvelopeFilter::Row(row)).await?;
        let mut sent = envelopes.iter().flat_map(|envelope| &envelope.rows);
        Ok(sent.find(|sent| sent.row == row).map(|sent| sent.to))
    }

    /// The opt-outs of a number on the suppression list, even if the number was forgotten.
    ///
    /// # Errors
    /// If one of them is damaged, or the ledger cannot be read.
    pub async fn find_opt_outs(&self, phone: Phone) -> Result<Vec<OptOut>, LedgerError> {
        Ok(self.list_opt_outs(OptOutFilter::OfNumber(phone)).await?.into_opt_outs().collect())
    }

    /// The opt-outs of a number that are no longer on the list, oldest first.
    ///
    /// # Errors
    /// If one of them is damaged, or the ledger cannot be read.
    pub async fn find_ended_opt_outs(&self, phone: Phone) -> Result<Vec<EndedOptOut>, LedgerError> {
        let records = self.list_opt_outs(OptOutFilter::EndedOfNumber(phone)).await?.entries.into_iter();
        Ok(records.filter_map(|OptOutRecord { opt_out, end }| Some(EndedOptOut { opt_out, end: end? })).collect())
    }

    /// The number of recipients who opted out by replying to a run, or because the gateway rejected its messages.
    /// Opt-outs that ended do not count.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn count_opt_outs_from(&self, run: &str) -> Result<u64, LedgerError> {
        Ok(self.load_numbers(NumberFilter::OptedOut(run)).await?.len())
    }

    /// The plans whose digests begin with this prefix, newest first. Expired plans are omitted. A damaged record does
    /// not hide the others.
    ///
    /// # Errors
    /// If the ledger cannot be read.
    pub async fn list_plans(&self, digest: &str) -> Result<Vec<Result<Plan, DamagedPlan>>, LedgerError> {
        let records = self.list_records(PlanFilter::Plans(digest)).await?.into_iter();
        Ok(records.filter_map(|stored| stored.map(StoredPlanRecord::into_plan).transpose()).collect())
    }

    /// The plans whose digests begin with this prefix, newest first.
    ///
    /// # Errors
    /// If one of them is damaged, or the ledger cannot be read.
    pub async fn find_plans(&self, digest: &str) -> Result<Vec<Plan>, LedgerError> {
        self.list_plans(digest).await?.into_iter().map(|plan| plan.map_err(|damaged| damaged.error)).collect()
    }

    /// The approvals that match the filter, oldest first.
    ///
    /// # Errors
    /// If one of them is damaged, or the ledger cannot be read.
    pub async fn list_approvals(&self, filter: ApprovalFilter<'_>) -> Result<Vec<StoredApproval>, LedgerError> {
        let records = self.list_records(PlanFilter::Approvals(filter)).await?.into_iter();
        let approvals = records.filter_map(|stored| stored.map(StoredPlanRecord::into_approval).transpose());
        approvals.map(|approval| approval.map_err(|damaged| damaged.error)).collect()
    }

    /// All approval rules of accounts, oldest first.
    ///
    /// # Errors
    /// If one of them is damaged, or the ledger cannot be read.
    pub async fn list_approval_rules(&self) -> Result<Vec<StoredApprovalRule>, LedgerError> {
        let records = self.list_records(PlanFilter::Rules).await?.into_iter();
        let rules = records.filter_map(|stored| stored.map(StoredPlanRecord::into_rule).transpose());
        rules.map(|rule| rule.map_err(|damaged| damaged.error)).collect()
    }

    /// Uses an approval, for a run if there is one. Returns whether the approval was valid.
    ///
    /// # Errors
    /// If its record is damaged, or the ledger cannot be written.
    pub async fn use_approval(&self, token: &str, run: Option<RunId>) -> Result<bool, LedgerError> {
        self.store_record(PlanRecord::Use { token: token.to_owned(), run }).await
    }

    /// Takes slots for `count` operations from the account's rate limit, and returns the wait.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn reserve_rate(&self, account: &Allowance, count: u32) -> Result<SlotWait, LedgerError> {
        Ok(match self.use_rate_limit(account, RateRequest::Operations(count)).await? {
            SlotPermit::Granted { wait, next: _ } => wait,
            SlotPermit::Later(time) => SlotWait { time, reason: WaitReason::RateLimitUsed },
        })
    }

    /// Makes a commit without changes, which proves that the ledger is writable.
    ///
    /// # Errors
    /// If the ledger cannot be written.
    pub async fn check_writable(&self) -> Result<(), LedgerError> {
        self.update_runs(Vec::new(), RunUpdate::Proven).await
    }
}
