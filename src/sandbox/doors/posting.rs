//! Sending webhooks: one try at a time, as they are, and not to other machines unless that is wanted.
//!
//! It decides nothing about another try; the platform does (contract 6).

use std::collections::HashSet;
use std::error::Error as _;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Url};

use super::plain_http::{NoAnswer, Target};
use crate::sandbox::faults::wire::{Post, Posted};

/// How many webhooks are on their way at a time.
pub(super) const AT_A_TIME: usize = 64;
/// How long a receiver may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Of how many reasons not to send a webhook a person is told.
const MOST_WARNINGS: usize = 100;
/// What the sandbox calls itself.
const AGENT: &str = concat!("campaign-sandbox/", env!("CARGO_PKG_VERSION"));

/// Where webhooks may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hooks {
    /// To addresses of this machine alone: a rehearsal bothers nobody else's receiver.
    #[default]
    Loopback,
    /// Wherever they are addressed to.
    Anywhere,
}

/// Who brings webhooks to their receivers.
#[derive(Clone, Debug)]
pub(super) struct Courier {
    /// For what cannot be sent as it was written; it writes some characters otherwise, as browsers do.
    client: Client,
    hooks: Hooks,
    timeout: Duration,
    /// The reasons for which webhooks were not sent, as far as they were told of.
    warned: Arc<Mutex<HashSet<String>>>,
}

impl Courier {
    /// A courier who goes where he may.
    ///
    /// # Errors
    /// If the HTTP client cannot be set up.
    pub(super) fn new(hooks: Hooks) -> Result<Self, reqwest::Error> {
        Self::patient(hooks, TIMEOUT)
    }

    fn patient(hooks: Hooks, timeout: Duration) -> Result<Self, reqwest::Error> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let client = Client::builder()
            .user_agent(AGENT)
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .http1_only()
            .timeout(timeout)
            .pool_max_idle_per_host(AT_A_TIME)
            .tcp_nodelay(true)
            .build()?;
        Ok(Self { client, hooks, timeout, warned: Arc::default() })
    }

    /// Tries to send a webhook once and tells what became of it.
    pub(super) async fn bring(&self, post: Post) -> Posted {
        let url = match self.receiver(&post.url) {
            Ok(url) => url,
            Err(reason) => {
                self.warn_once(&reason);
                return Posted::Refused(reason);
            }
        };
        let answered = match Target::of(&url, &post.url) {
            Some(target) => self.post_plain(&target, &post.body).await,
            None => self.post_normalised(url, post.body).await,
        };
        answered.map_or_else(Posted::Failed, Posted::Answered)
    }

    async fn post_plain(&self, target: &Target<'_>, body: &[u8]) -> Result<u16, String> {
        match tokio::time::timeout(self.timeout, target.post(AGENT, body)).await {
            Ok(Ok(status)) => Ok(status),
            Ok(Err(NoAnswer::NoConnection(error))) => Err(format!("no connection: {error}")),
            Ok(Err(NoAnswer::Broken(error))) => Err(format!("the connection broke: {error}")),
            Err(_) => Err(self.silent()),
        }
    }

    async fn post_normalised(&self, url: Url, body: Vec<u8>) -> Result<u16, String> {
        match self.client.post(url).body(body).send().await {
            Ok(response) => Ok(response.status().as_u16()),
            Err(error) if error.is_timeout() => Err(self.silent()),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Tells of a webhook that is not sent; once for each reason, which names the host.
    fn warn_once(&self, reason: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() < MOST_WARNINGS && warned.insert(reason.to_owned()) {
            tracing::warn!("a webhook is not sent, and no other for this reason will be: {reason}");
        }
    }

    fn receiver(&self, url: &str) -> Result<Url, String> {
        let url = Url::parse(url).map_err(|error| format!("not an address that can be posted to: {error}"))?;
        let host = url.host_str().unwrap_or_default();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}` is not http or https", url.scheme()));
        }
        if self.hooks == Hooks::Loopback && !is_loopback(host) {
            return Err(format!(
                "`{host}` is not on this machine; the sandbox sends webhooks to 127.0.0.1, ::1 and \
                                localhost only, unless it is told `--any-hook`"
            ));
        }
        Ok(url)
    }

    fn silent(&self) -> String {
        format!("no answer within {} s", self.timeout.as_secs_f32())
    }
}

/// Why there was no answer; never with the address, which may hold a secret of its owner.
fn failed(error: &reqwest::Error) -> String {
    let innermost = std::iter::successors(error.source(), |cause| (*cause).source()).last();
    let cause = innermost.map_or_else(|| "the request failed".to_owned(), ToString::to_string);
    let what = if error.is_connect() { "no connection" } else { "the connection broke" };
    format!("{what}: {cause}")
}

/// Whether a host is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    address == "localhost" || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::tests::receiver::Receiver;

    fn post(url: &str) -> Post {
        Post { webhook: 1, url: url.into(), body: b"{\"success\":true}".to_vec() }
    }

    fn courier(hooks: Hooks) -> Courier {
        Courier::new(hooks).expect("a client")
    }

    #[tokio::test]
    async fn a_webhook_arrives_as_json_at_the_address_to_the_letter() {
        let receiver = Receiver::answering([200, 500]).await;
        for (status, target) in [
            (200, "/hook;v=1/%7Ba?token=s%2Fe+cret&x=[1]&empty=&msg=%D0%9F"),
            (500, "/a/../b/./%2e%2E/{tok}|^`?q='a'|b\"c<d>&r={tok}&s=\\п"),
        ] {
            let hook = receiver.url(target);
            assert_eq!(courier(Hooks::Loopback).bring(post(&hook)).await, Posted::Answered(status));
            let request = receiver.next().await;
            assert_eq!(request.line, format!("POST {target} HTTP/1.1"));
            assert_eq!(request.header("content-type"), Some("application/json"));
            assert_eq!(request.body, b"{\"success\":true}");
        }
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_and_followed_nowhere() {
        let receiver = Receiver::answering([307]).await;
        let outcome = courier(Hooks::Anywhere).bring(post(&receiver.url("/a"))).await;
        assert_eq!(outcome, Posted::Answered(307));
        assert_eq!(receiver.next().await.line, "POST /a HTTP/1.1");
        assert!(receiver.is_idle());
    }

    #[tokio::test]
    async fn a_receiver_that_is_not_there_or_never_answers_is_told_without_its_address() {
        let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let deaf_hook = format!("http://{}/?token=secret", deaf.local_addr().expect("an address"));
        let hasty = Courier::patient(Hooks::Loopback, Duration::from_millis(50)).expect("a client");
        let outcome = hasty.bring(post(&deaf_hook)).await;
        assert_eq!(outcome, Posted::Failed("no answer within 0.05 s".into()));
        drop(deaf);
        let Posted::Failed(reason) = courier(Hooks::Loopback).bring(post(&deaf_hook)).await else {
            panic!("nobody is there")
        };
        assert!(reason.starts_with("no connection: ") && !reason.contains("secret"), "{reason}");
    }

    #[test]
    fn only_this_machine_gets_webhooks_unless_told_otherwise() {
        let may = |hooks, url| courier(hooks).receiver(url).is_ok();
        for url in [
            "http://127.0.0.1:9/a",
            "http://127.9.9.9/",
            "http://[::1]:8080/?a",
            "https://localhost/x",
            "http://127.1/",
        ] {
            assert!(may(Hooks::Loopback, url) && may(Hooks::Anywhere, url), "{url}");
        }
        for url in [
            "https://hooks.example/a",
            "http://10.0.0.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://localhost.example/",
            "http://127.0.0.1.example/",
            "http://user@hooks.example/@localhost",
            "http://0.0.0.0/",
        ] {
            assert!(!may(Hooks::Loopback, url) && may(Hooks::Anywhere, url), "{url}");
        }
        for url in ["", "localhost", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "http://[::1"] {
            assert!(!may(Hooks::Loopback, url) && !may(Hooks::Anywhere, url), "{url}");
        }
        let reason = courier(Hooks::Loopback).receiver("https://hooks.example/?token=secret").expect_err("refused");
        assert!(reason.starts_with("`hooks.example` is not on this machine; ") && !reason.contains("secret"));
    }
}
