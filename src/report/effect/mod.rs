//! What a campaign brought: who bought something after a message, against those who got none.

mod interval;
mod moment;
mod money;
mod purchases;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use roaring::RoaringTreemap;

pub use interval::{Interval, Proportion};
pub use purchases::{PurchaseFile, Purchases};

use super::listing::Listing;
use super::{ResultsError, RunResults, is_owned};
use crate::check::HOLDOUT;
use crate::domain::{Amount, Phone};
use crate::ledger::{Ledger, RowState, Run};

/// What became of a part of the people.
#[derive(Clone, Debug, Default)]
pub struct ArmFigures {
    /// The people, and how many of them bought something in time.
    pub buyers: Proportion,
    /// How many purchases these made.
    pub purchases: u64,
    /// For how much together.
    pub amount: Amount,
}

/// What the difference to those who got none comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectVerdict {
    /// More people bought something after a message.
    More,
    /// Fewer did.
    Fewer,
    /// Chance alone may explain it.
    Unproven,
    /// There are too few people on either side to say anything.
    TooFew,
}

/// The fewest people of whom a share says anything.
const MIN_PEOPLE: u64 = 30;

/// What a campaign brought.
#[derive(Clone, Debug, Default)]
pub struct CampaignEffect {
    /// Who got a message, by variant; under no name where there are no variants.
    pub sent: BTreeMap<Option<String>, ArmFigures>,
    /// Who was held out; nothing where nobody was.
    pub holdout: Option<ArmFigures>,
    /// People whose message was not sent yet.
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
    /// What is known of people who got a message, against those who got none.
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

    /// The word by which programs are told of it.
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
    /// Counts over the runs of an edition, the oldest first, what was bought within a time after the message; of who was
    /// held out, after the beginning of the run.
    ///
    /// Whoever was sent a message counts for it, whatever became of it, since nobody knows of those who were held out whose
    /// messages would have arrived.
    ///
    /// # Errors
    /// When the ledger or what the runs froze cannot be read.
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

/// Somebody of whom a run decided.
struct ObservedRecipient<'a> {
    phone: Phone,
    variant: Option<&'a str>,
    decision: RunDecision,
}

/// What a run decided.
enum RunDecision {
    /// To send, and when it last did.
    Sent(Timestamp),
    /// To send, which it did not yet.
    Waiting,
    /// To send nothing, to compare with.
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
            let fate = match (&facts.record, facts.state(activity)) {
                (Some(record), _) => RunDecision::Sent(record.begun_at),
                (None, RowState::Skipped) if held_out => RunDecision::HeldOut,
                (None, RowState::Planned) => RunDecision::Waiting,
                (None, _) => continue,
            };
            if let Some(phone) = facts.phone(recipient.fields, &columns, region) {
                each(ObservedRecipient {
                    phone,
                    variant: arms.get(allotment.assign_variant(phone)).and_then(|arm| arm.name),
                    decision: fate,
                });
            }
        }
    }
    rows.finish().await.map(drop)
}
