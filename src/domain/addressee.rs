//! Whom a message went to, as long as that is known.

use serde::{Deserialize, Serialize};

use super::Phone;

/// What stands in a list where the number of somebody stood who was forgotten.
pub const FORGOTTEN: &str = "forgotten";

/// Whom a message went to: a number, or what stays of one that was forgotten.
///
/// Stored as one whole number: what stays of a forgotten one is larger than any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub enum Addressee {
    /// A number.
    Number(Phone),
    /// A number that was forgotten.
    Forgotten(ForgottenNumber),
}

/// What stays of a number that was forgotten: 61 bits of a hash of it with a key, by which it is recognised if it comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForgottenNumber(u64);

impl ForgottenNumber {
    /// The least of them; each fits into a signed integer.
    pub const MIN: u64 = 1 << 61;

    /// That of a number whose hash begins with these bytes.
    #[must_use]
    pub fn from_hash(hash: [u8; 8]) -> Self {
        Self(u64::from_be_bytes(hash) % Self::MIN + Self::MIN)
    }
}

impl Addressee {
    /// The number, unless it was forgotten.
    #[must_use]
    pub fn phone(self) -> Option<Phone> {
        match self {
            Addressee::Number(phone) => Some(phone),
            Addressee::Forgotten(_) => None,
        }
    }

    /// It as one whole number.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        match self {
            Addressee::Number(phone) => phone.to_u64(),
            Addressee::Forgotten(ForgottenNumber(stays)) => stays,
        }
    }
}

impl From<Phone> for Addressee {
    fn from(phone: Phone) -> Self {
        Addressee::Number(phone)
    }
}

impl From<Addressee> for u64 {
    fn from(addressee: Addressee) -> Self {
        addressee.to_u64()
    }
}

impl TryFrom<u64> for Addressee {
    type Error = &'static str;

    fn try_from(kept: u64) -> Result<Self, Self::Error> {
        match kept {
            ForgottenNumber::MIN.. => Ok(Addressee::Forgotten(ForgottenNumber(kept))),
            number => Phone::new(number).map(Addressee::Number).ok_or("the number is too short or too long"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addressee_round_trips_as_whole_number() {
        let number = Addressee::from(Phone::new(380_501_234_567).unwrap());
        let stays = [[0; 8], [255; 8]].map(|hash| Addressee::Forgotten(ForgottenNumber::from_hash(hash)));
        for addressee in [number, stays[0], stays[1]] {
            assert_eq!(Addressee::try_from(addressee.to_u64()), Ok(addressee));
            assert!(i64::try_from(addressee.to_u64()).is_ok());
        }
        assert_eq!((number.phone().map(Phone::to_u64), stays[1].phone()), (Some(380_501_234_567), None));
        assert!(Addressee::try_from(7).is_err() && Addressee::try_from(10_u64.pow(16)).is_err());
    }
}
