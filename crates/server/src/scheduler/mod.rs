//! Schedules: the daemon that starts each due occurrence of an active schedule exactly once.
//!
//! - `daemon`: rounds over all active schedules, and the runs that they start;
//! - `due`: which occurrences are due or missed, as pure functions;
//! - `firing`: starting, skipping and resuming occurrences.
//!
//! The daemon reads active schedules from the ledger, uses the clock of its adapters, and sends through
//! [`campaign_runs`]. It reports [`ScheduleEvent`]s, and must not print anything or handle signals.

mod daemon;
mod due;
mod firing;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use campaign_content::message::Notice;
use campaign_core::calendar::Occurrence;
use campaign_core::domain::NotificationEvent;
use campaign_core::finding::BriefFinding;
use campaign_ledger::{ActiveSchedule, LedgerError, NewNotification};
use campaign_manifest::{Campaign, CampaignDay, load_campaign};
use campaign_runs::notify::create_notification;
use campaign_runs::{Adapters, EndedRun, ScheduleChange, SkipRecord, load_active_campaign};

pub use daemon::{Daemon, RunStarter, Starter};
pub use due::{DueOccurrences, find_due, lateness};

/// An event of a schedule. A schedule has the name of its campaign.
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
    /// A run ended or stopped. [`EndedRun`] has its results, including rows in doubt.
    Ended {
        /// The schedule.
        schedule: String,
        /// The occurrence.
        occurrence: Occurrence,
        /// The run.
        ended: Box<EndedRun>,
        /// Whether the text is identical to that of the previous occurrence.
        same_text: bool,
    },
    /// A run that began could not be finished; an operator can resume it.
    Broke {
        /// The schedule.
        schedule: String,
        /// The occurrence.
        occurrence: Occurrence,
        /// The reason.
        why: String,
    },
    /// An occurrence was skipped, and possibly others before it.
    Skipped {
        /// The schedule.
        schedule: String,
        /// The occurrence.
        occurrence: Occurrence,
        /// The number of occurrences that were skipped before it.
        before: usize,
        /// Why.
        reason: SkipReason,
    },
    /// The campaign has changed since its activation, so its schedule does not fire.
    Changed {
        /// The schedule.
        schedule: String,
        /// The change.
        change: ScheduleChange,
        /// The findings about its file, if the change makes it unreadable.
        findings: Vec<BriefFinding>,
    },
    /// A damaged ledger record stops a schedule.
    Damaged {
        /// The schedule.
        schedule: String,
        /// A description of the damage.
        problem: String,
    },
}

/// Why an occurrence was skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// Its time passed while no daemon was running.
    Missed,
    /// The previous occurrence or another run of the campaign was still being sent.
    Busy,
    /// This list file did not arrive.
    NoList(PathBuf),
    /// The next occurrence became due while it waited for its list.
    Overtaken,
    /// The occurrence was not approved within a day, or before the next occurrence.
    Unapproved,
    /// The campaign, the gateway or the account changed after the activation. The findings are about the campaign file,
    /// if it cannot be read or has errors.
    Changed(ScheduleChange, Vec<BriefFinding>),
    /// A ledger record that it needs is damaged, as described.
    Damaged(String),
    /// No recipients were left.
    NobodyLeft,
    /// The run was refused, for this reason.
    Refused(SkipRecord),
}

impl SkipReason {
    /// The reason in the ledger's form.
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

/// Receives events.
pub type ScheduleObserver = Arc<dyn Fn(ScheduleEvent) + Send + Sync>;

/// The subject of a notification about a schedule.
#[derive(Clone, Copy)]
struct NotifiedSchedule<'a> {
    /// The name, which is that of the campaign.
    name: &'a str,
    /// The campaign file.
    file: &'a Path,
    /// The record, unless it is damaged.
    active: Option<&'a ActiveSchedule>,
}

impl<'a> From<&'a ActiveSchedule> for NotifiedSchedule<'a> {
    fn from(active: &'a ActiveSchedule) -> Self {
        Self { name: &active.name, file: active.file.as_ref(), active: Some(active) }
    }
}

/// Stores notifications about a schedule for the targets in its campaign file. There are no targets if the file cannot
/// be read.
///
/// A notification program is not started if the campaign file changed after the activation, because nobody reviewed
/// it.
///
/// # Errors
/// If the ledger cannot be written.
async fn notify_about(
    adapters: &Adapters,
    schedule: impl Into<NotifiedSchedule<'_>>,
    occasion: NotificationEvent,
    what: &str,
) -> Result<(), LedgerError> {
    let notifications = build_notifications(adapters, schedule.into(), occasion, what);
    store_notifications(adapters, notifications).await
}

async fn store_notifications(adapters: &Adapters, notifications: Vec<NewNotification>) -> Result<(), LedgerError> {
    if notifications.is_empty() { Ok(()) } else { adapters.ledger.queue_notifications(notifications).await }
}

fn build_notifications(
    adapters: &Adapters,
    NotifiedSchedule { name, file, active }: NotifiedSchedule<'_>,
    occasion: NotificationEvent,
    what: &str,
) -> Vec<NewNotification> {
    let now = (adapters.clock)();
    // A damaged record might name the file of another campaign, which is ignored.
    let campaign = load_campaign(file, CampaignDay::Of(now)).value.filter(|campaign| campaign.brief.name == name);
    let activated = active.and_then(load_active_campaign);
    let is_activated = |campaign: &Campaign| activated.as_ref().is_some_and(|known| known.notify == campaign.notify);
    let campaign = campaign.map(|campaign| match is_activated(&campaign) {
        true => campaign,
        false => campaign.without_notify_command(),
    });
    let gateways = adapters.profiles.load(Some(file)).unwrap_or_default();
    let in_campaign = || campaign.as_ref().map(|campaign| campaign.brief.gateway.as_str());
    let gateway = active.map(|active| active.gateway.as_str()).or_else(in_campaign).unwrap_or_default();
    let profile = gateways.find_profile(gateway).ok();
    let settings = campaign.iter().flat_map(|campaign| campaign.notify_settings(profile));
    let notice = Notice {
        occasion,
        campaign: name.to_owned(),
        run: None,
        gateway: gateway.to_owned(),
        text: format!("{name} through {gateway}: {what}"),
        rows: 0,
        counts: std::collections::BTreeMap::new(),
        why: Some(what.to_owned()),
        results: None,
        at: now.to_string(),
    };
    settings.filter_map(|notify| create_notification(notify, &notice)).collect()
}
