//! Asking the account's own address from outside whether it leads to our receiver. It changes nothing there.

use std::time::Duration;

use reqwest::StatusCode;

use super::Hook;
use super::json_api::{cause, is_handshake};
use crate::http_client;

/// The header of a question, which nothing but its answer comes of.
pub const HOOK_QUESTION: &str = "x-campaign-test";

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const LARGEST: usize = 1_024;

/// Who answers at the public address of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    /// A receiver that knows our secret.
    Ours,
    /// Somebody who does not prove it, with this status.
    Somebody(u16),
    /// Nobody: the name of its host is not known.
    NoName(String),
    /// Nobody: no connection was made.
    NoConnection(String),
    /// Nobody whom we trust to be it: the TLS handshake failed.
    NoHandshake(String),
    /// Nobody in time.
    Silence,
    /// The connection broke.
    Broken(String),
}

/// Asks the account's own address a question that was never asked before.
pub async fn ask_hook(hook: &Hook, question: &str) -> HookAnswer {
    let client = http_client::builder()
        .user_agent(concat!("campaign/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(PATIENCE / 2)
        .timeout(PATIENCE);
    let client = match client.build() {
        Ok(client) => client,
        Err(error) => return HookAnswer::Broken(cause(&error)),
    };
    match client.post(hook.of_account()).header(HOOK_QUESTION, question).send().await {
        Ok(response) => heard(hook, question, response).await,
        Err(error) => unheard(&error),
    }
}

async fn heard(hook: &Hook, question: &str, mut response: reqwest::Response) -> HookAnswer {
    let status = response.status();
    let mut body = Vec::new();
    while status == StatusCode::OK && body.len() < LARGEST {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return unheard(&error),
        }
    }
    match std::str::from_utf8(&body) {
        Ok(answer) if hook.is_proof(question, answer.trim_end()) => HookAnswer::Ours,
        _ => HookAnswer::Somebody(status.as_u16()),
    }
}

fn unheard(error: &reqwest::Error) -> HookAnswer {
    let cause = cause(error);
    match () {
        () if error.is_dns() => HookAnswer::NoName(cause),
        () if is_handshake(error) => HookAnswer::NoHandshake(cause),
        () if error.is_timeout() => HookAnswer::Silence,
        () if error.is_connect() => HookAnswer::NoConnection(cause),
        () => HookAnswer::Broken(cause),
    }
}
