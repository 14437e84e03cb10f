//! What a campaign would do, as far as its list tells before anything is sent: who gets a message, of how many parts, at
//! what cost, in what time.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::{Value, json};

use super::format_duration;
use crate::check::Survey;
use crate::check::online::MessagePrices;
use crate::domain::{Amount, Stage};
use crate::manifest::{Campaign, Profile, Rate};

/// How many rows of a reason are named.
const MAX_NAMED_ROWS: usize = 20;

/// What a campaign would do to some rows of its list.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// Recipients of the list.
    pub rows: u64,
    /// Why rows are not sent to, most rows first.
    pub left_out: Vec<LeftOutRows>,
    /// Rows that are to be sent to, but not now: another choice of rows.
    pub later: u64,
    /// Messages that leave.
    pub messages: u64,
    /// What each channel does at most, in the order in which they are tried.
    pub channels: Vec<ChannelForecast>,
    /// Messages by the parts of their SMS; none without an SMS.
    pub sms_parts: BTreeMap<u32, u64>,
    /// What all of them cost at most.
    pub cost: Option<Amount>,
    /// What they cost if the first channel delivers each of them.
    pub likely_cost: Option<Amount>,
    /// The currency of both.
    pub currency: Option<String>,
    /// The seconds that it takes at the rate; nothing where nobody limits it.
    seconds: Option<f64>,
    /// How often the window has to open for that; nothing where once is enough.
    openings: Option<u64>,
    /// On how many days they leave, where that is more than one by `per_day`.
    days: Option<u64>,
    #[serde(skip)]
    rate: Option<Rate>,
}

/// Rows that are left out for one reason.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOutRows {
    /// Skipped or invalid.
    pub state: &'static str,
    /// Why.
    pub reason: String,
    /// How many.
    pub rows: u64,
    /// The first of them.
    pub first: Vec<u32>,
}

/// What a channel does at most.
#[derive(Clone, Debug, Serialize)]
pub struct ChannelForecast {
    /// The channel.
    pub channel: &'static str,
    /// Messages.
    pub messages: u64,
    /// Their parts.
    pub parts: u64,
    /// Whether it is tried only where another one failed.
    pub fallback: bool,
}

impl Forecast {
    /// The forecast for these rows of the list, in a run that begins when the campaign is due.
    #[must_use]
    pub fn for_rows(
        campaign: &Campaign,
        profile: Option<&Profile>,
        (survey, rows): (&Survey, &RoaringBitmap),
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
        let of_arms: Vec<_> =
            campaign.brief.list_arms().into_iter().map(|arm| arm.content.stages.iter().collect()).collect();
        let mut channels: Vec<ChannelForecast> = Vec::new();
        let mut sms_parts = BTreeMap::new();
        for (size, sized) in &survey.by_size {
            let count = sized.intersection_len(rows);
            let stages: &[&Stage<_>] = of_arms.get(size.arm).map_or(&[], Vec::as_slice);
            add_channels(&mut channels, stages, (count, size.sms_parts));
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
            later: survey.count_planned().saturating_sub(messages),
            messages,
            channels,
            sms_parts,
            cost: prices.as_ref().map(|prices| prices.max_cost(&survey.by_size, rows)),
            likely_cost: prices.as_ref().map(|prices| prices.likely_cost(&survey.by_size, rows)),
            currency: profile.and_then(|profile| profile.currency.clone()).filter(|_| prices.is_some()),
            seconds,
            openings: seconds
                .and_then(|seconds| campaign.count_openings(profile, Duration::from_secs_f64(seconds), due)),
            days: campaign.per_day.as_ref().map(|per_day| per_day.count_days(messages)).filter(|days| *days > 1),
            rate,
        }
    }

    /// For programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!(self)
    }

    /// How long the run takes, in words. `None` if the rate does not limit it.
    #[must_use]
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

/// Adds what some messages of the same channels and parts do.
fn add_channels<T>(channels: &mut Vec<ChannelForecast>, stages: &[&Stage<T>], (messages, sms_parts): (u64, u32)) {
    for (place, stage) in stages.iter().enumerate().filter(|_| messages > 0) {
        let channel = stage.channel();
        let each = if channel.facts().billed_by_part { u64::from(sms_parts.max(1)) } else { 1 };
        let fallback = place > 0;
        let known = channels.iter().position(|share| share.channel == channel.name() && share.fallback == fallback);
        let at = known.unwrap_or_else(|| {
            let share = ChannelForecast { channel: channel.name(), messages: 0, parts: 0, fallback };
            // Those that are tried first stand first.
            let at = channels.iter().position(|share| share.fallback && !fallback).unwrap_or(channels.len());
            channels.insert(at, share);
            at
        });
        channels[at].messages += messages;
        channels[at].parts += messages * each;
    }
}
