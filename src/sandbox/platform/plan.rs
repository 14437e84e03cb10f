//! The channels that a message tries, in order. Many messages share a plan, so each plan is kept once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::{Amount, Channel};
use crate::sandbox::scenario::PartPrices;

/// The lifetime of a message that names none, in seconds (contract 8).
const DEFAULT_LIFETIME: u64 = 172_800;

/// One try of a message: a channel with what the message is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChannelStage {
    pub channel: Channel,
    /// Billed parts; 1 where the channel knows none.
    pub parts: u32,
    /// Whether the call waits for a digit (DTMF); only for voice.
    pub dtmf: bool,
    /// Seconds after which the channel gives up; 136 years are for ever.
    lifetime: u32,
}

impl ChannelStage {
    /// A stage of so many parts that lives so many seconds, or as long as the gateway's default.
    pub(crate) fn new(channel: Channel, parts: u32, lifetime: Option<u64>) -> Self {
        let lifetime = u32::try_from(lifetime.unwrap_or(DEFAULT_LIFETIME)).unwrap_or(u32::MAX);
        Self { channel, parts, dtmf: false, lifetime }
    }

    /// The same stage, which waits for a digit or does not.
    pub(crate) fn with_dtmf(self, dtmf: bool) -> Self {
        Self { dtmf, ..self }
    }

    /// How long the channel tries.
    pub(crate) fn lifetime(&self) -> Duration {
        Duration::from_secs(self.lifetime.into())
    }

    /// What the stage costs.
    pub(crate) fn price(&self, prices: &PartPrices) -> Amount {
        prices.for_channel(self.channel).saturating_mul(self.parts.into())
    }
}

/// What the dearest of the stages costs, which is what the gateway reserves (contract 4.3 `pipeline`).
pub(crate) fn highest_price(stages: &[ChannelStage], prices: &PartPrices) -> Amount {
    stages.iter().map(|stage| stage.price(prices)).max().unwrap_or_default()
}

/// The parts of the longest of the stages.
pub(crate) fn most_parts(stages: &[ChannelStage]) -> u32 {
    stages.iter().map(|stage| stage.parts).max().unwrap_or_default()
}

/// Every plan, once.
#[derive(Debug, Default)]
pub(crate) struct StagePlans {
    pub all: Vec<Arc<[ChannelStage]>>,
    numbers: HashMap<Arc<[ChannelStage]>, u32>,
}

impl StagePlans {
    /// The number of the plan with these stages.
    pub(crate) fn intern(&mut self, stages: &[ChannelStage]) -> u32 {
        if let Some(number) = self.numbers.get(stages) {
            return *number;
        }
        let plan: Arc<[ChannelStage]> = stages.into();
        let number = u32::try_from(self.all.len()).expect("there are fewer plans than messages");
        self.all.push(Arc::clone(&plan));
        self.numbers.insert(plan, number);
        number
    }

    /// The stages of a plan.
    pub(crate) fn stages_of(&self, number: u32) -> &[ChannelStage] {
        &self.all[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_is_stored_once_and_priced_by_dearest_stage() {
        let stages = [ChannelStage::new(Channel::Viber, 1, None), ChannelStage::new(Channel::Sms, 3, Some(u64::MAX))];
        let mut plans = StagePlans::default();
        assert_eq!([&stages[..], &stages[..1], &stages[..]].map(|stages| plans.intern(stages)), [0, 1, 0]);
        assert_eq!((plans.stages_of(0), plans.all.len()), (&stages[..], 2));
        let prices = PartPrices::default();
        assert_eq!(highest_price(&stages, &prices), prices.for_channel(Channel::Sms).saturating_mul(3));
        assert_eq!(most_parts(&stages), 3);
        assert_eq!(stages[0].lifetime(), Duration::from_secs(172_800));
        assert!(stages[1].lifetime() > Duration::from_secs(100 * 365 * 86_400));
    }
}
