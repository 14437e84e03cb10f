//! Public keys of people who can approve runs (Ed25519).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The prefix of a written key, which names the signature algorithm.
const KEY_PREFIX: &str = "ed25519:";

/// The public half of an Ed25519 key (RFC 8032); written as `ed25519:` and 43 letters of base64url.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApproverKey([u8; 32]);

/// The text is not a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the public key is not valid")]
pub struct ParseApproverKeyError;

impl ApproverKey {
    /// The key from these bytes; `None` if the length is wrong.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for ApproverKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{KEY_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for ApproverKey {
    type Err = ParseApproverKeyError;

    fn from_str(text: &str) -> Result<Self, ParseApproverKeyError> {
        let bytes = text.strip_prefix(KEY_PREFIX).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        bytes.and_then(|bytes| Self::from_bytes(&bytes)).ok_or(ParseApproverKeyError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approver_key_round_trips_and_other_text_is_rejected() {
        let key = ApproverKey([7; 32]);
        let text = key.to_string();
        assert_eq!((text.len(), text.parse()), (8 + 43, Ok(key)));
        for other in ["", "ed25519:", "ed25519:AAAA", &text[8..], &format!("{text}="), &text.replace("ed25519", "rsa")]
        {
            assert_eq!(other.parse::<ApproverKey>(), Err(ParseApproverKeyError), "{other}");
        }
    }
}
