//! The channels that a message tries, in order. Many messages share a plan, so each plan is kept once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::{Amount, Channel};
use crate::sandbox::scenario::Prices;

/// The lifetime of a message that names none, in seconds (contract 8).
const DEFAULT_LIFETIME: u64 = 172_800;

/// One try of a message: a channel with what the message is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stage {
    pub channel: Channel,
    /// Billed parts; 1 where the channel knows none.
    pub parts: u32,
    /// Whether the call waits for a digit (DTMF); only for voice.
    pub dtmf: bool,
    /// Seconds after which the channel gives up; 136 years are for ever.
    lifetime: u32,
}

impl Stage {
    /// A stage of so many parts that lives so many seconds, or as long as the gateway's default.
    pub(crate) fn new(channel: Channel, parts: u32, lifetime: Option<u64>) -> Self {
        let lifetime = u32::try_from(lifetime.unwrap_or(DEFAULT_LIFETIME)).unwrap_or(u32::MAX);
        Self { channel, parts, dtmf: false, lifetime }
    }

    /// The same stage, which waits for a digit or does not.
    pub(crate) fn waiting_for_a_digit(self, dtmf: bool) -> Self {
        Self { dtmf, ..self }
    }

    /// How long the channel tries.
    pub(crate) fn lifetime(&self) -> Duration {
        Duration::from_secs(self.lifetime.into())
    }

    /// What the stage costs.
    pub(crate) fn price(&self, prices: &Prices) -> Amount {
        prices.of(self.channel).times(self.parts.into())
    }
}

/// What the dearest of the stages costs, which is what the gateway reserves (contract 4.3 `pipeline`).
pub(crate) fn dearest(stages: &[Stage], prices: &Prices) -> Amount {
    stages.iter().map(|stage| stage.price(prices)).max().unwrap_or_default()
}

/// The parts of the longest of the stages.
pub(crate) fn longest(stages: &[Stage]) -> u32 {
    stages.iter().map(|stage| stage.parts).max().unwrap_or_default()
}

/// Every plan, once.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    pub all: Vec<Arc<[Stage]>>,
    numbers: HashMap<Arc<[Stage]>, u32>,
}

impl Plans {
    /// The number of the plan with these stages.
    pub(crate) fn number(&mut self, stages: &[Stage]) -> u32 {
        if let Some(number) = self.numbers.get(stages) {
            return *number;
        }
        let plan: Arc<[Stage]> = stages.into();
        let number = u32::try_from(self.all.len()).expect("there are fewer plans than messages");
        self.all.push(Arc::clone(&plan));
        self.numbers.insert(plan, number);
        number
    }

    /// The stages of a plan.
    pub(crate) fn stages(&self, number: u32) -> &[Stage] {
        &self.all[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_kept_once_and_costs_its_dearest_stage() {
        let stages = [Stage::new(Channel::Viber, 1, None), Stage::new(Channel::Sms, 3, Some(u64::MAX))];
        let mut plans = Plans::default();
        assert_eq!([&stages[..], &stages[..1], &stages[..]].map(|stages| plans.number(stages)), [0, 1, 0]);
        assert_eq!((plans.stages(0), plans.all.len()), (&stages[..], 2));
        let prices = Prices::default();
        assert_eq!(dearest(&stages, &prices), prices.of(Channel::Sms).times(3));
        assert_eq!(longest(&stages), 3);
        assert_eq!(stages[0].lifetime(), Duration::from_secs(172_800));
        assert!(stages[1].lifetime() > Duration::from_secs(100 * 365 * 86_400));
    }
}
