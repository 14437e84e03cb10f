//! What the daemon tells.

use std::path::PathBuf;
use std::sync::Arc;

use crate::calendar::Occurrence;
use crate::finding::BriefFinding;
use crate::runs::{EndedRun, ScheduleChange, SkipRecord};

/// Something that happened to what is armed. Each names the schedule, which is the campaign.
#[derive(Debug)]
pub enum ScheduleEvent {
    /// An occurrence waits for its list.
    Waiting {
        /// The schedule.
        schedule: String,
        /// The occurrence.
        occurrence: Occurrence,
    },
    /// An occurrence waits for an approval.
    Unapproved {
        /// The schedule.
        schedule: String,
        /// The occurrence.
        occurrence: Occurrence,
        /// The digest of its plan.
        digest: String,
    },
    /// A run was sent to its end, or stopped before it; what became of it, [`EndedRun`] tells, doubt too.
    Ended {
        /// The schedule.
        schedule: String,
        /// The occurrence.
        occurrence: Occurrence,
        /// The run.
        ended: Box<EndedRun>,
        /// Whether it said word for word what the occurrence before it said.
        same_text: bool,
    },
    /// A run that began could not be brought to its end; it can go on by hand.
    Broke {
        /// The schedule.
        schedule: String,
        /// The occurrence.
        occurrence: Occurrence,
        /// Why, in words.
        why: String,
    },
    /// An occurrence was left out, and with it so many before it.
    Skipped {
        /// The schedule.
        schedule: String,
        /// The occurrence.
        occurrence: Occurrence,
        /// How many were left out before it.
        before: usize,
        /// Why.
        reason: SkipReason,
    },
    /// Nothing of a schedule fires, since it is not what was armed any more.
    Changed {
        /// The schedule.
        schedule: String,
        /// What changed.
        change: ScheduleChange,
        /// The findings about its file, if that is the change.
        findings: Vec<BriefFinding>,
    },
    /// Nothing of a schedule fires, since a record in the ledger that it needs is damaged.
    Damaged {
        /// The schedule.
        schedule: String,
        /// What is damaged, in words.
        problem: String,
    },
}

/// Why an occurrence was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its time passed while nobody was there to begin it.
    Missed,
    /// The one before it was still being sent, or another start of the campaign.
    Busy,
    /// Its list, this file, did not come.
    NoList(PathBuf),
    /// The next one was due while it waited for its list.
    Overtaken,
    /// Nobody approved it within a day, or before the next one was due.
    Unapproved,
    /// It changed since it was activated; with the findings about its file, if that is the change.
    Changed(ScheduleChange, Vec<BriefFinding>),
    /// A record in the ledger that it needs is damaged, in words.
    Damaged(String),
    /// Nobody was left to send to.
    NobodyLeft,
    /// It could not begin.
    Refused(SkipRecord),
}

impl SkipReason {
    /// The reason as the ledger keeps it.
    #[must_use]
    pub fn to_record(&self) -> SkipRecord {
        let why = match self {
            Self::Missed => "missed",
            Self::Busy => "the campaign was still being sent",
            Self::NoList(list) => &format!("the list did not arrive in time: {}", list.display()),
            Self::Overtaken => "the next run became due while this run was waiting for its list",
            Self::Unapproved => "the run was not approved in time",
            Self::Changed(_, findings) => {
                return SkipRecord {
                    why: "the campaign has changed since its schedule was activated".to_owned(),
                    findings: findings.clone(),
                };
            }
            Self::Damaged(problem) => &format!("the ledger is damaged: {problem}"),
            Self::NobodyLeft => "no recipients were left",
            Self::Refused(record) => return record.clone(),
        };
        SkipRecord::new(why, &[])
    }
}

/// Somebody who is told.
pub type ScheduleObserver = Arc<dyn Fn(ScheduleEvent) + Send + Sync>;
