//! What a campaign would do, as far as its list tells before anything is sent: who gets a message, of how many parts, at
//! what cost, in what time.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::{Value, json};

use super::{duration, plural, thousands};
use crate::check::online::Prices;
use crate::check::{First, Survey};
use crate::domain::{Amount, Stage, one_or};
use crate::finding::one_line;
use crate::manifest::{Campaign, Profile, Rate};

/// How many rows of a reason are named.
const ROWS_NAMED: usize = 20;
/// How many reasons are named; the rest are counted together.
const REASONS_NAMED: usize = 12;
/// The most characters that are shown of a message.
const SHOWN: usize = 160;

/// What a campaign would do to some rows of its list.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// Recipients of the list.
    rows: u64,
    /// Why rows are not sent to, most rows first.
    left_out: Vec<LeftOutRows>,
    /// Rows that are to be sent to, but not now: another choice of rows.
    later: u64,
    /// Messages that leave.
    messages: u64,
    /// What each channel does at most, in the order in which they are tried.
    channels: Vec<ChannelShare>,
    /// Messages by the parts of their SMS; none without an SMS.
    sms_parts: BTreeMap<u32, u64>,
    /// What all of them cost at most.
    cost: Option<Amount>,
    /// What they cost if the first channel delivers each of them.
    likely_cost: Option<Amount>,
    currency: Option<String>,
    /// The seconds that it takes at the rate; nothing where nobody limits it.
    seconds: Option<f64>,
    /// How often the window has to open for that; nothing where once is enough.
    openings: Option<u64>,
    /// On how many days they leave, where that is more than one by `per_day`.
    days: Option<u64>,
    #[serde(skip)]
    rate: Option<Rate>,
    /// The first messages; they are for people alone.
    #[serde(skip)]
    firsts: Vec<First>,
}

/// Rows that are left out for one reason.
#[derive(Clone, Debug, Serialize)]
struct LeftOutRows {
    state: &'static str,
    reason: String,
    rows: u64,
    /// The first of them.
    first: Vec<u32>,
}

/// What a channel does at most.
#[derive(Clone, Debug, Serialize)]
struct ChannelShare {
    channel: &'static str,
    messages: u64,
    parts: u64,
    /// Whether it is tried only where another one failed.
    fallback: bool,
}

impl Forecast {
    /// The forecast for these rows of the list, in a run that begins when the campaign is due.
    #[must_use]
    pub fn of(
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
                first: rows.iter().take(ROWS_NAMED).collect(),
            })
            .collect();
        left_out.sort_by_key(|reason| std::cmp::Reverse(reason.rows));
        let messages = rows.len();
        let of_arms: Vec<_> =
            campaign.brief.arms().into_iter().map(|arm| arm.content.stages.iter().collect()).collect();
        let mut channels: Vec<ChannelShare> = Vec::new();
        let mut sms_parts = BTreeMap::new();
        for (size, sized) in &survey.by_size {
            let count = sized.intersection_len(rows);
            let stages: &[&Stage<_>] = of_arms.get(size.arm).map_or(&[], Vec::as_slice);
            add(&mut channels, stages, (count, size.sms_parts));
            if size.sms_parts > 0 && count > 0 {
                *sms_parts.entry(size.sms_parts).or_default() += count;
            }
        }
        let rate = campaign.rate(profile);
        let seconds = rate.and_then(Rate::per_second).map(|per_second| messages as f64 / per_second);
        let prices = profile.filter(|profile| !profile.prices.is_empty());
        let prices = prices.and_then(|profile| Prices::of(profile, &campaign.brief).ok());
        Self {
            rows: survey.recipients,
            left_out,
            later: survey.planned().saturating_sub(messages),
            messages,
            channels,
            sms_parts,
            cost: prices.as_ref().map(|prices| prices.most(&survey.by_size, rows)),
            likely_cost: prices.as_ref().map(|prices| prices.likely(&survey.by_size, rows)),
            currency: profile.and_then(|profile| profile.currency.clone()).filter(|_| prices.is_some()),
            seconds,
            openings: seconds.and_then(|seconds| campaign.openings(profile, Duration::from_secs_f64(seconds), due)),
            days: campaign.per_day.as_ref().map(|per_day| per_day.days(messages)).filter(|days| *days > 1),
            rate,
            firsts: survey.firsts.clone(),
        }
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Value {
        json!(self)
    }

    /// For people, a line each: where everybody goes, in numbers that add up, then what the messages are like.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = self.funnel();
        lines.extend(self.by_channel());
        lines.extend(self.by_parts());
        lines.extend(self.costs());
        lines.extend(self.time());
        lines.extend(self.firsts.iter().filter_map(first_line));
        lines
    }

    fn funnel(&self) -> Vec<String> {
        if self.left_out.is_empty() && self.later == 0 {
            return Vec::new();
        }
        let named = self.left_out.len().min(REASONS_NAMED);
        let (named, others) = self.left_out.split_at(named);
        let line = |reason: &LeftOutRows| {
            let LeftOutRows { state, reason, rows, first } = reason;
            let numbers: Vec<String> = first.iter().map(u32::to_string).collect();
            let more = rows - numbers.len() as u64;
            let more = if more > 0 { format!(" and {} more", thousands(more)) } else { String::new() };
            let word = one_or(*rows, "row", "rows");
            format!("− {} {state}: {} ({word} {}{more})", thousands(*rows), one_line(reason), numbers.join(", "))
        };
        let mut lines = vec![format!("  {} in the list", plural(self.rows, "row"))];
        lines.extend(named.iter().map(line));
        if !others.is_empty() {
            let rows = others.iter().map(|reason| reason.rows).sum();
            lines.push(format!("− {} for {}", thousands(rows), plural(others.len() as u64, "other reason")));
        }
        if self.later > 0 {
            lines.push(format!("− {} not chosen now", thousands(self.later)));
        }
        lines.push(format!("= {}", plural(self.messages, "message")));
        lines
    }

    fn by_channel(&self) -> Option<String> {
        let mut line = String::new();
        for ChannelShare { channel, messages, parts, fallback } in &self.channels {
            let (joint, at_most) = if *fallback { (", then ", "at most ") } else { (" · ", "") };
            let parts = if parts == messages { String::new() } else { format!(" in {}", plural(*parts, "part")) };
            line += &format!("{joint}{channel} {at_most}{}{parts}", thousands(*messages));
        }
        let line = line.trim_start_matches([' ', '·', ',']);
        (!line.is_empty()).then(|| format!("by channel: {line}"))
    }

    fn by_parts(&self) -> Option<String> {
        let each = self
            .sms_parts
            .iter()
            .map(|(parts, messages)| format!("{} of {}", thousands(*messages), plural((*parts).into(), "part")));
        (self.sms_parts.len() > 1).then(|| format!("sms by length: {}", each.collect::<Vec<_>>().join(" · ")))
    }

    fn costs(&self) -> Option<String> {
        let (most, likely) = (self.cost?, self.likely_cost.filter(|likely| Some(*likely) != self.cost)?);
        let currency = self.currency.as_deref().unwrap_or_default();
        let first = self.channels.first()?.channel;
        let line = format!("cost: at most {most} {currency}; {likely} {currency} if all of them arrive by {first}");
        Some(line.replace(" ;", ";").replace("  ", " "))
    }

    fn time(&self) -> Option<String> {
        let time = self.seconds.filter(|seconds| *seconds >= 1.0).zip(self.rate);
        let time =
            time.map(|(seconds, rate)| format!("about {} at {rate}", duration(Duration::from_secs_f64(seconds))));
        let openings = self.openings.map(|openings| format!("in {openings} openings of the window"));
        let days = self.days.map(|days| format!("on {days} days by `per_day`"));
        let all: Vec<String> = [time, openings, days].into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("takes {}", all.join(", ")))
    }
}

/// Adds what some messages of the same channels and parts do.
fn add<T>(channels: &mut Vec<ChannelShare>, stages: &[&Stage<T>], (messages, sms_parts): (u64, u32)) {
    for (place, stage) in stages.iter().enumerate().filter(|_| messages > 0) {
        let channel = stage.channel();
        let each = if channel.facts().billed_by_part { u64::from(sms_parts.max(1)) } else { 1 };
        let fallback = place > 0;
        let known = channels.iter().position(|share| share.channel == channel.name() && share.fallback == fallback);
        let at = known.unwrap_or_else(|| {
            let share = ChannelShare { channel: channel.name(), messages: 0, parts: 0, fallback };
            // Those that are tried first stand first.
            let at = channels.iter().position(|share| share.fallback && !fallback).unwrap_or(channels.len());
            channels.insert(at, share);
            at
        });
        channels[at].messages += messages;
        channels[at].parts += messages * each;
    }
}

/// A message in one line.
fn first_line(First { row, content, .. }: &First) -> Option<String> {
    let text = |stage: &Stage<Cow<'_, str>>| {
        let (_, message) = stage.texts().find(|(field, _)| field.key == "message")?;
        let text = one_line(message);
        let cut: String = text.chars().take(SHOWN).collect();
        let dots = if cut.len() < text.len() { "…" } else { "" };
        Some(format!("{}: {cut}{dots}", stage.channel().name()))
    };
    let said: Vec<String> = content.stages.iter().filter_map(text).collect();
    (!said.is_empty()).then(|| format!("row {row} · {}", said.join(" · ")))
}
