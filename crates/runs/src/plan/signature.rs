//! Signatures with the private keys of approvers: tokens that prove who approved a plan, and signed evidence.
//!
//! With a signature, the sender of a campaign cannot approve it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use crate::Error;
use campaign_core::domain::ApproverKey;
use campaign_ledger::Approval;
use campaign_manifest::SecretSource;

/// The domain of approval signatures, so that no other signature is valid as one.
const SIGNATURE_DOMAIN: &[u8] = b"campaign approval 1\0";

/// The domain of signatures of evidence.
const EVIDENCE_DOMAIN: &[u8] = b"campaign evidence 1\0";

/// The prefix of a private key file.
const KEY_PREFIX: &str = "ed25519-private:";

/// A private key.
pub struct PrivateKey(Ed25519KeyPair);

/// The content of a token, without the signature. Times are microseconds since 1970.
#[derive(Serialize, Deserialize)]
struct ApprovalStatement {
    digest: String,
    by: String,
    up_to: u64,
    at: i64,
    until: i64,
    standing: bool,
}

impl PrivateKey {
    /// Generates a key: the line of its file, and its public key.
    ///
    /// # Errors
    /// If that fails, which is a bug.
    pub fn generate_pair() -> Result<(SecretString, ApproverKey), Error> {
        let seed: [u8; 32] = rand::random();
        let key = Self::from_seed(&seed).ok_or_else(|| Error::Internal("cannot generate a key pair".to_owned()))?;
        let public =
            key.public_key().ok_or_else(|| Error::Internal("the generated key pair has no public key".to_owned()))?;
        Ok((SecretString::from(format!("{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(seed))), public))
    }

    /// Reads the key from a file that only its owner can read.
    ///
    /// # Errors
    /// If there is no key. The message never contains any part of it.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let source = SecretSource::File(file.to_owned());
        let line = source.read_secret("the private approval key", &|_| None).map_err(Error::Input)?;
        let seed = line.expose_secret().strip_prefix(KEY_PREFIX).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let wrong = || Error::Input(format!("`{}` does not contain a private approval key", file.display()));
        seed.and_then(|seed| Self::from_seed(&seed)).ok_or_else(wrong)
    }

    fn from_seed(seed: &[u8]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self)
    }

    /// The public key that belongs to this private key.
    #[must_use]
    pub fn public_key(&self) -> Option<ApproverKey> {
        ApproverKey::from_bytes(self.0.public_key().as_ref())
    }

    /// Signs the digest of evidence. The signature is in Base64 for URLs.
    #[must_use]
    pub fn sign_evidence(&self, digest: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.0.sign(&[EVIDENCE_DOMAIN, digest.as_bytes()].concat()))
    }

    /// Signs an approval and sets its token.
    pub(super) fn sign(&self, approval: Approval) -> Approval {
        let Approval { digest, by, up_to, at, until, standing, token: _ } = &approval;
        let statement = ApprovalStatement {
            digest: digest.clone(),
            by: by.clone(),
            up_to: *up_to,
            at: at.as_microsecond(),
            until: until.as_microsecond(),
            standing: *standing,
        };
        // A statement of texts and numbers can always be serialized.
        let said = serde_json::to_vec(&statement).unwrap_or_default();
        let signature = self.0.sign(&[SIGNATURE_DOMAIN, &said].concat());
        let token = format!("{}.{}", URL_SAFE_NO_PAD.encode(&said), URL_SAFE_NO_PAD.encode(signature));
        Approval { token, ..approval }
    }
}

/// The approval in a token, if the owner of one of these keys signed it under their own name.
pub(super) fn verify_token(token: &str, keys: &[(String, ApproverKey)]) -> Option<Approval> {
    let (said, signature) = token.trim().split_once('.')?;
    let (said, signature) = (URL_SAFE_NO_PAD.decode(said).ok()?, URL_SAFE_NO_PAD.decode(signature).ok()?);
    let ApprovalStatement { digest, by, up_to, at, until, standing } = serde_json::from_slice(&said).ok()?;
    let (_, key) = keys.iter().find(|(name, _)| *name == by)?;
    UnparsedPublicKey::new(&ED25519, key.as_bytes()).verify(&[SIGNATURE_DOMAIN, &said].concat(), &signature).ok()?;
    let (at, until) = (Timestamp::from_microsecond(at).ok()?, Timestamp::from_microsecond(until).ok()?);
    Some(Approval { token: token.trim().to_owned(), digest, by, up_to, at, until, standing })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn approval(digest: String, up_to: u64) -> Approval {
        let at = Timestamp::from_microsecond(1_800_000_000_000_000).unwrap();
        let (token, by) = (String::new(), "Olha".to_owned());
        Approval { token, digest, by, up_to, at, until: at, standing: false }
    }

    fn private_key(seed: u8) -> PrivateKey {
        PrivateKey::from_seed(&[seed; 32]).unwrap()
    }

    fn approver_keys(name: &str, seed: u8) -> Vec<(String, ApproverKey)> {
        vec![(name.to_owned(), private_key(seed).public_key().unwrap())]
    }

    #[test]
    fn signature_is_bound_to_person_key_and_purpose() {
        let signed = private_key(1).sign(approval("d1".to_owned(), 7));
        assert_eq!(verify_token(&signed.token, &approver_keys("Olha", 1)), Some(signed.clone()));
        assert_eq!(verify_token(&signed.token, &approver_keys("Olha", 2)), None, "another key");
        assert_eq!(verify_token(&signed.token, &approver_keys("Taras", 1)), None, "another name");
        assert_eq!(verify_token(&signed.token, &[]), None);
        let said = signed.token.split_once('.').unwrap().0;
        let bare = private_key(1).0.sign(&URL_SAFE_NO_PAD.decode(said).unwrap());
        let bare = format!("{said}.{}", URL_SAFE_NO_PAD.encode(bare));
        assert_eq!(verify_token(&bare, &approver_keys("Olha", 1)), None, "a signature for something else");
    }

    #[test]
    fn signed_evidence_is_verified_with_the_public_key() {
        let key = private_key(1);
        let signature = URL_SAFE_NO_PAD.decode(key.sign_evidence("d1")).unwrap();
        let public = key.public_key().unwrap();
        let verify = |text: &[u8]| UnparsedPublicKey::new(&ED25519, public.as_bytes()).verify(text, &signature);
        assert!(verify(b"campaign evidence 1\0d1").is_ok() && verify(b"campaign evidence 1\0d2").is_err());
        assert!(verify(b"campaign approval 1\0d1").is_err());
    }

    proptest! {
        #[test]
        fn altered_token_is_rejected(at in 0..400_usize, letter in "[A-Za-z0-9_.-]") {
            let token = private_key(1).sign(approval("d1".to_owned(), 7)).token;
            let at = at % token.len();
            let other = format!("{}{letter}{}", &token[..at], &token[at + 1..]);
            prop_assert_eq!(verify_token(&other, &approver_keys("Olha", 1)).is_some(), other == token);
        }

        #[test]
        fn malformed_token_is_rejected(token in ".{0,80}") {
            prop_assert!(verify_token(&token, &approver_keys("Olha", 1)).is_none());
        }
    }
}
