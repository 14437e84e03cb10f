//! Records that are damaged, with what can still be read of them. Nothing is ever sent by what they say.

use jiff::Timestamp;

use super::LedgerError;

/// A schedule whose record is damaged. Nothing of it fires.
#[derive(Clone, Debug)]
pub struct DamagedSchedule {
    /// Its name, as far as it can be read.
    pub name: String,
    /// The campaign file, as far as it can be read.
    pub file: String,
    /// What is wrong with the record.
    pub error: LedgerError,
}

/// The record of an occurrence that is damaged.
#[derive(Clone, Debug)]
pub struct DamagedOccurrence {
    /// The moment that it names, as far as it can be read.
    pub at: Option<Timestamp>,
    /// What is wrong with the record.
    pub error: LedgerError,
}

/// A plan whose record is damaged.
#[derive(Clone, Debug)]
pub struct DamagedPlan {
    /// What it is of, as far as it can be read.
    pub record: String,
    /// When it was made, as far as it can be read.
    pub at: Option<Timestamp>,
    /// What is wrong with the record.
    pub error: LedgerError,
}

/// A run whose record is damaged.
#[derive(Clone, Debug)]
pub struct DamagedRun {
    /// Its name, as far as it can be read.
    pub name: String,
    /// What is wrong with the record.
    pub error: LedgerError,
}

/// A damaged record outside of the runs, as a look at the whole ledger finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedRecord {
    /// Which record it is, and what is wrong with it.
    pub what: String,
    /// What it is a record of.
    pub kind: RecordKind,
}

/// What a record outside of the runs is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// An active schedule.
    Schedule {
        /// Its name, as far as it can be read.
        name: String,
        /// The campaign file, as far as it can be read.
        file: String,
    },
    /// An occurrence of a schedule.
    Occurrence {
        /// The schedule's name, as far as it can be read.
        schedule: String,
    },
    /// A plan.
    Plan,
    /// An approval, or a use of one.
    Approval,
    /// The approval rule of an account.
    ApprovalRule,
    /// A notification.
    Notification,
    /// The rate of an account.
    Account,
    /// The key with which forgotten numbers are hashed.
    Forgetting,
}
