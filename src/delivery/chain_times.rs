//! Time limits of channel chains: how long the gateway can try the channels of a message before no more receipts are expected.

use std::collections::HashMap;
use std::time::Duration;

use super::FrozenInputs;
use crate::domain::{Chain, FieldValue, MessageContent, NamedTemplate, Stage};
use crate::ledger::{Ledger, Run};
use crate::manifest::CampaignBrief;

/// The lifetime of a message on a channel whose campaign names none (contract 8 `rcs_lifetime`; the same on the other channels).
const DEFAULT_LIFETIME: Duration = Duration::from_secs(172_800);
/// The shortest time of a chain: receipts of the last channel may be late.
const MIN_LIFETIME: Duration = Duration::from_secs(4 * 86_400);
/// The channels that a chain may have whose channels are unknown.
const MAX_CHANNELS: u32 = 6;

/// The time that each chain of a run has, from when its message was sent.
#[derive(Clone, Debug, Default)]
pub struct ChainLifetimes(HashMap<Chain, Duration>);

impl ChainLifetimes {
    /// The times of a run as it was frozen; those of the gateway's lifetimes if its copies cannot be read.
    pub async fn load_for_run(ledger: &dyn Ledger, run: &Run) -> Self {
        let frozen = FrozenInputs::load_for_run(ledger, run).await;
        frozen.map(|frozen| Self::from_brief(&frozen.brief)).unwrap_or_default()
    }

    /// The times of a campaign's messages; of two variants with the same channels the longer one.
    #[must_use]
    pub fn from_brief(brief: &CampaignBrief) -> Self {
        let mut times = HashMap::new();
        for content in brief.all_contents() {
            let time = times.entry(content.channel_chain()).or_default();
            *time = total_lifetime(content).max(*time);
        }
        Self(times)
    }

    /// The time of a chain: the lifetimes of its channels, one after another, and four days at least.
    #[must_use]
    pub fn for_chain(&self, chain: Chain) -> Duration {
        let channels =
            if chain.is_known() { u32::try_from(chain.channels().count()).unwrap_or(1) } else { MAX_CHANNELS };
        self.0.get(&chain).copied().unwrap_or(DEFAULT_LIFETIME * channels).max(MIN_LIFETIME)
    }
}

fn total_lifetime(content: &MessageContent<NamedTemplate>) -> Duration {
    content.stages.iter().map(stage_lifetime).sum()
}

fn stage_lifetime(stage: &Stage<NamedTemplate>) -> Duration {
    let named = stage.values().find_map(|(field, value)| match value {
        FieldValue::Number(seconds) if field.key == "lifetime" => Some(Duration::from_secs(seconds.into())),
        _ => None,
    });
    named.unwrap_or(DEFAULT_LIFETIME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::OperationKind;
    use crate::manifest::{CampaignDay, load_campaign};

    const DAY: u64 = 86_400;

    fn times(channels: &str) -> ChainLifetimes {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sale.yaml");
        let campaign = format!("name: sale\nrecipients: {{ file: list.csv }}\nchannels:\n{channels}");
        std::fs::write(&file, campaign).unwrap();
        let loaded = load_campaign(&file, CampaignDay::Coming(jiff::civil::Date::ZERO));
        ChainLifetimes::from_brief(&loaded.value.unwrap_or_else(|| panic!("{:?}", loaded.findings)).brief)
    }

    #[test]
    fn chain_lifetime_is_the_sum_of_its_channels() {
        let viber = |lifetime| format!("  - viber: {{ signature: Olena, message: Hi, lifetime: {lifetime} }}\n");
        let sms = "  - sms: { signature: Olena, message: Hi }\n";
        let chain = Chain::from(OperationKind::ViberSms);
        let of = |lifetime| times(&format!("{}{sms}", viber(lifetime))).for_chain(chain).as_secs();
        assert_eq!(of("1h"), 4 * DAY, "four days at least");
        assert_eq!(of("172800"), 4 * DAY);
        let rcs = "  - rcs: { signature: Olena, message: Hi, image: https://shop.example/1.png, button: Buy, \
                   link: https://shop.example, lifetime: 4d }\n";
        let two = times(&format!("{rcs}{sms}"));
        assert_eq!(two.for_chain(OperationKind::RcsSms.into()).as_secs(), 6 * DAY);
    }

    #[test]
    fn chain_lifetime_without_copies_uses_gateway_defaults() {
        let unread = ChainLifetimes::default();
        assert_eq!(unread.for_chain(OperationKind::RcsViberSms.into()).as_secs(), 6 * DAY);
        assert_eq!(unread.for_chain(OperationKind::Sms.into()).as_secs(), 4 * DAY);
        assert_eq!(unread.for_chain(Chain::UNKNOWN).as_secs(), 12 * DAY);
    }
}
