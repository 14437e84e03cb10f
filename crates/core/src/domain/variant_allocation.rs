//! Assignment of recipients to variants and to the holdout group. The assignment depends on a stable hash of the phone
//! number, so new recipients do not change the variants of others.

use sha2::{Digest, Sha256};

use super::Phone;

/// The allocation of recipients: some are held out, the others get one of several variants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantAllocation {
    holdout: Option<HoldoutDraw>,
    salt: String,
    /// The end of each variant's part, in hundredths of a percent; the last is the total.
    ends: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HoldoutDraw {
    salt: String,
    share: u64,
}

/// 100 % in hundredths of a percent.
const TOTAL_SHARE: u64 = 10_000;

impl VariantAllocation {
    /// The allocation of a campaign.
    ///
    /// `shares` has each variant's share in hundredths of a percent; it is empty for a campaign without variants.
    pub fn new(campaign: &str, shares: &[u64]) -> Self {
        let ends = shares.iter().scan(0, |end, share| {
            *end += share;
            Some(*end)
        });
        Self { holdout: None, salt: format!("variant\0{campaign}"), ends: ends.collect() }
    }

    /// Holds out this many hundredths of a percent of the recipients. `name` is the name of a campaign or a group;
    /// equal names hold out the same recipients.
    #[must_use]
    pub fn with_holdout(self, name: &str, share: u64) -> Self {
        Self { holdout: Some(HoldoutDraw { salt: format!("holdout\0{name}"), share }), ..self }
    }

    /// Whether the recipient is in the holdout group and gets no message.
    pub fn is_held_out(&self, phone: Phone) -> bool {
        self.holdout.as_ref().is_some_and(|HoldoutDraw { salt, share }| draw_number(salt, phone, TOTAL_SHARE) < *share)
    }

    /// The index of the recipient's variant.
    pub fn assign_variant(&self, phone: Phone) -> usize {
        let Some(total) = self.ends.last().filter(|_| self.ends.len() > 1) else { return 0 };
        let drawn = draw_number(&self.salt, phone, *total);
        self.ends.iter().position(|end| drawn < *end).unwrap_or(0)
    }
}

/// A uniformly distributed number below `limit` that is derived from the phone number and the salt.
fn draw_number(salt: &str, phone: Phone, limit: u64) -> u64 {
    let hash = Sha256::new().chain_update(salt).chain_update("\0").chain_update(phone.to_u64().to_string()).finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    // The upper bits of the product are uniform to one part in 2^64.
    let drawn = (u128::from(u64::from_be_bytes(first)) * u128::from(limit)) >> 64;
    u64::try_from(drawn).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_phones() -> impl Iterator<Item = Phone> {
        (0..20_000).map(|n| Phone::new(380_500_000_000 + n * 37).expect("a number"))
    }

    fn measure_share(is_chosen: impl Fn(Phone) -> bool) -> f64 {
        test_phones().filter(|phone| is_chosen(*phone)).count() as f64 / 20_000.0
    }

    #[test]
    fn variants_keep_their_shares_and_ignore_the_holdout() {
        let allocation = VariantAllocation::new("sale", &[5_000, 4_000]).with_holdout("sale", 1_000);
        assert!((measure_share(|phone| allocation.is_held_out(phone)) - 0.1).abs() < 0.01);
        let first = measure_share(|phone| allocation.assign_variant(phone) == 0);
        assert!((first - 5.0 / 9.0).abs() < 0.015, "{first}");
        let among_held_out = test_phones().filter(|phone| allocation.is_held_out(*phone));
        let (first, all) = among_held_out.fold((0.0_f64, 0.0), |(first, all), phone| {
            (first + if allocation.assign_variant(phone) == 0 { 1.0 } else { 0.0 }, all + 1.0)
        });
        assert!((first / all - 5.0 / 9.0).abs() < 0.05, "the holdout is independent of the variant");
    }

    #[test]
    fn variant_of_a_number_never_changes() {
        // Earlier versions assigned variants by these draws, so the expected letters must never change.
        let allocation = VariantAllocation::new("sale", &[5_000, 4_000]).with_holdout("autumn", 1_000);
        let parts: String = test_phones()
            .take(24)
            .map(|phone| match (allocation.is_held_out(phone), allocation.assign_variant(phone)) {
                (true, _) => '-',
                (false, 0) => 'a',
                (false, _) => 'b',
            })
            .collect();
        assert_eq!(parts, "baaaba-abbabaabababbabbb");
    }

    #[test]
    fn campaigns_of_a_group_hold_out_the_same_numbers() {
        let held_out = |campaign: &str, group: &str| {
            let allocation = VariantAllocation::new(campaign, &[9_000]).with_holdout(group, 1_000);
            test_phones().filter(|phone| allocation.is_held_out(*phone)).collect::<Vec<_>>()
        };
        assert_eq!(held_out("spring", "year"), held_out("autumn", "year"));
        assert_ne!(held_out("spring", "spring"), held_out("autumn", "autumn"));
        assert!(VariantAllocation::new("sale", &[]).assign_variant(test_phones().next().expect("a number")) == 0);
    }
}
