//! Figures of a run, computed only from its results CSV.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::support::Results;

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Rows per value of the column `state`, each row once.
    pub(super) states: BTreeMap<String, u64>,
    /// Delivered messages by channel; `unknown` if no receipt names one.
    pub(super) channels: BTreeMap<String, ChannelFigures>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChannelFigures {
    /// Messages that this channel delivered first, read or not.
    pub(super) delivered: u64,
    /// Read receipts of this channel.
    pub(super) read: u64,
    pub(super) in_part: u64,
    pub(super) at_latest: u64,
    pub(super) uncertain: u64,
    /// Seconds from sending to delivery, for messages with a certain delivery time.
    pub(super) seconds: Vec<f64>,
}

impl Figures {
    pub(super) fn from_csv(csv: &str) -> Self {
        let results = Results::parse(csv);
        let mut figures = Self { states: results.counts(), ..Self::default() };
        for row in &results.rows {
            let state = row["state"].as_str();
            if !["delivered", "read"].contains(&state) {
                continue;
            }
            let named = |column: &str| Some(row[column].clone()).filter(|channel| !channel.is_empty());
            let delivered_by = named("delivered_by").unwrap_or_else(|| "unknown".to_owned());
            let read_by = named("read_by").unwrap_or_else(|| delivered_by.clone());
            let channel = figures.channels.entry(delivered_by).or_default();
            channel.delivered += 1;
            channel.in_part += u64::from(state == "delivered" && row["gateway_status"] == "PARTIALLY DELIVERED");
            channel.at_latest += u64::from(row["delivered_at_is"] == "at_latest");
            let at = |column: &str| row[column].parse::<Timestamp>().expect("a time");
            match row["delivered_at_is"].as_str() {
                "uncertain" => channel.uncertain += 1,
                "exact" | "at_latest" => {
                    channel.seconds.push(at("delivered_at").duration_since(at("submitted_at")).as_secs_f64());
                }
                other => panic!("a delivered message is {other:?}: {row:?}"),
            }
            if state == "read" {
                figures.channels.entry(read_by).or_default().read += 1;
            }
        }
        figures.channels.values_mut().for_each(|channel| channel.seconds.sort_by(f64::total_cmp));
        figures
    }

    pub(super) fn state(&self, state: &str) -> u64 {
        self.states.get(state).copied().unwrap_or_default()
    }

    /// Delivered messages, read or not.
    pub(super) fn delivered(&self) -> u64 {
        self.state("delivered") + self.state("read")
    }

    pub(super) fn read(&self) -> u64 {
        self.state("read")
    }

    pub(super) fn in_part(&self) -> u64 {
        self.channels.values().map(|channel| channel.in_part).sum()
    }

    pub(super) fn rows(&self) -> u64 {
        self.states.values().sum()
    }

    /// Rows by state as people see them: `delivered` includes `read`.
    pub(super) fn counts_by_state(&self) -> BTreeMap<String, u64> {
        let mut shown = self.states.clone();
        if self.delivered() > 0 {
            shown.insert("delivered".to_owned(), self.delivered());
        }
        shown
    }
}

impl ChannelFigures {
    /// Seconds within which this percentage of the messages was delivered.
    pub(super) fn percentile(&self, percent: usize) -> Option<f64> {
        let rank = (self.seconds.len() * percent).div_ceil(100).max(1);
        self.seconds.get(rank - 1).copied()
    }
}
