//! Webhook URLs: signed addresses for the gateway's webhooks, and a test of the public address.
//!
//! The contract's webhook carries neither key nor signature (contract 5.4), so the address itself is the secret. The
//! test sends a challenge to the account's public address to see whether the address leads to our endpoint. The test
//! changes nothing there.

use std::fmt;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use reqwest::StatusCode;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::Sha256;

use super::json_api::{innermost_cause, is_handshake_failure};
use campaign_core::domain::{MessageId, format_count};
use campaign_net::http_client;

/// The minimum length of a secret in bytes.
const MIN_SECRET: usize = 32;
/// The length of a MAC in bytes: 128 bits, which cannot be guessed.
const MAC_LENGTH: usize = 16;

/// The reason why a secret cannot sign webhook URLs.
#[derive(Debug, thiserror::Error)]
pub enum WebhookSecretError {
    /// The secret is missing.
    #[error("the webhook secret is missing")]
    None,
    /// The secret could be guessed.
    #[error("the webhook secret has {}, but at least {MIN_SECRET} are required", format_count(*.0 as u64, "byte"))]
    Short(usize),
}

/// The secrets of webhook URLs: the first one signs, all of them verify.
#[derive(Clone)]
pub struct WebhookSecrets(Vec<Hmac<Sha256>>);

impl fmt::Debug for WebhookSecrets {
    /// Shows only the number of secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WebhookSecrets").field(&self.0.len()).finish()
    }
}

impl WebhookSecrets {
    /// Prepares webhook secrets. The first secret signs.
    ///
    /// # Errors
    /// If there are no secrets, or a secret is too short.
    pub fn new(secrets: &[SecretString]) -> Result<Self, WebhookSecretError> {
        let to_key = |secret: &SecretString| {
            let bytes = secret.expose_secret().as_bytes();
            match bytes.len() {
                MIN_SECRET.. => Ok(Hmac::new_from_slice(bytes).expect("an HMAC key can have any length")),
                short => Err(WebhookSecretError::Short(short)),
            }
        };
        let keys: Vec<_> = secrets.iter().map(to_key).collect::<Result<_, _>>()?;
        if keys.is_empty() { Err(WebhookSecretError::None) } else { Ok(Self(keys)) }
    }

    /// Combines several sets of secrets. The first secret of the first set signs.
    pub fn merge(sets: impl IntoIterator<Item = Self>) -> Self {
        Self(sets.into_iter().flat_map(|secrets| secrets.0).collect())
    }

    /// Whether the MAC in a message's webhook address is valid for any of the secrets. The comparison takes constant
    /// time.
    pub fn verify_message(&self, run: &str, id: MessageId, mac: &str) -> bool {
        self.verify(&message_text(run, id), mac)
    }

    /// Whether the MAC of the account's own address is valid.
    pub fn verify_account_mac(&self, mac: &str) -> bool {
        self.verify(ACCOUNT_TEXT, mac)
    }

    /// A proof, for the sender of a challenge, that we know the secret of the account's own address. `None` if
    /// `account_mac` is not a valid MAC of this address.
    pub fn answer_challenge(&self, account_mac: &str, challenge: &str) -> Option<String> {
        let account_mac = decode_mac(account_mac)?;
        let signed_address =
            |key: &&Hmac<Sha256>| (*key).clone().chain_update(ACCOUNT_TEXT).verify_truncated_left(&account_mac).is_ok();
        self.0.iter().find(signed_address).map(|key| compute_mac(key, &challenge_text(challenge)))
    }

    /// A value for each secret, beginning with the signing secret. Equal values show that two holders have the same
    /// secret, without revealing the secret.
    pub fn check_values(&self) -> Vec<String> {
        self.0.iter().map(|key| compute_mac(key, b"check")).collect()
    }

    fn sign(&self, text: &[u8]) -> String {
        // There is always a secret, so the default is never used.
        self.0.first().map(|key| compute_mac(key, text)).unwrap_or_default()
    }

    fn verify(&self, text: &[u8], mac: &str) -> bool {
        let Some(mac) = decode_mac(mac) else { return false };
        // The comparison takes constant time. The number of secrets is not confidential.
        self.0.iter().any(|key| key.clone().chain_update(text).verify_truncated_left(&mac).is_ok())
    }
}

fn compute_mac(key: &Hmac<Sha256>, text: &[u8]) -> String {
    let tag = key.clone().chain_update(text).finalize().into_bytes();
    tag[..MAC_LENGTH].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The text that is signed for the account's own address. It differs from the signed text of every message.
const ACCOUNT_TEXT: &[u8] = b"n";

/// The text that is signed to answer a challenge. It differs from the signed text of every address.
fn challenge_text(challenge: &str) -> Vec<u8> {
    format!("t/{challenge}").into_bytes()
}

/// The text that is signed for a message's webhook address.
fn message_text(run: &str, id: MessageId) -> Vec<u8> {
    format!("h/{run}/{id}").into_bytes()
}

/// Decodes a MAC. `None` unless it is spelled with exactly the right number of lower-case hexadecimal digits.
fn decode_mac(mac: &str) -> Option<[u8; MAC_LENGTH]> {
    let digits = mac.as_bytes();
    let is_lower_hex = |digit: &u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(digit);
    if digits.len() != 2 * MAC_LENGTH || !digits.iter().all(is_lower_hex) {
        return None;
    }
    let mut bytes = [0; MAC_LENGTH];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// URLs for the gateway's webhooks: the public address of the endpoint, and the secrets that sign its URLs.
#[derive(Clone, Debug)]
pub struct WebhookUrls {
    public_url: String,
    secrets: WebhookSecrets,
}

impl WebhookUrls {
    /// Webhook URLs at `public_url`, which must have no trailing slash.
    pub fn new(public_url: String, secrets: WebhookSecrets) -> Self {
        Self { public_url, secrets }
    }

    /// The webhook URL for one message of a run.
    pub fn message_url(&self, run: &str, id: MessageId) -> String {
        format!("{}/h/{run}/{id}/{}", self.public_url, self.secrets.sign(&message_text(run, id)))
    }

    /// The webhook URLs for the messages of a run.
    pub fn for_run(&self, run: String) -> RunWebhookUrls {
        RunWebhookUrls { hook: self.clone(), run }
    }

    /// Whether an answer proves that its sender knows our secret.
    pub(crate) fn is_proof(&self, challenge: &str, answer: &str) -> bool {
        self.secrets.verify(&challenge_text(challenge), answer)
    }

    /// The URL to enter in the account's settings at the gateway, for messages that have no webhook URL of their own.
    pub fn account_url(&self) -> String {
        format!("{}/n/{}", self.public_url, self.secrets.sign(ACCOUNT_TEXT))
    }

    /// The public address of the webhook endpoint.
    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    /// The secrets that sign the URLs.
    pub fn secrets(&self) -> &WebhookSecrets {
        &self.secrets
    }
}

/// The webhook URLs of the messages of a run.
#[derive(Clone, Debug)]
pub struct RunWebhookUrls {
    hook: WebhookUrls,
    run: String,
}

impl RunWebhookUrls {
    /// The webhook URL for one message of the run.
    pub fn message_url(&self, id: MessageId) -> String {
        self.hook.message_url(&self.run, id)
    }
}

/// The header of a test challenge, which has no other effect.
pub const WEBHOOK_TEST_HEADER: &str = "x-campaign-test";

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of an answer in bytes.
const MAX_ANSWER: usize = 1_024;

/// The result of testing the public address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookTestAnswer {
    /// A webhook endpoint that knows our secret.
    Ours,
    /// Another server answered with the given HTTP status.
    OtherServer(u16),
    /// The host name cannot be resolved. Contains the innermost cause of the error.
    NoName(String),
    /// No connection could be made. Contains the innermost cause of the error.
    NoConnection(String),
    /// The TLS handshake failed.
    NoHandshake(String),
    /// No answer in time.
    Silence,
    /// The connection broke.
    Broken(String),
}

/// Sends a challenge to the account's own webhook address and checks the answer.
pub async fn test_webhook(hook: &WebhookUrls, challenge: &str) -> WebhookTestAnswer {
    let client = http_client::builder()
        .user_agent(concat!("campaign/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(ANSWER_TIMEOUT / 2)
        .timeout(ANSWER_TIMEOUT);
    let client = match client.build() {
        Ok(client) => client,
        Err(error) => return WebhookTestAnswer::Broken(innermost_cause(&error)),
    };
    match client.post(hook.account_url()).header(WEBHOOK_TEST_HEADER, challenge).send().await {
        Ok(response) => read_answer(hook, challenge, response).await,
        Err(error) => classify_failure(&error),
    }
}

async fn read_answer(hook: &WebhookUrls, challenge: &str, mut response: reqwest::Response) -> WebhookTestAnswer {
    let status = response.status();
    let mut body = Vec::new();
    while status == StatusCode::OK && body.len() < MAX_ANSWER {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return classify_failure(&error),
        }
    }
    match std::str::from_utf8(&body) {
        Ok(answer) if hook.is_proof(challenge, answer.trim_end()) => WebhookTestAnswer::Ours,
        _ => WebhookTestAnswer::OtherServer(status.as_u16()),
    }
}

fn classify_failure(error: &reqwest::Error) -> WebhookTestAnswer {
    let cause = innermost_cause(error);
    if error.is_dns() {
        WebhookTestAnswer::NoName(cause)
    } else if is_handshake_failure(error) {
        WebhookTestAnswer::NoHandshake(cause)
    } else if error.is_timeout() {
        WebhookTestAnswer::Silence
    } else if error.is_connect() {
        WebhookTestAnswer::NoConnection(cause)
    } else {
        WebhookTestAnswer::Broken(cause)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn secrets(names: &[&str]) -> WebhookSecrets {
        let secrets: Vec<SecretString> = names.iter().map(|name| name.repeat(32).into()).collect();
        WebhookSecrets::new(&secrets).unwrap()
    }

    fn id(number: u64) -> MessageId {
        MessageId::new(number).unwrap()
    }

    fn mac_of(address: &str) -> &str {
        address.rsplit('/').next().unwrap()
    }

    #[test]
    fn webhook_url_belongs_to_one_message_of_one_run() {
        let hook = WebhookUrls::new("https://hooks.example".into(), secrets(&["a"]));
        let address = hook.message_url("sale@3", id(77));
        assert!(address.starts_with("https://hooks.example/h/sale@3/77/"), "{address}");
        let mac = mac_of(&address);
        assert!(hook.secrets().verify_message("sale@3", id(77), mac));
        assert!(!hook.secrets().verify_message("sale@3", id(78), mac));
        assert!(!hook.secrets().verify_message("sale@4", id(77), mac));
        assert!(!hook.secrets().verify_account_mac(mac));
        assert!(hook.secrets().verify_account_mac(mac_of(&hook.account_url())));
        assert!(!secrets(&["b"]).verify_message("sale@3", id(77), mac));
    }

    #[test]
    fn first_secret_signs_and_all_verify() {
        let (old, rotated) = (secrets(&["old"]), secrets(&["new", "old"]));
        let address =
            |secrets: &WebhookSecrets| WebhookUrls::new(String::new(), secrets.clone()).message_url("sale@3", id(77));
        for address in [address(&old), address(&rotated)] {
            assert!(rotated.verify_message("sale@3", id(77), mac_of(&address)));
        }
        assert!(!old.verify_message("sale@3", id(77), mac_of(&address(&rotated))));
        let check_value = |secrets: &WebhookSecrets| secrets.check_values()[0].clone();
        assert_eq!(rotated.check_values(), [check_value(&secrets(&["new"])), check_value(&old)]);
    }

    #[test]
    fn only_a_holder_of_the_secret_can_prove_possession() {
        let hook = |names: &[&str]| WebhookUrls::new("https://hooks.example".into(), secrets(names));
        let current = hook(&["new", "old"]);
        let account_mac = |hook: &WebhookUrls| mac_of(&hook.account_url()).to_owned();
        for known in [&["new", "old"][..], &["old", "new"]] {
            let proof = secrets(known).answer_challenge(&account_mac(&current), "7").unwrap();
            assert!(
                current.is_proof("7", &proof)
                    && !current.is_proof("8", &proof)
                    && !hook(&["other"]).is_proof("7", &proof)
            );
            assert_ne!(proof, account_mac(&current));
        }
        assert_eq!(secrets(&["old"]).answer_challenge(&account_mac(&current), "7"), None);
        assert!(!current.is_proof("7", "ok") && !current.is_proof("7", &account_mac(&current)));
    }

    #[test]
    fn short_or_missing_secret_is_rejected() {
        let error = WebhookSecrets::new(&["x".repeat(31).into()]).unwrap_err().to_string();
        assert!(error.contains("has 31 bytes, but at least 32"), "{error}");
        assert!(WebhookSecrets::new(&[]).is_err());
    }

    proptest! {
        #[test]
        fn partial_or_altered_mac_is_rejected(at in 0_usize..32, digit in "[0-9a-fA-F ]", len in 0_usize..32) {
            let secrets = secrets(&["a"]);
            let address = WebhookUrls::new(String::new(), secrets.clone()).message_url("sale@3", id(77));
            let mac = mac_of(&address);
            prop_assert!(!secrets.verify_message("sale@3", id(77), &mac[..len]));
            let longer = format!("{mac}0");
            prop_assert!(!secrets.verify_message("sale@3", id(77), &longer));
            prop_assert!(!secrets.verify_message("sale@3", id(77), &mac.to_uppercase()) || mac.to_uppercase() == mac);
            let altered = format!("{}{digit}{}", &mac[..at], &mac[at + 1..]);
            prop_assert!(altered == mac || !secrets.verify_message("sale@3", id(77), &altered));
        }
    }
}
