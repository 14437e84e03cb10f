//! Sending webhooks: one try at a time, as they are, and not to other machines unless that is wanted.
//!
//! It decides nothing about another try; the platform does (contract 6).

use std::collections::HashSet;
use std::error::Error;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::Uri;
use hyper_util::client::legacy::Client as PlainClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Client, Url};

use super::local::LocalReceiver;
use super::names::HostNames;
use crate::http_client;
use crate::sandbox::webhooks::{WebhookOutcome, WebhookPost};

/// How many webhooks are on their way at a time.
const MAX_IN_FLIGHT: usize = 64;
/// How many are, where they are taken in this process: what comes together is kept together.
const MAX_IN_FLIGHT_LOCAL: usize = 4_096;
/// How long a receiver may take to answer.
pub(super) const RECEIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// Of how many reasons not to send a webhook a person is told.
const MAX_WARNINGS: usize = 100;
/// What the sandbox calls itself.
const USER_AGENT_NAME: &str = concat!("campaign-sandbox/", env!("CARGO_PKG_VERSION"));

/// Where webhooks may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookPolicy {
    /// To this machine alone, by address or by a name that means it here: a rehearsal bothers nobody else's receiver.
    #[default]
    Loopback,
    /// Wherever they are addressed to.
    Anywhere,
}

/// Who brings webhooks to their receivers.
#[derive(Clone, Debug)]
pub(super) struct WebhookClient {
    /// For plain HTTP, to the letter.
    plain: PlainClient<HttpConnector, Body>,
    /// For TLS and for addresses that cannot be sent as written. It is built when it is first needed, because it reads the
    /// certificates of the system.
    other: Arc<OnceLock<Result<Client, String>>>,
    hooks: WebhookPolicy,
    names: HostNames,
    timeout: Duration,
    /// Who takes all of them in this process.
    receiver: Option<LocalReceiver>,
    /// The reasons for which webhooks were not sent, as far as they were told of.
    warned: Arc<Mutex<HashSet<String>>>,
}

impl WebhookClient {
    /// A courier who goes where he may, and waits so long for an answer.
    pub(super) fn new(hooks: WebhookPolicy, timeout: Duration) -> Self {
        Self::with_names(HostNames::from_system(), hooks, timeout)
    }

    /// The same where names mean this.
    fn with_names(names: HostNames, hooks: WebhookPolicy, timeout: Duration) -> Self {
        // A connection for each: one that its receiver just closed would lose a try.
        let plain = PlainClient::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        Self { plain, other: Arc::default(), hooks, names, timeout, receiver: None, warned: Arc::default() }
    }

    /// The client for TLS. It encodes some characters of an address as browsers do.
    fn other_client(&self) -> Result<&Client, String> {
        let built = self.other.get_or_init(|| {
            let client = http_client::builder().http1_only().pool_max_idle_per_host(0);
            let client = match self.hooks {
                WebhookPolicy::Loopback => client.dns_resolver(Arc::new(self.names.clone())),
                WebhookPolicy::Anywhere => client,
            };
            client.build().map_err(|error| format!("cannot create an HTTP client: {error}"))
        });
        built.as_ref().map_err(Clone::clone)
    }

    /// The same, who brings everything to a receiver in this process, if there is one.
    pub(super) fn with_receiver(self, receiver: Option<LocalReceiver>) -> Self {
        Self { receiver, ..self }
    }

    /// How many webhooks may be on their way at a time.
    pub(super) fn max_in_flight(&self) -> usize {
        if self.receiver.is_some() { MAX_IN_FLIGHT_LOCAL } else { MAX_IN_FLIGHT }
    }

    /// Tries to send a webhook once and tells what became of it.
    pub(super) async fn send(&self, post: WebhookPost) -> WebhookOutcome {
        if let Some(receiver) = &self.receiver {
            return WebhookOutcome::Answered(receiver.receive(post.url, post.body).await);
        }
        let receiver = match self.resolve_target(&post.url).await {
            Ok(receiver) => receiver,
            Err(reason) => {
                self.warn_once(&reason);
                return WebhookOutcome::Refused(reason);
            }
        };
        match tokio::time::timeout(self.timeout, self.post_to(receiver, post)).await {
            Ok(answered) => answered.map_or_else(WebhookOutcome::Failed, WebhookOutcome::Answered),
            Err(_) => WebhookOutcome::Failed(format!("no answer within {} s", self.timeout.as_secs_f32())),
        }
    }

    async fn post_to(
        &self,
        WebhookTarget { url, at }: WebhookTarget,
        WebhookPost { url: written, body, .. }: WebhookPost,
    ) -> Result<u16, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_NAME));
        let Some((uri, host)) = verbatim_request_target(&url, at, &written) else {
            let answer = self.other_client()?.post(url).headers(headers).body(body).send().await;
            return answer
                .map(|answer| answer.status().as_u16())
                .map_err(|error| describe_send_error(&error, error.is_connect()));
        };
        headers.insert(HOST, host);
        let mut request = axum::http::Request::post(uri).body(Body::from(body)).map_err(|error| error.to_string())?;
        *request.headers_mut() = headers;
        let answer = self.plain.request(request).await;
        answer.map(|answer| answer.status().as_u16()).map_err(|error| describe_send_error(&error, error.is_connect()))
    }

    /// Tells of a webhook that is not sent; once for each reason, which names the host.
    fn warn_once(&self, reason: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() < MAX_WARNINGS && warned.insert(reason.to_owned()) {
            tracing::warn!(
                "could not send a webhook ({reason}); further webhooks that fail for this reason are not logged"
            );
        }
    }

    /// Who is posted to, if webhooks may go there.
    async fn resolve_target(&self, url: &str) -> Result<WebhookTarget, String> {
        let url = Url::parse(url).map_err(|error| format!("the URL is not valid: {error}"))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}` is neither http nor https", url.scheme()));
        }
        if self.hooks == WebhookPolicy::Anywhere {
            return Ok(WebhookTarget { url, at: None });
        }
        match self.names.resolve_loopback(&host).await {
            Some(at) => Ok(WebhookTarget { url, at: Some(at) }),
            None => {
                Err(format!("`{host}` is not on this machine; use `--any-hook` to send webhooks to other machines"))
            }
        }
    }
}

/// Who a webhook is posted to.
#[derive(Debug)]
struct WebhookTarget {
    url: Url,
    /// The address of this machine that its host was judged to be; nothing where any may be reached.
    at: Option<IpAddr>,
}

/// The address to the letter with its `Host`, where it can be sent so: over plain HTTP, without a password, and with
/// no character that an HTTP library refuses. Host and port are those that were judged.
fn verbatim_request_target(url: &Url, at: Option<IpAddr>, written: &str) -> Option<(Uri, HeaderValue)> {
    if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let (_, address) = written.split_once("://")?;
    let path = address.find(['/', '?', '#', '\\']).map_or("", |start| &address[start..]);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let host = HeaderValue::from_str(url.authority()).ok()?;
    let judged = url.host_str()?;
    let reached = match at {
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        Some(address) => address.to_string(),
        None => judged.to_owned(),
    };
    let authority = url.port().map_or_else(|| reached.clone(), |port| format!("{reached}:{port}"));
    let uri = Uri::builder().scheme("http").authority(authority).path_and_query(path).build().ok()?;
    Some((uri, host))
}

/// Why there was no answer; never with the address, which may hold a secret of its owner.
fn describe_send_error(error: &dyn Error, connecting: bool) -> String {
    let innermost = std::iter::successors(error.source(), |cause| (*cause).source()).last();
    let cause = innermost.map_or_else(|| "the request failed".to_owned(), ToString::to_string);
    let what = if connecting { "cannot connect" } else { "the connection was interrupted" };
    format!("{what}: {cause}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::tests::receiver::TestReceiver;

    fn test_post(url: &str) -> WebhookPost {
        WebhookPost { webhook: 1, url: url.into(), body: b"{\"success\":true}".to_vec() }
    }

    /// Where one name means this machine, and nobody knows another.
    fn test_client(hooks: WebhookPolicy) -> WebhookClient {
        let names = HostNames::from_lookup(|name| {
            let found = if name == "shop.test" { vec![std::net::Ipv4Addr::LOCALHOST.into()] } else { Vec::new() };
            Box::pin(async move { found })
        });
        WebhookClient::with_names(names, hooks, RECEIVER_TIMEOUT)
    }

    #[tokio::test]
    async fn webhook_is_posted_to_the_exact_url_as_json() {
        let receiver = TestReceiver::with_statuses([200, 500]).await;
        for (status, target) in [
            (200, "/hook;v=1/%7Ba?token=s%2Fe+cret&x=[1]&empty=&msg=%D0%9F"),
            (500, "/a/../b/./%2e%2E/{tok}|^\"?q='a'|bc&r={tok}&s=\\п"),
        ] {
            let hook = receiver.url(target);
            assert_eq!(
                test_client(WebhookPolicy::Loopback).send(test_post(&hook)).await,
                WebhookOutcome::Answered(status)
            );
            let request = receiver.next().await;
            assert_eq!(request.line, format!("POST {target} HTTP/1.1"));
            assert_eq!(request.header("content-type"), Some("application/json"));
            assert_eq!(request.body, b"{\"success\":true}");
        }
    }

    #[tokio::test]
    async fn redirect_is_not_followed() {
        let receiver = TestReceiver::with_statuses([307]).await;
        let outcome = test_client(WebhookPolicy::Anywhere).send(test_post(&receiver.url("/a"))).await;
        assert_eq!(outcome, WebhookOutcome::Answered(307));
        assert_eq!(receiver.next().await.line, "POST /a HTTP/1.1");
        assert!(receiver.is_idle());
    }

    #[tokio::test]
    async fn unreachable_receiver_error_hides_its_url() {
        let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let deaf_hook = format!("http://{}/?token=secret", deaf.local_addr().expect("an address"));
        let hasty = WebhookClient::new(WebhookPolicy::Loopback, Duration::from_millis(50));
        let outcome = hasty.send(test_post(&deaf_hook)).await;
        assert_eq!(outcome, WebhookOutcome::Failed("no answer within 0.05 s".into()));
        drop(deaf);
        let WebhookOutcome::Failed(reason) = test_client(WebhookPolicy::Loopback).send(test_post(&deaf_hook)).await
        else {
            panic!("nobody is there")
        };
        assert!(reason.starts_with("cannot connect: ") && !reason.contains("secret"), "{reason}");
    }

    #[tokio::test]
    async fn local_name_is_reached_with_its_host_header() {
        let receiver = TestReceiver::with_statuses([]).await;
        // The last is sent by a client that looks names up itself.
        for (name, path) in [("Shop.localhost", "/a"), ("Shop.test", "/a"), ("shop.test", "/a b")] {
            let hook = receiver.url(path).replace("127.0.0.1", name);
            assert_eq!(
                test_client(WebhookPolicy::Loopback).send(test_post(&hook)).await,
                WebhookOutcome::Answered(200),
                "{hook}"
            );
            let host = receiver.next().await.header("host").map(str::to_owned);
            let expected =
                hook.to_lowercase().strip_prefix("http://").and_then(|rest| rest.strip_suffix(path)).map(str::to_owned);
            assert_eq!(host, expected);
        }
    }

    #[test]
    fn request_goes_to_the_host_that_was_checked() {
        let sent = |written: &str| {
            let url = Url::parse(written).expect("an address");
            let at = (url.host_str() == Some("shop.localhost")).then_some(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST));
            verbatim_request_target(&url, at, written).map(|(uri, _)| uri.to_string())
        };
        for (written, uri) in [
            ("HTTP://Localhost:80?a=1#b", Some("http://localhost/?a=1")),
            ("http://shop.localhost:9/a", Some("http://[::1]:9/a")),
            ("http://127.1:9", Some("http://127.0.0.1:9/")),
            ("http://[::1]:8080/a//b", Some("http://[::1]:8080/a//b")),
            ("http://127.0.0.1/@hooks.example/", Some("http://127.0.0.1/@hooks.example/")),
            ("http://127.0.0.1\\@hooks.example/", Some("http://127.0.0.1/\\@hooks.example/")),
            ("http://127.0.0.1/\u{43f}", Some("http://127.0.0.1/\u{43f}")),
            ("http://user:word@127.0.0.1/", None),
            ("http://127.0.0.1/a b", None),
            ("http://127.0.0.1/a\r\nX: y", None),
            ("https://127.0.0.1/", None),
        ] {
            assert_eq!(sent(written).as_deref(), uri, "{written}");
        }
    }

    async fn is_allowed(hooks: WebhookPolicy, url: &str) -> bool {
        test_client(hooks).resolve_target(url).await.is_ok()
    }

    #[tokio::test]
    async fn webhooks_reach_only_this_machine_by_default() {
        for url in [
            "http://127.0.0.1:9/a",
            "http://127.9.9.9/",
            "http://[::1]:8080/?a",
            "https://localhost/x",
            "https://shop.localhost/x",
            "http://127.1/",
            "https://shop.test/x",
        ] {
            assert!(
                is_allowed(WebhookPolicy::Loopback, url).await && is_allowed(WebhookPolicy::Anywhere, url).await,
                "{url}"
            );
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
            assert!(
                !is_allowed(WebhookPolicy::Loopback, url).await && is_allowed(WebhookPolicy::Anywhere, url).await,
                "{url}"
            );
        }
        for url in ["", "localhost", "ftp://127.0.0.1/", "file:///etc/passwd", "http://", "http://[::1"] {
            assert!(
                !is_allowed(WebhookPolicy::Loopback, url).await && !is_allowed(WebhookPolicy::Anywhere, url).await,
                "{url}"
            );
        }
        let reason = test_client(WebhookPolicy::Loopback)
            .resolve_target("https://hooks.example/?token=secret")
            .await
            .expect_err("refused");
        assert!(reason.starts_with("`hooks.example` is not on this machine; ") && !reason.contains("secret"));
    }
}
