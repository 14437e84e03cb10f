//! Whether a campaign's messages can leave, judged from the moment at which its run begins.
//!
//! [`RunLimits`] calculates what becomes of each run. The rules find the words.

use jiff::Timestamp;

use super::{Survey, rules};
use crate::calendar::{MessageGroup, Occurrence, RunEnd, RunLimits, Schedule};
use crate::finding::Finding;
use crate::manifest::{Campaign, Profile, Until};

/// When a run begins.
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
    pub fn of(campaign: &Campaign, now: Timestamp) -> Self {
        if campaign.schedule.is_some() { Self::Scheduled(now) } else { Self::At(now) }
    }

    /// The moment at which it is judged.
    #[must_use]
    pub fn now(self) -> Timestamp {
        match self {
            Self::At(now) | Self::Scheduled(now) => now,
        }
    }
}

/// A campaign, its profile, and what limits its runs.
pub(super) struct TimedCampaign<'c> {
    pub(super) campaign: &'c Campaign,
    pub(super) limits: RunLimits<'c>,
    /// How many messages a run has, if its list is known.
    pub(super) messages: Option<u64>,
}

impl<'c> TimedCampaign<'c> {
    /// A campaign with its list. Without a list, only the windows that hold for every recipient are known.
    pub(super) fn of(campaign: &'c Campaign, profile: Option<&Profile>, survey: Option<&Survey>) -> Self {
        let end = campaign.until.and_then(|until| match until {
            Until::At(_) => campaign.until_at().map(RunEnd::At),
            Until::After(time) => Some(RunEnd::After(time)),
        });
        let messages = survey.map(Survey::planned).filter(|messages| *messages > 0);
        let one = || vec![MessageGroup { windows: campaign.windows_of_all(profile), messages: 1 }];
        let groups = messages.zip(survey).map_or_else(one, |(messages, survey)| {
            let clocks = survey.zones.clocks.iter();
            let by_clocks = clocks.map(|(clocks, messages)| MessageGroup {
                windows: campaign.windows_of(profile, clocks.country, clocks.cell.as_deref()),
                messages: *messages,
            });
            let groups: Vec<MessageGroup> = by_clocks.collect();
            let at_home = || vec![MessageGroup { windows: campaign.windows_of(profile, None, None), messages }];
            if groups.is_empty() { at_home() } else { groups }
        });
        let rate = campaign.rate(profile).and_then(|rate| rate.per_second());
        let limits = RunLimits { groups, rate, per_day: campaign.per_day.as_ref(), end };
        Self { campaign, limits, messages }
    }

    /// A date and a time on the clocks of the campaign.
    pub(super) fn date(&self, moment: Timestamp) -> String {
        moment.to_zoned(self.campaign.home()).strftime("%a %Y-%m-%d %H:%M").to_string()
    }
}

/// What keeps messages of a campaign from leaving in time, for the run that begins then: what can never send is an error, and
/// what is skipped or waits for hours is a warning.
#[must_use]
pub fn timing_findings(
    campaign: &Campaign,
    profile: Option<&Profile>,
    survey: Option<&Survey>,
    start: RunStart,
) -> Vec<Finding> {
    let timed = TimedCampaign::of(campaign, profile, survey);
    match (start, &campaign.schedule) {
        (RunStart::Scheduled(now), Some(schedule)) => of_schedule(&timed, schedule, now),
        (RunStart::At(now) | RunStart::Scheduled(now), _) => of_run(&timed, now),
    }
}

fn of_run(timed: &TimedCampaign<'_>, now: Timestamp) -> Vec<Finding> {
    if let Some(over) = rules::until_over(timed.campaign, now) {
        return vec![over];
    }
    let outlook = timed.limits.outlook(now);
    let never = rules::run_never_sends(timed, &outlook);
    let near = || rules::until_near(timed, &outlook);
    never.or_else(near).into_iter().collect()
}

fn of_schedule(timed: &TimedCampaign<'_>, schedule: &Schedule, now: Timestamp) -> Vec<Finding> {
    let runs = timed.limits.scheduled_runs(schedule, now);
    if runs.is_empty() {
        let past = schedule.timing.once().and_then(|once| Occurrence::of(once, &schedule.zone));
        let never = past.and_then(|past| rules::past_run_never_sends(timed, &past));
        return never.into_iter().chain([rules::schedule_over(timed)]).collect();
    }
    if let Some(never) = rules::schedule_never_sends(timed, &runs) {
        return vec![never];
    }
    let mut findings = rules::skipped_occurrences(timed, (schedule, now), &runs);
    findings.extend(rules::late_start(timed, &runs));
    findings.extend(rules::late_list(timed, schedule, &runs));
    findings.extend(rules::until_near_on_dates(timed, &runs));
    findings
}
