//! Recovery of pipeline channels that earlier versions did not record, from the frozen campaigns of their runs. Pure.
//!
//! It reads `frozen.json` in the format of those versions. It runs once, when a migration adds the column `chains`.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::SentRow;
use crate::domain::{Allotment, Chain, Channel, OperationKind};

/// The messages of a run: of each variant the channels, and how recipients were divided among them.
pub(super) struct EarlierChains {
    chains: Vec<Chain>,
    allotment: Allotment,
}

#[derive(Deserialize)]
struct Frozen {
    brief: Brief,
}

#[derive(Deserialize)]
struct Brief {
    name: String,
    content: Content,
    #[serde(default)]
    variants: Vec<Variant>,
}

#[derive(Deserialize)]
struct Variant {
    /// In hundredths of a percent.
    share: u64,
    content: Option<Content>,
}

#[derive(Deserialize)]
struct Content {
    kind: OperationKind,
    stages: Vec<Map<String, Value>>,
}

impl Content {
    fn chain(&self) -> Chain {
        if self.kind != OperationKind::Pipeline {
            return Chain::UNKNOWN;
        }
        let names = self.stages.iter().filter_map(|stage| stage.keys().next());
        Chain::of(names.filter_map(|name| Channel::from_name(name)))
    }
}

impl EarlierChains {
    /// What a run froze; nothing if it cannot be read.
    pub(super) fn read(frozen: &[u8]) -> Option<Self> {
        let Brief { name, content, variants } = serde_json::from_slice::<Frozen>(frozen).ok()?.brief;
        let shares: Vec<u64> = variants.iter().map(|variant| variant.share).collect();
        let common = content.chain();
        let chains = match variants[..] {
            [] => vec![common],
            _ => variants.iter().map(|variant| variant.content.as_ref().map_or(common, Content::chain)).collect(),
        };
        Some(Self { chains, allotment: Allotment::new(&name, &shares) })
    }

    /// The channels of a row's pipeline; unknown if they depend on a number that was forgotten.
    fn of(&self, sent: &SentRow) -> Chain {
        match (&self.chains[..], sent.to.number()) {
            ([only], _) => *only,
            (chains, Some(phone)) => chains.get(self.allotment.variant(phone)).copied().unwrap_or_default(),
            (_, None) => Chain::UNKNOWN,
        }
    }

    /// Gives the rows of an envelope of pipelines their channels.
    pub(super) fn give(&self, rows: &mut [SentRow]) {
        rows.iter_mut().for_each(|sent| sent.chain = self.of(sent));
    }
}
