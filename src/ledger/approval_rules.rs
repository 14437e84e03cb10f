//! The `approval` rule of each account, which the ledger keeps so that another profile cannot drop it.

use jiff::Timestamp;

use super::LedgerFuture;

/// The rule of an account, as a profile had it or a person accepted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptApprovalRule {
    /// The account.
    pub account: String,
    /// The profile that had the rule.
    pub gateway: String,
    /// The hosts of the profile.
    pub hosts: Vec<String>,
    /// The rule as its owner writes it; the ledger does not read it.
    pub rule: String,
    /// Who recorded it.
    pub by: String,
    /// When it was recorded.
    pub at: Timestamp,
}

/// The part of the ledger that keeps the `approval` rules of accounts.
pub trait ApprovalRuleStore: Send + Sync {
    /// All rules that were ever recorded, oldest first.
    fn list_approval_rules(&self) -> LedgerFuture<'_, Vec<KeptApprovalRule>>;

    /// Records a rule. Earlier ones stay as the history.
    fn keep_approval_rule(&self, rule: KeptApprovalRule) -> LedgerFuture<'_, ()>;
}
