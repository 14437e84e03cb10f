//! Recovery of pipeline channels that earlier versions did not record, from the frozen campaigns of their runs. Pure.
//!
//! It reads `frozen.json` in the format of those versions. It runs once, when a migration adds the column `chains`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::SentRow;
use crate::domain::{Chain, Channel, OperationKind, VariantAllocation};

/// The messages of a run: of each variant the channels, and how recipients were divided among them.
pub(super) struct EarlierChains {
    chains: Vec<Chain>,
    allotment: VariantAllocation,
}

#[derive(Deserialize)]
struct EarlierInputs {
    brief: EarlierCampaign,
}

#[derive(Deserialize)]
struct EarlierCampaign {
    name: String,
    content: EarlierContent,
    #[serde(default)]
    variants: Vec<EarlierVariant>,
}

#[derive(Deserialize)]
struct EarlierVariant {
    /// In hundredths of a percent.
    share: u64,
    content: Option<EarlierContent>,
}

#[derive(Deserialize)]
struct EarlierContent {
    kind: OperationKind,
    stages: Vec<Map<String, Value>>,
}

impl EarlierContent {
    fn chain(&self) -> Chain {
        if self.kind != OperationKind::Pipeline {
            return Chain::UNKNOWN;
        }
        let names = self.stages.iter().filter_map(|stage| stage.keys().next());
        Chain::from_channels(names.filter_map(|name| Channel::from_name(name)))
    }
}

impl EarlierChains {
    /// What a run froze; nothing if it cannot be read.
    pub(super) fn parse(frozen: &[u8]) -> Option<Self> {
        let EarlierCampaign { name, content, variants } = serde_json::from_slice::<EarlierInputs>(frozen).ok()?.brief;
        let shares: Vec<u64> = variants.iter().map(|variant| variant.share).collect();
        let common = content.chain();
        let chains = match variants[..] {
            [] => vec![common],
            _ => {
                variants.iter().map(|variant| variant.content.as_ref().map_or(common, EarlierContent::chain)).collect()
            }
        };
        Some(Self { chains, allotment: VariantAllocation::new(&name, &shares) })
    }

    /// The channels of a row's pipeline; unknown if they depend on a number that was forgotten.
    fn find_chain(&self, sent: &SentRow) -> Chain {
        // Variants of other kinds are in other envelopes.
        let mut pipelines = self.chains.iter().filter(|chain| chain.is_known());
        match (pipelines.next(), sent.to.phone()) {
            (Some(first), _) if pipelines.all(|chain| chain == first) => *first,
            (_, Some(phone)) => self.chains.get(self.allotment.assign_variant(phone)).copied().unwrap_or_default(),
            (_, None) => Chain::UNKNOWN,
        }
    }

    /// Gives the rows of an envelope of pipelines their channels.
    pub(super) fn assign_chains(&self, rows: &mut [SentRow]) {
        rows.iter_mut().for_each(|sent| sent.chain = self.find_chain(sent));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Addressee, Phone, Row};

    const SMS: &str = r#"{"kind": "pipeline", "stages": [{"viber": {}}, {"sms": {}}]}"#;
    const VOICE: &str = r#"{"kind": "pipeline", "stages": [{"viber": {}}, {"voice": {}}]}"#;
    const COMBINED: &str = r#"{"kind": "viber+sms", "stages": [{"viber": {}}, {"sms": {}}]}"#;

    fn frozen(content: &str, variants: &[&str]) -> EarlierChains {
        let variants: Vec<String> =
            variants.iter().map(|content| format!(r#"{{"share": 5000, "content": {content}}}"#)).collect();
        let variants = variants.join(", ");
        let json = format!(r#"{{"brief": {{"name": "sale", "content": {content}, "variants": [{variants}]}}}}"#);
        EarlierChains::parse(json.as_bytes()).unwrap()
    }

    fn chain(frozen: &EarlierChains, to: Addressee) -> String {
        let mut rows = [SentRow { row: Row::FIRST, to, digest: [0; 8], chain: Chain::UNKNOWN }];
        frozen.assign_chains(&mut rows);
        rows[0].chain.to_string()
    }

    #[test]
    fn row_has_the_channels_of_its_variant() {
        let person = |n: u64| Addressee::from(Phone::new(380_501_234_000 + n).unwrap());
        assert_eq!(chain(&frozen(SMS, &[]), person(1)), "viber sms");
        let two = frozen(SMS, &[SMS, VOICE]);
        let given: std::collections::BTreeSet<String> = (0..40).map(|n| chain(&two, person(n))).collect();
        assert_eq!(given.into_iter().collect::<Vec<_>>(), ["viber sms", "viber voice"]);
    }

    #[test]
    fn forgotten_row_has_the_channels_that_all_pipelines_have() {
        let forgotten = Addressee::Forgotten(crate::domain::ForgottenNumber::from_hash([7; 8]));
        assert_eq!(chain(&frozen(SMS, &[SMS, SMS]), forgotten), "viber sms");
        assert_eq!(chain(&frozen(SMS, &[VOICE, COMBINED]), forgotten), "viber voice");
        assert_eq!(chain(&frozen(SMS, &[SMS, VOICE]), forgotten), "");
    }
}
