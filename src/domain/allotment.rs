//! Which part of a campaign's people somebody belongs to: by a stable hash of the number, so that adding people moves nobody.

use sha2::{Digest, Sha256};

use super::Phone;

/// How people are divided: some are held out, the others get one of several variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allotment {
    holdout: Option<Holdout>,
    salt: String,
    /// Where the part of each variant ends, in hundredths of a percent of all; the last is what they are together.
    ends: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Holdout {
    salt: String,
    share: u64,
}

/// A whole in hundredths of a percent.
const WHOLE: u64 = 10_000;

impl Allotment {
    /// Of a campaign, with the share of each variant in hundredths of a percent; one share for a campaign without variants.
    #[must_use]
    pub fn new(campaign: &str, shares: &[u64]) -> Self {
        let ends = shares.iter().scan(0, |end, share| {
            *end += share;
            Some(*end)
        });
        Self { holdout: None, salt: format!("variant\0{campaign}"), ends: ends.collect() }
    }

    /// With so many hundredths of a percent held out: the same people wherever `of`, a campaign or a group of them, is the same.
    #[must_use]
    pub fn holding_out(self, of: &str, share: u64) -> Self {
        Self { holdout: Some(Holdout { salt: format!("holdout\0{of}"), share }), ..self }
    }

    /// Whether somebody gets nothing, to compare with.
    #[must_use]
    pub fn holds_out(&self, phone: Phone) -> bool {
        self.holdout.as_ref().is_some_and(|Holdout { salt, share }| drawn(salt, phone, WHOLE) < *share)
    }

    /// Which of the variants somebody gets, counted from 0.
    #[must_use]
    pub fn variant(&self, phone: Phone) -> usize {
        let Some(whole) = self.ends.last().filter(|_| self.ends.len() > 1) else { return 0 };
        let drawn = drawn(&self.salt, phone, *whole);
        self.ends.iter().position(|end| drawn < *end).unwrap_or(0)
    }
}

/// A number below `whole`, drawn evenly by the number and the salt.
fn drawn(salt: &str, phone: Phone, whole: u64) -> u64 {
    let hash = Sha256::new().chain_update(salt).chain_update("\0").chain_update(phone.get().to_string()).finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    // The upper bits of the product: even to one part in 2^64.
    let drawn = (u128::from(u64::from_be_bytes(first)) * u128::from(whole)) >> 64;
    u64::try_from(drawn).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people() -> impl Iterator<Item = Phone> {
        (0..20_000).map(|n| Phone::new(380_500_000_000 + n * 37).expect("a number"))
    }

    fn share_of(chosen: impl Fn(Phone) -> bool) -> f64 {
        people().filter(|phone| chosen(*phone)).count() as f64 / 20_000.0
    }

    #[test]
    fn shares_are_kept_and_variants_do_not_depend_on_who_is_held_out() {
        let allotment = Allotment::new("sale", &[5_000, 4_000]).holding_out("sale", 1_000);
        assert!((share_of(|phone| allotment.holds_out(phone)) - 0.1).abs() < 0.01);
        let first = share_of(|phone| allotment.variant(phone) == 0);
        assert!((first - 5.0 / 9.0).abs() < 0.015, "{first}");
        let among_held_out = people().filter(|phone| allotment.holds_out(*phone));
        let (first, all) = among_held_out.fold((0.0_f64, 0.0), |(first, all), phone| {
            (first + if allotment.variant(phone) == 0 { 1.0 } else { 0.0 }, all + 1.0)
        });
        assert!((first / all - 5.0 / 9.0).abs() < 0.05, "who is held out says nothing of the variant");
    }

    #[test]
    fn the_same_person_is_always_in_the_same_part() {
        // Runs of earlier versions divided their people by these: the numbers must never change.
        let allotment = Allotment::new("sale", &[5_000, 4_000]).holding_out("autumn", 1_000);
        let parts: String = people()
            .take(24)
            .map(|phone| match (allotment.holds_out(phone), allotment.variant(phone)) {
                (true, _) => '-',
                (false, 0) => 'a',
                (false, _) => 'b',
            })
            .collect();
        assert_eq!(parts, "baaaba-abbabaabababbabbb");
    }

    #[test]
    fn a_group_holds_out_the_same_people_in_each_of_its_campaigns_and_other_campaigns_hold_out_others() {
        let held = |campaign: &str, of: &str| {
            let allotment = Allotment::new(campaign, &[9_000]).holding_out(of, 1_000);
            people().filter(|phone| allotment.holds_out(*phone)).collect::<Vec<_>>()
        };
        assert_eq!(held("spring", "year"), held("autumn", "year"));
        assert_ne!(held("spring", "spring"), held("autumn", "autumn"));
        assert!(Allotment::new("sale", &[]).variant(people().next().expect("somebody")) == 0);
    }
}
