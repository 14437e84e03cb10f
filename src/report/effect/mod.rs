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
use crate::ledger::{Ledger, Run, State};

/// What became of a part of the people.
#[derive(Clone, Debug, Default)]
pub struct Arm {
    /// The people, and how many of them bought something in time.
    pub bought: Proportion,
    /// How many purchases these made.
    pub purchases: u64,
    /// For how much together.
    pub amount: Amount,
}

/// What the difference to those who got none comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
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
const FEWEST: u64 = 30;

/// What a campaign brought.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    /// Who got a message, by variant; under no name where there are no variants.
    pub sent: BTreeMap<Option<String>, Arm>,
    /// Who was held out; nothing where nobody was.
    pub holdout: Option<Arm>,
    /// People whose message was not sent yet.
    pub waiting: u64,
}

impl Arm {
    fn add(&mut self, phone: Phone, since: Timestamp, purchases: &Purchases, within: SignedDuration) {
        let counts = purchases.of(phone).iter().filter(|purchase| purchase.moment.comes_after(since, within));
        let before = self.purchases;
        for purchase in counts {
            self.purchases += 1;
            self.amount = self.amount.plus(purchase.amount);
        }
        self.bought.people += 1;
        self.bought.did += u64::from(self.purchases > before);
    }
}

impl Verdict {
    /// What is known of people who got a message, against those who got none.
    #[must_use]
    pub fn of(sent: Proportion, holdout: Proportion) -> Self {
        let difference = sent.above(holdout);
        match sent.people.min(holdout.people) {
            ..FEWEST => Self::TooFew,
            _ if difference.holds_zero() => Self::Unproven,
            _ if difference.low > 0.0 => Self::More,
            _ => Self::Fewer,
        }
    }

    /// The word by which programs are told of it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Fewer => "fewer",
            Self::Unproven => "unproven",
            Self::TooFew => "too_few",
        }
    }
}

impl Effect {
    /// Counts over the runs of an edition, the oldest first, what was bought within a time after the message; of who was
    /// held out, after the beginning of the run.
    ///
    /// Whoever was sent a message counts for it, whatever became of it, since nobody knows of those who were held out whose
    /// messages would have arrived.
    ///
    /// # Errors
    /// When the ledger or what the runs froze cannot be read.
    pub async fn of(
        ledger: &dyn Ledger,
        runs: &[Run],
        purchases: &Purchases,
        within: SignedDuration,
    ) -> Result<Self, ResultsError> {
        let mut effect = Self::default();
        let (mut sent, mut held_out) = (RoaringTreemap::new(), BTreeMap::new());
        for run in runs {
            let results = RunResults::open(ledger, run, is_owned(ledger, run).await?).await?;
            for listing in results.listings().await? {
                let began_at = run.began_at;
                let each = |person: Person<'_>| match person.fate {
                    Fate::Sent(at) if sent.insert(person.phone.get()) => {
                        let arm = effect.sent.entry(person.variant.map(str::to_owned)).or_default();
                        arm.add(person.phone, at, purchases, within);
                    }
                    Fate::Sent(_) => {}
                    Fate::HeldOut => {
                        held_out.entry(person.phone).or_insert(began_at);
                    }
                    Fate::Waiting => effect.waiting += 1,
                };
                each_person(listing, each).await?;
            }
        }
        for (phone, since) in held_out {
            if !sent.contains(phone.get()) {
                effect.holdout.get_or_insert_default().add(phone, since, purchases, within);
            }
        }
        Ok(effect)
    }
}

/// Somebody of whom a run decided.
struct Person<'a> {
    phone: Phone,
    variant: Option<&'a str>,
    fate: Fate,
}

/// What a run decided.
enum Fate {
    /// To send, and when it last did.
    Sent(Timestamp),
    /// To send, which it did not yet.
    Waiting,
    /// To send nothing, to compare with.
    HeldOut,
}

async fn each_person(listing: Listing<'_>, mut each: impl FnMut(Person<'_>)) -> Result<(), ResultsError> {
    let (region, activity) = (listing.brief.region, listing.activity());
    let (allotment, arms) = (listing.brief.allotment(), listing.brief.arms());
    let reader = listing.reader()?;
    let columns = reader.header().phones().clone();
    // Messages of earlier runs do not belong to this run.
    let mut rows = Listing { earlier: None, ..listing }.rows(reader)?;
    while let Some((chunk, facts)) = rows.next().await? {
        for (recipient, facts) in chunk.iter().zip(&facts) {
            let held_out = facts.exclusion.as_ref().is_some_and(|exclusion| exclusion.reason == HOLDOUT);
            let fate = match (&facts.record, facts.state(activity)) {
                (Some(record), _) => Fate::Sent(record.begun_at),
                (None, State::Skipped) if held_out => Fate::HeldOut,
                (None, State::Planned) => Fate::Waiting,
                (None, _) => continue,
            };
            if let Some(phone) = facts.phone(recipient.fields, &columns, region) {
                each(Person { phone, variant: arms.get(allotment.variant(phone)).and_then(|arm| arm.name), fate });
            }
        }
    }
    rows.finish().await.map(drop)
}
