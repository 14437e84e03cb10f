//! Findings about whether a campaign's messages can leave, judged from the start of its run.
//!
//! [`RunLimits`] calculates the outlook of each run. The rules write the messages.

use jiff::Timestamp;

use super::{Survey, rules};
use campaign_core::calendar::{MessageGroup, Occurrence, RunDeadline, RunLimits, Schedule};
use campaign_core::finding::Finding;
use campaign_manifest::{Campaign, Profile, SendingDeadline, SendingWindow};

/// The start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStart {
    /// At this moment.
    At(Timestamp),
    /// On the dates of the campaign's schedule after this moment.
    Scheduled(Timestamp),
}

impl RunStart {
    /// The start of a campaign that is checked at a moment: the dates of its schedule, else that moment.
    #[must_use]
    pub fn for_campaign(campaign: &Campaign, now: Timestamp) -> Self {
        if campaign.schedule.is_some() { Self::Scheduled(now) } else { Self::At(now) }
    }

    /// The time of the check.
    #[must_use]
    pub fn now(self) -> Timestamp {
        match self {
            Self::At(now) | Self::Scheduled(now) => now,
        }
    }
}

/// A campaign with its profile and the limits of its runs.
pub(super) struct TimedCampaign<'c> {
    pub(super) campaign: &'c Campaign,
    pub(super) limits: RunLimits<'c>,
    /// The windows in words.
    pub(super) windows: Vec<String>,
    /// How many messages a run has, if its list is known.
    pub(super) messages: Option<u64>,
}

impl<'c> TimedCampaign<'c> {
    /// A campaign with its list and the number of rows that the run sends. Without a list, only the windows that hold for every
    /// recipient are known.
    pub(super) fn new(campaign: &'c Campaign, profile: Option<&Profile>, list: Option<(&Survey, u64)>) -> Self {
        let end = campaign.until.and_then(|until| match until {
            SendingDeadline::At(_) => campaign.deadline().map(RunDeadline::At),
            SendingDeadline::After(time) => Some(RunDeadline::After(time)),
        });
        let list = list.filter(|(_, messages)| *messages > 0);
        let one = || vec![MessageGroup { windows: campaign.windows_for_all(profile), messages: 1 }];
        let groups = list.map_or_else(one, |(survey, messages)| {
            let (clocks, mut left) = (survey.zones.clocks.iter(), messages);
            // It is unknown here which of the planned rows a run sends, so the first clocks count.
            let by_clocks = clocks.map(|(clocks, of_clocks)| {
                let messages = left.min(*of_clocks);
                left -= messages;
                MessageGroup {
                    windows: campaign.windows_for_recipient(profile, clocks.country, clocks.cell.as_deref()),
                    messages,
                }
            });
            let by_clocks = by_clocks.filter(|group| group.messages > 0);
            let groups: Vec<MessageGroup> = by_clocks.collect();
            let at_home =
                || vec![MessageGroup { windows: campaign.windows_for_recipient(profile, None, None), messages }];
            if groups.is_empty() { at_home() } else { groups }
        });
        let rate = campaign.effective_rate(profile).and_then(|rate| rate.per_second());
        let limits = RunLimits { groups, rate, per_day: campaign.per_day.as_ref(), end };
        let windows = campaign.effective_windows(profile).map(SendingWindow::format_short).collect();
        Self { campaign, limits, windows, messages: list.map(|(_, messages)| messages) }
    }

    /// A date and time in the campaign's time zone.
    pub(super) fn format_date(&self, moment: Timestamp) -> String {
        moment.to_zoned(self.campaign.home_zone()).strftime("%a %Y-%m-%d %H:%M").to_string()
    }
}

/// Findings about messages that cannot leave in time, for a run with that start: an error if it can never send, a warning if
/// messages are skipped or wait for hours. The list comes with the number of rows that the run sends.
#[must_use]
pub fn check_timing(
    campaign: &Campaign,
    profile: Option<&Profile>,
    list: Option<(&Survey, u64)>,
    start: RunStart,
) -> Vec<Finding> {
    let timed = TimedCampaign::new(campaign, profile, list);
    match (start, &campaign.schedule) {
        (RunStart::Scheduled(now), Some(schedule)) => check_schedule(&timed, schedule, now),
        (RunStart::At(now) | RunStart::Scheduled(now), _) => check_run(&timed, now),
    }
}

fn check_run(timed: &TimedCampaign<'_>, now: Timestamp) -> Vec<Finding> {
    if let Some(over) = rules::check_until_over(timed.campaign, now) {
        return vec![over];
    }
    let outlook = timed.limits.calculate_outlook(now);
    let never = rules::check_run(timed, &outlook);
    let near = || rules::check_until_near(timed, &outlook);
    never.or_else(near).into_iter().collect()
}

fn check_schedule(timed: &TimedCampaign<'_>, schedule: &Schedule, now: Timestamp) -> Vec<Finding> {
    let runs = timed.limits.forecast_schedule(schedule, now);
    if runs.is_empty() {
        let past = schedule.timing.single_time().and_then(|once| Occurrence::at_local_time(once, &schedule.zone));
        let never = past.and_then(|past| rules::check_past_run(timed, &past));
        return never.into_iter().chain([rules::schedule_over_finding(timed)]).collect();
    }
    if let Some(never) = rules::check_schedule(timed, &runs) {
        return vec![never];
    }
    let mut findings = rules::check_skipped_occurrences(timed, schedule, now, &runs);
    findings.extend(rules::check_late_start(timed, &runs));
    findings.extend(rules::check_late_list(timed, schedule, &runs));
    findings.extend(rules::check_until_near_on_dates(timed, &runs));
    findings
}
