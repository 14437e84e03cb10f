//! The figures of a run's channels as the ledger keeps them, so that who looks at ten million rows waits for none of them.

use serde::{Deserialize, Serialize};

use super::channel_figures::{ChannelFigure, ChannelFigures, DeliveryTimes};
use crate::domain::Channel;
use crate::ledger::StateCounts;

/// The form of what follows; another one is read by nobody who knows this one.
const FORM: u8 = 1;

/// Figures, and what the run was when they were made: where it is not that any more, they are nothing.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeptFigures {
    pub(super) counts: StateCounts,
    pub(super) receipts: u64,
    /// By the names of channels; without a name the messages of which nobody told the channel.
    channels: Vec<(Option<String>, KeptFigure)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptFigure {
    counts: StateCounts,
    /// How many messages took which time, in milliseconds, to a thousandth.
    times: Vec<(u64, u64)>,
}

impl KeptFigures {
    pub(super) fn of(figures: &ChannelFigures, (counts, receipts): (StateCounts, u64)) -> Self {
        let kept = |figure: &ChannelFigure| KeptFigure { counts: figure.counts.clone(), times: figure.times.pairs() };
        let channels = figures.iter().map(|(channel, of)| (channel.map(|channel| channel.name().to_owned()), kept(of)));
        Self { counts, receipts, channels: channels.collect() }
    }

    pub(super) fn figures(self) -> ChannelFigures {
        let mut figures = ChannelFigures::default();
        for (name, KeptFigure { counts, times }) in self.channels {
            let figure = ChannelFigure { counts, times: DeliveryTimes::from_pairs(&times) };
            match name.and_then(|name| Channel::from_name(&name)) {
                Some(channel) => drop(figures.channels.insert(channel, figure)),
                None => figures.untold = figure,
            }
        }
        figures
    }

    pub(super) fn read(kept: &[u8]) -> Option<Self> {
        let (form, rest) = kept.split_first()?;
        (*form == FORM).then(|| postcard::from_bytes(rest).ok())?
    }

    pub(super) fn written(&self) -> Option<Vec<u8>> {
        postcard::to_extend(self, vec![FORM]).ok()
    }
}
