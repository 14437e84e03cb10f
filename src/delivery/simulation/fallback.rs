//! The way of a message through its channels, as only the platform knows it.

use std::time::Duration;

use super::chance::SimulationRandom;
use super::plan::WorldPlan;
use crate::domain::{Channel, Endpoint};

/// What the platform reports of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChannelReport {
    /// The channel that it names.
    pub(super) channel: Option<Channel>,
    pub(super) status: &'static str,
}

/// The way of one message through its channels.
#[derive(Clone, Debug)]
pub(super) struct FallbackWay {
    /// What becomes true, and how long after the message was executed.
    steps: Vec<(Duration, ChannelReport)>,
    /// Whether a channel delivers it in the end.
    pub(super) reaches: bool,
}

/// The longest time that a channel takes.
const MAX_STEP: u64 = 30_000;

impl FallbackWay {
    /// A message that arrives at once, of which nothing else is known.
    pub(super) const NONE: Self = Self { steps: Vec::new(), reaches: true };

    /// The way of a message of this plan: one in six reaches nobody.
    pub(super) fn draw_way(plan: &WorldPlan, chance: &mut SimulationRandom) -> Self {
        let channels = plan.kind.channels();
        // Of a queued message REJECTED tells that intake refused it (contract 6.5), and of no channel.
        let failures: &[&'static str] = match plan.endpoint {
            Endpoint::Sync => &["EXPIRED", "UNDELIVERABLE", "REJECTED"],
            Endpoint::Async => &["EXPIRED", "UNDELIVERABLE"],
        };
        if channels.len() < 2 {
            return Self::NONE;
        }
        let last = channels.len() as u64 - 1;
        let delivers = (!chance.once_in(6)).then(|| chance.below(last + 1));
        let (mut steps, mut now) = (Vec::new(), Duration::ZERO);
        for (place, channel) in (0..=delivers.unwrap_or(last)).zip(channels) {
            let report = |status| ChannelReport { channel: Some(*channel), status };
            steps.push((now, report("ACCEPTED")));
            now += Duration::from_millis(1 + chance.below(MAX_STEP));
            if delivers == Some(place) {
                steps.push((now, report("DELIVERED")));
                if chance.once_in(2) {
                    now += Duration::from_millis(1 + chance.below(MAX_STEP));
                    steps.push((now, report("READ")));
                }
            } else {
                steps.push((now, report(chance.pick(failures))));
            }
        }
        Self { steps, reaches: delivers.is_some() }
    }

    /// What is true so long after the message was executed: the channel that it reached last (`status`).
    pub(super) fn report_at(&self, since: Duration) -> ChannelReport {
        let passed = self.steps.iter().take_while(|(after, _)| *after <= since);
        let nothing_yet =
            ChannelReport { channel: None, status: if self.steps.is_empty() { "DELIVERED" } else { "QUEUED" } };
        passed.last().map_or(nothing_yet, |(_, report)| *report)
    }

    /// What becomes true, in its order.
    pub(super) fn steps(&self) -> impl Iterator<Item = (Duration, ChannelReport)> {
        self.steps.iter().copied()
    }

    /// Whether this is the failure of a channel before the last one.
    pub(super) fn continues_after(&self, report: ChannelReport) -> bool {
        let last = self.steps.last().and_then(|(_, last)| last.channel);
        report.channel != last
    }
}
