//! Effect of a campaign: purchases of recipients after a message, compared with a holdout group.

mod purchases;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use roaring::RoaringTreemap;

use super::listing::Listing;
use super::{ResultsError, RunResults, is_owned};
use crate::check::HOLDOUT;
use campaign_core::domain::{Amount, Phone};
use campaign_ledger::{Ledger, RowState, Run};

pub use purchases::{PurchaseFile, Purchases};

/// The purchases of one group of recipients.
#[derive(Clone, Debug, Default)]
pub struct ArmFigures {
    /// The recipients of the group, and how many of them bought something in time.
    pub buyers: Proportion,
    /// The number of their purchases.
    pub purchases: u64,
    /// The total amount.
    pub amount: Amount,
}

/// The conclusion from comparing recipients with the holdout group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectVerdict {
    /// More recipients bought something after a message.
    More,
    /// Fewer recipients bought something after a message.
    Fewer,
    /// The difference can be chance.
    Unproven,
    /// One of the groups is too small for a conclusion.
    TooFew,
}

/// The smallest group whose share is meaningful.
const MIN_PEOPLE: u64 = 30;

/// The effect of a campaign.
#[derive(Clone, Debug, Default)]
pub struct CampaignEffect {
    /// The recipients who got a message, by variant; `None` without variants.
    pub sent: BTreeMap<Option<String>, ArmFigures>,
    /// The holdout group, if there is one.
    pub holdout: Option<ArmFigures>,
    /// Recipients whose message is not sent yet.
    pub waiting: u64,
}

impl ArmFigures {
    fn add_recipient(&mut self, phone: Phone, since: Timestamp, purchases: &Purchases, within: SignedDuration) {
        let counts = purchases.find_by_phone(phone).iter().filter(|purchase| purchase.time.may_follow(since, within));
        let before = self.purchases;
        for purchase in counts {
            self.purchases += 1;
            self.amount = self.amount.saturating_add(purchase.amount);
        }
        self.buyers.total += 1;
        self.buyers.successes += u64::from(self.purchases > before);
    }
}

impl EffectVerdict {
    /// Compares recipients of a message with the holdout group.
    #[must_use]
    pub fn from_proportions(sent: Proportion, holdout: Proportion) -> Self {
        let difference = sent.difference_interval(holdout);
        match sent.total.min(holdout.total) {
            ..MIN_PEOPLE => Self::TooFew,
            _ if difference.contains_zero() => Self::Unproven,
            _ if difference.low > 0.0 => Self::More,
            _ => Self::Fewer,
        }
    }

    /// The verdict's name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Fewer => "fewer",
            Self::Unproven => "unproven",
            Self::TooFew => "too_few",
        }
    }
}

impl CampaignEffect {
    /// Counts purchases within a time after the message, over the runs of an edition, oldest first. For the holdout
    /// group, the time starts with the run.
    ///
    /// A recipient counts as soon as a message was sent, delivered or not: for the holdout group, it is unknown whose
    /// messages would have arrived.
    ///
    /// # Errors
    /// If the ledger or what the runs froze cannot be read.
    pub async fn measure(
        ledger: &dyn Ledger,
        runs: &[Run],
        purchases: &Purchases,
        within: SignedDuration,
    ) -> Result<Self, ResultsError> {
        let mut effect = Self::default();
        let (mut sent, mut held_out) = (RoaringTreemap::new(), BTreeMap::new());
        for run in runs {
            let results = RunResults::open(ledger, run, is_owned(ledger, run).await?).await?;
            for listing in results.open_listings().await? {
                let began_at = run.began_at;
                let each = |person: ObservedRecipient<'_>| match person.decision {
                    RunDecision::Sent(at) if sent.insert(person.phone.to_u64()) => {
                        let arm = effect.sent.entry(person.variant.map(str::to_owned)).or_default();
                        arm.add_recipient(person.phone, at, purchases, within);
                    }
                    RunDecision::Sent(_) => {}
                    RunDecision::HeldOut => {
                        held_out.entry(person.phone).or_insert(began_at);
                    }
                    RunDecision::Waiting => effect.waiting += 1,
                };
                for_each_recipient(listing, each).await?;
            }
        }
        for (phone, since) in held_out {
            if !sent.contains(phone.to_u64()) {
                effect.holdout.get_or_insert_default().add_recipient(phone, since, purchases, within);
            }
        }
        Ok(effect)
    }
}

/// A recipient and the run's decision.
struct ObservedRecipient<'a> {
    phone: Phone,
    variant: Option<&'a str>,
    decision: RunDecision,
}

/// The decision of a run about a recipient.
enum RunDecision {
    /// A message was sent, last at this time.
    Sent(Timestamp),
    /// A message is planned but not sent yet.
    Waiting,
    /// The recipient is in the holdout group.
    HeldOut,
}

async fn for_each_recipient(
    listing: Listing<'_>,
    mut each: impl FnMut(ObservedRecipient<'_>),
) -> Result<(), ResultsError> {
    let (region, activity) = (listing.brief.region, listing.activity());
    let (allotment, arms) = (listing.brief.variant_allocation(), listing.brief.list_arms());
    let reader = listing.open_reader()?;
    let columns = reader.header().phones().clone();
    // Messages of earlier runs do not belong to this run.
    let mut rows = Listing { earlier: None, ..listing }.into_rows(reader)?;
    while let Some((chunk, facts)) = rows.next_chunk().await? {
        for (recipient, facts) in chunk.iter().zip(&facts) {
            let held_out = facts.exclusion.as_ref().is_some_and(|exclusion| exclusion.reason == HOLDOUT);
            let decision = match (&facts.record, facts.state(activity)) {
                (Some(record), _) => RunDecision::Sent(record.begun_at),
                (None, RowState::Skipped) if held_out => RunDecision::HeldOut,
                (None, RowState::Planned) => RunDecision::Waiting,
                (None, _) => continue,
            };
            if let Some(phone) = facts.phone(recipient.fields, &columns, region) {
                each(ObservedRecipient {
                    phone,
                    variant: arms.get(allotment.assign_variant(phone)).and_then(|arm| arm.name),
                    decision,
                });
            }
        }
    }
    rows.finish().await.map(drop)
}

/// The 97.5 % quantile of the normal distribution, for two-sided 95 % intervals.
const Z: f64 = 1.959_963_984_540_054;

/// A group, and how many of its members succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proportion {
    /// The size of the group.
    pub total: u64,
    /// How many members succeeded; at most `total`.
    pub successes: u64,
}

/// A 95 % confidence interval: of a share from 0 to 1, or of a difference from -1 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
}

impl Proportion {
    /// The share of successes, 0 to 1; 0 for an empty group.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.total == 0 { 0.0 } else { self.successes as f64 / self.total as f64 }
    }

    /// The score interval of E. B. Wilson (1927), which also holds for small groups and for shares near 0 and 1.
    #[must_use]
    pub fn wilson_interval(self) -> Interval {
        if self.total == 0 {
            return Interval { low: 0.0, high: 1.0 };
        }
        let (n, p) = (self.total as f64, self.share());
        let scale = 1.0 + Z * Z / n;
        let middle = (p + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
        // Rounding can put a bound on the wrong side of a share of 0 or 1.
        Interval { low: (middle - half).max(0.0).min(p), high: (middle + half).min(1.0).max(p) }
    }

    /// The interval of this share minus the other (R. G. Newcombe 1998, method 10), from both Wilson intervals.
    #[must_use]
    pub fn difference_interval(self, other: Self) -> Interval {
        let (own, its) = (self.wilson_interval(), other.wilson_interval());
        let (p, q) = (self.share(), other.share());
        let low = (p - q) - ((p - own.low).powi(2) + (its.high - q).powi(2)).sqrt();
        let high = (p - q) + ((own.high - p).powi(2) + (q - its.low).powi(2)).sqrt();
        Interval { low: low.max(-1.0), high: high.min(1.0) }
    }
}

impl Interval {
    /// Whether no difference is within the interval, so that none is proven.
    #[must_use]
    pub fn contains_zero(self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_close(found: f64, known: f64) -> bool {
        (found - known).abs() < 0.000_05
    }

    #[test]
    fn intervals_match_published_examples() {
        // Newcombe 1998, Statistics in Medicine 17, pp. 857 and 873: table II and the intervals of Wilson for the same counts.
        for (did, people, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let Interval { low: l, high: h } = Proportion { total: people, successes: did }.wilson_interval();
            assert!(is_close(l, low) && is_close(h, high), "{did} of {people}: {l} to {h}");
        }
        for (one, other, low, high) in
            [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((10, 10), (0, 10), 0.6075, 1.0)]
        {
            let [one, other] = [one, other].map(|(did, people)| Proportion { total: people, successes: did });
            let Interval { low: l, high: h } = one.difference_interval(other);
            assert!(is_close(l, low) && is_close(h, high), "{one:?} above {other:?}: {l} to {h}");
        }
    }

    proptest! {
        #[test]
        fn interval_contains_its_share_and_narrows_with_size(people in 1_u64..5_000, part in 0.0_f64..=1.0) {
            let did = (people as f64 * part) as u64;
            let few = Proportion { total: people, successes: did };
            let many = Proportion { total: people * 10, successes: did * 10 };
            let (wide, narrow) = (few.wilson_interval(), many.wilson_interval());
            prop_assert!(0.0 <= wide.low && wide.low <= few.share() && few.share() <= wide.high && wide.high <= 1.0);
            prop_assert!(narrow.high - narrow.low < wide.high - wide.low);
            prop_assert!(few.difference_interval(few).contains_zero());
        }
    }
}
