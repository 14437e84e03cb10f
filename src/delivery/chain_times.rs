//! Time limits of channel chains: how long the gateway can try the channels of a message before no more receipts are expected.

use std::collections::HashMap;
use std::time::Duration;

use super::FrozenInputs;
use crate::domain::{Chain, Content, Stage, Text, Value};
use crate::ledger::{Ledger, Run};
use crate::manifest::Brief;

/// The lifetime of a message on a channel whose campaign names none (contract 8 `rcs_lifetime`; the same on the other channels).
const LIFETIME: Duration = Duration::from_secs(172_800);
/// The shortest time of a chain: receipts of the last channel may be late.
const LEAST: Duration = Duration::from_secs(4 * 86_400);
/// The channels that a chain may have whose channels are unknown.
const MOST_CHANNELS: u32 = 6;

/// The time that each chain of a run has, from when its message was sent.
#[derive(Clone, Debug, Default)]
pub struct ChainTimes(HashMap<Chain, Duration>);

impl ChainTimes {
    /// The times of a run as it was frozen; those of the gateway's lifetimes if its copies cannot be read.
    pub async fn of_run(ledger: &dyn Ledger, run: &Run) -> Self {
        let frozen = FrozenInputs::of_run(ledger, run).await;
        frozen.map(|frozen| Self::of(&frozen.brief)).unwrap_or_default()
    }

    /// The times of a campaign's messages; of two variants with the same channels the longer one.
    #[must_use]
    pub fn of(brief: &Brief) -> Self {
        let mut times = HashMap::new();
        for content in brief.contents() {
            let time = times.entry(content.chain()).or_default();
            *time = lifetimes(content).max(*time);
        }
        Self(times)
    }

    /// The time of a chain: the lifetimes of its channels, one after another, and four days at least.
    #[must_use]
    pub fn of_chain(&self, chain: Chain) -> Duration {
        let channels =
            if chain.is_known() { u32::try_from(chain.channels().count()).unwrap_or(1) } else { MOST_CHANNELS };
        self.0.get(&chain).copied().unwrap_or(LIFETIME * channels).max(LEAST)
    }
}

fn lifetimes(content: &Content<Text>) -> Duration {
    content.stages.iter().map(lifetime).sum()
}

fn lifetime(stage: &Stage<Text>) -> Duration {
    let named = stage.values().find_map(|(field, value)| match value {
        Value::Number(seconds) if field.key == "lifetime" => Some(Duration::from_secs(seconds.into())),
        _ => None,
    });
    named.unwrap_or(LIFETIME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::OperationKind;
    use crate::manifest::{Day, load_campaign};

    const DAY: u64 = 86_400;

    fn times(channels: &str) -> ChainTimes {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sale.yaml");
        let campaign = format!("name: sale\nrecipients: {{ file: list.csv }}\nchannels:\n{channels}");
        std::fs::write(&file, campaign).unwrap();
        let loaded = load_campaign(&file, Day::Coming(jiff::civil::Date::ZERO));
        ChainTimes::of(&loaded.value.unwrap_or_else(|| panic!("{:?}", loaded.findings)).brief)
    }

    #[test]
    fn time_of_a_chain_is_the_sum_of_its_lifetimes() {
        let viber = |lifetime| format!("  - viber: {{ signature: Olena, message: Hi, lifetime: {lifetime} }}\n");
        let sms = "  - sms: { signature: Olena, message: Hi }\n";
        let chain = Chain::from(OperationKind::ViberSms);
        let of = |lifetime| times(&format!("{}{sms}", viber(lifetime))).of_chain(chain).as_secs();
        assert_eq!(of("1h"), 4 * DAY, "four days at least");
        assert_eq!(of("172800"), 4 * DAY);
        let rcs = "  - rcs: { signature: Olena, message: Hi, image: https://shop.example/1.png, button: Buy, \
                   link: https://shop.example, lifetime: 4d }\n";
        let two = times(&format!("{rcs}{sms}"));
        assert_eq!(two.of_chain(OperationKind::RcsSms.into()).as_secs(), 6 * DAY);
    }

    #[test]
    fn time_of_a_chain_without_copies_is_that_of_the_gateways_lifetimes() {
        let unread = ChainTimes::default();
        assert_eq!(unread.of_chain(OperationKind::RcsViberSms.into()).as_secs(), 6 * DAY);
        assert_eq!(unread.of_chain(OperationKind::Sms.into()).as_secs(), 4 * DAY);
        assert_eq!(unread.of_chain(Chain::UNKNOWN).as_secs(), 12 * DAY);
    }
}
