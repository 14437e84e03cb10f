//! Asking the account's own address from outside whether it leads to our receiver. It changes nothing there.

use std::time::Duration;

use reqwest::StatusCode;

use super::WebhookUrls;
use super::json_api::{innermost_cause, is_handshake};
use crate::http_client;

/// The header of a question, which nothing but its answer comes of.
pub const WEBHOOK_TEST_HEADER: &str = "x-campaign-test";

/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are read.
const MAX_ANSWER: usize = 1_024;

/// Who answers at the public address of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookTestAnswer {
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
pub async fn test_webhook(hook: &WebhookUrls, question: &str) -> WebhookTestAnswer {
    let client = http_client::builder()
        .user_agent(concat!("campaign/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(ANSWER_TIMEOUT / 2)
        .timeout(ANSWER_TIMEOUT);
    let client = match client.build() {
        Ok(client) => client,
        Err(error) => return WebhookTestAnswer::Broken(innermost_cause(&error)),
    };
    match client.post(hook.account_url()).header(WEBHOOK_TEST_HEADER, question).send().await {
        Ok(response) => read_answer(hook, question, response).await,
        Err(error) => explain_failure(&error),
    }
}

async fn read_answer(hook: &WebhookUrls, question: &str, mut response: reqwest::Response) -> WebhookTestAnswer {
    let status = response.status();
    let mut body = Vec::new();
    while status == StatusCode::OK && body.len() < MAX_ANSWER {
        match response.chunk().await {
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return explain_failure(&error),
        }
    }
    match std::str::from_utf8(&body) {
        Ok(answer) if hook.is_proof(question, answer.trim_end()) => WebhookTestAnswer::Ours,
        _ => WebhookTestAnswer::Somebody(status.as_u16()),
    }
}

fn explain_failure(error: &reqwest::Error) -> WebhookTestAnswer {
    let cause = innermost_cause(error);
    match () {
        () if error.is_dns() => WebhookTestAnswer::NoName(cause),
        () if is_handshake(error) => WebhookTestAnswer::NoHandshake(cause),
        () if error.is_timeout() => WebhookTestAnswer::Silence,
        () if error.is_connect() => WebhookTestAnswer::NoConnection(cause),
        () => WebhookTestAnswer::Broken(cause),
    }
}
