//! Forecast of a run before it is sent: recipients, parts, cost and duration.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::{Value, json};

use super::format_duration;
use crate::check::online::MessagePrices;
use crate::check::{CountryCount, Survey, count_sending_days};
use campaign_core::domain::{Amount, Stage};
use campaign_manifest::{Campaign, Profile, Rate};

/// The maximum number of rows that are named per reason.
const MAX_NAMED_ROWS: usize = 20;

/// The forecast for some rows of a list.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// Recipients of the list.
    pub rows: u64,
    /// Rows that get no message, by reason, most rows first.
    pub left_out: Vec<LeftOutRows>,
    /// Messages outside the profile's `home` by country, highest count first; empty if the campaign limits countries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub abroad: Vec<CountryCount>,
    /// Planned rows that this run does not select.
    pub later: u64,
    /// Messages to send.
    pub messages: u64,
    /// The maximum use of each channel. First channels come before fallbacks.
    pub channels: Vec<ChannelForecast>,
    /// Messages by number of SMS parts; empty without SMS.
    pub sms_parts: BTreeMap<u32, u64>,
    /// The maximum cost.
    pub cost: Option<Amount>,
    /// The cost if the first channel delivers every message.
    pub likely_cost: Option<Amount>,
    /// The currency of the costs.
    pub currency: Option<String>,
    /// The duration in seconds at the rate limit; `None` without a limit.
    seconds: Option<f64>,
    /// The number of times that the window must open; `None` if once is enough.
    openings: Option<u64>,
    /// The number of days, if `per_day` spreads the run over several.
    days: Option<u64>,
    #[serde(skip)]
    rate: Option<Rate>,
}

/// Rows that get no message for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOutRows {
    /// Skipped or invalid.
    pub state: &'static str,
    /// The reason as it is recorded for the rows, such as `duplicate number`.
    pub reason: String,
    /// The number of rows.
    pub rows: u64,
    /// The first rows.
    pub first: Vec<u32>,
}

/// The maximum number of messages and parts that a run can send through one channel.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelForecast {
    /// The name of the channel, such as `sms`.
    pub channel: &'static str,
    /// The number of messages.
    pub messages: u64,
    /// The number of parts.
    pub parts: u64,
    /// Whether the channel is used only after another channel has failed.
    pub fallback: bool,
}

impl Forecast {
    /// The forecast for sending to `rows`, in a run that begins when the campaign is due.
    pub fn for_rows(
        campaign: &Campaign,
        profile: Option<&Profile>,
        survey: &Survey,
        rows: &RoaringBitmap,
        due: Option<Timestamp>,
    ) -> Self {
        let mut left_out: Vec<LeftOutRows> = survey
            .left_out
            .sets()
            .map(|(state, reason, rows)| LeftOutRows {
                state: state.name(),
                reason: reason.to_owned(),
                rows: rows.len(),
                first: rows.iter().take(MAX_NAMED_ROWS).collect(),
            })
            .collect();
        left_out.sort_by_key(|reason| std::cmp::Reverse(reason.rows));
        let messages = rows.len();
        let stages_by_arm: Vec<_> =
            campaign.brief.list_arms().into_iter().map(|arm| arm.content.stages.iter().collect()).collect();
        let mut channels: Vec<ChannelForecast> = Vec::new();
        let mut sms_parts = BTreeMap::new();
        for (size, rows_of_size) in &survey.by_size {
            let count = rows_of_size.intersection_len(rows);
            let stages: &[&Stage<_>] = stages_by_arm.get(size.arm).map_or(&[], Vec::as_slice);
            add_channel_messages(&mut channels, stages, count, size.sms_parts);
            if size.sms_parts > 0 && count > 0 {
                *sms_parts.entry(size.sms_parts).or_default() += count;
            }
        }
        let rate = campaign.effective_rate(profile);
        let seconds = rate.and_then(Rate::per_second).map(|per_second| messages as f64 / per_second);
        let prices = profile.filter(|profile| !profile.prices.is_empty());
        let prices = prices.and_then(|profile| MessagePrices::for_campaign(profile, &campaign.brief).ok());
        Self {
            rows: survey.recipients,
            left_out,
            abroad: campaign
                .brief
                .effective_home(profile)
                .map(|home| survey.countries.count_abroad(home, rows))
                .unwrap_or_default(),
            later: survey.count_planned().saturating_sub(messages),
            messages,
            channels,
            sms_parts,
            cost: prices.as_ref().map(|prices| prices.max_cost(survey.into(), rows)),
            likely_cost: prices.as_ref().map(|prices| prices.likely_cost(survey.into(), rows)),
            currency: profile.and_then(|profile| profile.currency.clone()).filter(|_| prices.is_some()),
            seconds,
            openings: seconds
                .and_then(|seconds| campaign.count_openings(profile, Duration::from_secs_f64(seconds), due)),
            days: count_sending_days(campaign, profile, &survey.zones, &survey.sent_by_day, messages, due),
            rate,
        }
    }

    /// The forecast as JSON.
    pub fn to_json(&self) -> Value {
        json!(self)
    }

    /// Describes the duration of the run. `None` if neither the rate, a sending window nor `per_day` delays the run.
    pub fn describe_duration(&self) -> Option<String> {
        let time = self.seconds.filter(|seconds| *seconds >= 1.0).zip(self.rate);
        let time = time
            .map(|(seconds, rate)| format!("about {} at {rate}", format_duration(Duration::from_secs_f64(seconds))));
        let openings = self.openings.map(|openings| format!("over {openings} sending windows"));
        let days = self.days.map(|days| format!("over {days} days because of `per_day`"));
        let all: Vec<String> = [time, openings, days].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// Adds messages that have the same channels and the same number of SMS parts.
fn add_channel_messages<T>(channels: &mut Vec<ChannelForecast>, stages: &[&Stage<T>], messages: u64, sms_parts: u32) {
    for (stage_index, stage) in stages.iter().enumerate().filter(|_| messages > 0) {
        let channel = stage.channel();
        let parts_each = if channel.facts().billed_by_part { u64::from(sms_parts.max(1)) } else { 1 };
        let fallback = stage_index > 0;
        let is_same = |known: &ChannelForecast| known.channel == channel.name() && known.fallback == fallback;
        let position = channels.iter().position(is_same);
        let at = position.unwrap_or_else(|| {
            let forecast = ChannelForecast { channel: channel.name(), messages: 0, parts: 0, fallback };
            // First channels come before fallbacks.
            let at = channels.iter().position(|forecast| forecast.fallback && !fallback).unwrap_or(channels.len());
            channels.insert(at, forecast);
            at
        });
        channels[at].messages += messages;
        channels[at].parts += messages * parts_each;
    }
}
