//! Numbers that are looked up while a list is read, with those that were forgotten. Pure.

use std::ops::BitOrAssign;

use hmac::{Hmac, KeyInit as _, Mac as _};
use roaring::RoaringTreemap;
use sha2::Sha256;

use crate::domain::{Addressee, ForgottenNumber, Phone};

/// With what numbers are hashed before they are forgotten; each ledger has its own.
#[derive(Clone, PartialEq, Eq)]
pub struct NumberKey([u8; NumberKey::LENGTH]);

impl NumberKey {
    /// Its bytes.
    pub const LENGTH: usize = 32;

    /// The key with these bytes.
    #[must_use]
    pub fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// What stays of whoever a message went to once they are forgotten.
    #[must_use]
    pub fn forget_addressee(&self, addressee: Addressee) -> Addressee {
        addressee.phone().map_or(addressee, |phone| Addressee::Forgotten(self.hash_number(phone)))
    }

    /// What stays of a number once it is forgotten.
    #[must_use]
    pub fn hash_number(&self, phone: Phone) -> ForgottenNumber {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(&phone.to_u64().to_be_bytes());
        let hash = mac.finalize().into_bytes();
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        ForgottenNumber::from_hash(first)
    }
}

impl std::fmt::Debug for NumberKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NumberKey(…)")
    }
}

/// A set of numbers, some of which may have been forgotten.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NumberSet {
    /// Numbers, and what stays of those that were forgotten.
    members: RoaringTreemap,
    /// With what the latter were hashed; nothing where there are none.
    key: Option<NumberKey>,
}

impl NumberSet {
    /// The set of these, which were hashed with this key as far as they were forgotten.
    #[must_use]
    pub fn new(members: RoaringTreemap, key: Option<NumberKey>) -> Self {
        let any = members.max().is_some_and(|largest| largest >= ForgottenNumber::MIN);
        Self { members, key: key.filter(|_| any) }
    }

    /// Whether a number is one of them, forgotten or not.
    #[must_use]
    pub fn contains(&self, phone: Phone) -> bool {
        let stays = |key: &NumberKey| Addressee::Forgotten(key.hash_number(phone)).to_u64();
        self.members.contains(phone.to_u64()) || self.key.as_ref().is_some_and(|key| self.members.contains(stays(key)))
    }

    /// Whether whoever a message went to is one of them.
    #[must_use]
    pub fn contains_addressee(&self, addressee: Addressee) -> bool {
        match addressee {
            Addressee::Number(phone) => self.contains(phone),
            Addressee::Forgotten(_) => self.members.contains(addressee.to_u64()),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.members.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl BitOrAssign for NumberSet {
    fn bitor_assign(&mut self, other: Self) {
        self.members |= other.members;
        // All of one ledger have one key.
        self.key = self.key.take().or(other.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phone(last: u64) -> Phone {
        Phone::new(380_501_234_560 + last).unwrap()
    }

    #[test]
    fn forgotten_number_is_found_only_with_its_key() {
        let (key, other) = (NumberKey::new([7; 32]), NumberKey::new([8; 32]));
        let stays = Addressee::Forgotten(key.hash_number(phone(1)));
        let members = [stays.to_u64(), phone(2).to_u64()].into_iter().collect::<RoaringTreemap>();
        let set = NumberSet::new(members.clone(), Some(key.clone()));
        assert_eq!([1, 2, 3].map(|last| set.contains(phone(last))), [true, true, false]);
        assert!(
            set.contains_addressee(stays)
                && set.contains_addressee(phone(1).into())
                && !set.contains_addressee(phone(3).into())
        );
        assert!(!NumberSet::new(members, Some(other)).contains(phone(1)));
        let mut plain = NumberSet::new([phone(3).to_u64()].into_iter().collect(), Some(key));
        assert_eq!(plain.key, None, "nothing is hashed where nobody was forgotten");
        plain |= set;
        assert_eq!((plain.len(), plain.contains(phone(1)), plain.contains(phone(3))), (3, true, true));
    }
}
