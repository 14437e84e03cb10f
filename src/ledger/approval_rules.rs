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
    /// The rule as its owner writes it; the ledger does not read it.
    pub rule: String,
    /// Who recorded it.
    pub by: String,
    /// When it was recorded.
    pub at: Timestamp,
}

/// The part of the ledger that keeps the `approval` rules of accounts.
pub trait ApprovalRules: Send + Sync {
    /// The latest rule of an account or of a profile with this name; nothing if neither ever had one.
    fn approval_rule<'a>(&'a self, account: &'a str, gateway: &'a str) -> LedgerFuture<'a, Option<KeptApprovalRule>>;

    /// Records a rule. Earlier ones stay as the history.
    fn keep_approval_rule(&self, rule: KeptApprovalRule) -> LedgerFuture<'_, ()>;
}
