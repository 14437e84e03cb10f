//! HTTP client for webhooks: one attempt at a time, with the exact URL, and only to this machine by default.
//!
//! The platform decides when to retry (contract 6). A host is local if it is a loopback address, `localhost` or a
//! subdomain of it, or a name with only loopback addresses. Each name is resolved once.

use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::Uri;
use futures_util::future::BoxFuture;
use hyper_util::client::legacy::Client as PlainClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Client, Url};

use crate::webhooks::{WebhookOutcome, WebhookPost};
use campaign_net::http_client;

/// The maximum number of webhooks in flight.
const MAX_IN_FLIGHT: usize = 64;
/// The same limit for a receiver in this process, which stores webhooks in batches.
const MAX_IN_FLIGHT_LOCAL: usize = 4_096;
pub(super) const RECEIVER_TIMEOUT: Duration = Duration::from_secs(10);
/// After this many different reasons, failures are no longer logged.
const MAX_WARNINGS: usize = 100;
const USER_AGENT_NAME: &str = concat!("campaign-sandbox/", env!("CARGO_PKG_VERSION"));

/// The addresses to which webhooks are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WebhookPolicy {
    /// This machine only, by address or by a name that resolves to it: a rehearsal must not reach real receivers.
    #[default]
    Loopback,
    /// Any address.
    Anywhere,
}

/// Sends webhooks to their receivers.
#[derive(Clone, Debug)]
pub(super) struct WebhookClient {
    /// For plain HTTP with the exact URL.
    plain: PlainClient<HttpConnector, Body>,
    /// For TLS and for URLs that cannot be sent unchanged. It is built on first use, because it reads the certificates
    /// of the system.
    fallback: Arc<OnceLock<Result<Client, String>>>,
    hooks: WebhookPolicy,
    names: HostNames,
    timeout: Duration,
    /// A receiver in this process that gets all webhooks.
    receiver: Option<LocalReceiver>,
    /// The reasons that have been logged.
    warned: Arc<Mutex<HashSet<String>>>,
}

impl WebhookClient {
    /// A client with a policy and a timeout.
    pub(super) fn new(hooks: WebhookPolicy, timeout: Duration) -> Self {
        Self::with_names(HostNames::from_system(), hooks, timeout)
    }

    /// Creates a client that resolves host names with `names`.
    fn with_names(names: HostNames, hooks: WebhookPolicy, timeout: Duration) -> Self {
        // Connections are not reused: an attempt on a connection that the receiver has just closed would be lost.
        let plain = PlainClient::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
        Self { plain, fallback: Arc::default(), hooks, names, timeout, receiver: None, warned: Arc::default() }
    }

    /// The client for URLs that cannot be sent unchanged, for example over TLS. This client encodes some characters of
    /// a URL as browsers do.
    fn fallback_client(&self) -> Result<&Client, String> {
        let built = self.fallback.get_or_init(|| {
            let client = http_client::builder().http1_only().pool_max_idle_per_host(0);
            let client = match self.hooks {
                WebhookPolicy::Loopback => client.dns_resolver(Arc::new(self.names.clone())),
                WebhookPolicy::Anywhere => client,
            };
            client.build().map_err(|error| format!("cannot create an HTTP client: {error}"))
        });
        built.as_ref().map_err(Clone::clone)
    }

    /// Sends all webhooks to a receiver in this process, if there is one.
    pub(super) fn with_receiver(self, receiver: Option<LocalReceiver>) -> Self {
        Self { receiver, ..self }
    }

    /// The maximum number of webhooks in flight.
    pub(super) fn max_in_flight(&self) -> usize {
        if self.receiver.is_some() { MAX_IN_FLIGHT_LOCAL } else { MAX_IN_FLIGHT }
    }

    /// Makes one attempt to send a webhook.
    pub(super) async fn send(&self, post: WebhookPost) -> WebhookOutcome {
        if let Some(receiver) = &self.receiver {
            return WebhookOutcome::Answered(receiver.deliver(post.url, post.body).await);
        }
        let receiver = match self.resolve_target(&post.url).await {
            Ok(receiver) => receiver,
            Err(reason) => {
                self.warn_once(&reason);
                return WebhookOutcome::Refused(reason);
            }
        };
        match tokio::time::timeout(self.timeout, self.post_to(receiver, post)).await {
            Ok(answer) => answer.map_or_else(WebhookOutcome::Failed, WebhookOutcome::Answered),
            Err(_) => WebhookOutcome::Failed(format!("no answer within {} s", self.timeout.as_secs_f32())),
        }
    }

    async fn post_to(
        &self,
        WebhookTarget { url, checked_ip }: WebhookTarget,
        WebhookPost { url: original, body, .. }: WebhookPost,
    ) -> Result<u16, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_NAME));
        let Some((uri, host)) = verbatim_request_target(&url, checked_ip, &original) else {
            let answer = self.fallback_client()?.post(url).headers(headers).body(body).send().await;
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

    /// Logs that a webhook is not sent, once for each of the first [`MAX_WARNINGS`] reasons.
    fn warn_once(&self, reason: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.len() < MAX_WARNINGS && warned.insert(reason.to_owned()) {
            tracing::warn!(
                "could not send a webhook ({reason}); further webhooks that fail for this reason are not logged"
            );
        }
    }

    /// Resolves the target of a webhook, or returns the reason why the target is not allowed.
    async fn resolve_target(&self, url: &str) -> Result<WebhookTarget, String> {
        let url = Url::parse(url).map_err(|error| format!("the URL is not valid: {error}"))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}` is neither http nor https", url.scheme()));
        }
        if self.hooks == WebhookPolicy::Anywhere {
            return Ok(WebhookTarget { url, checked_ip: None });
        }
        match self.names.resolve_loopback(&host).await {
            Some(address) => Ok(WebhookTarget { url, checked_ip: Some(address) }),
            None => {
                Err(format!("`{host}` is not on this machine; use `--any-hook` to send webhooks to other machines"))
            }
        }
    }
}

#[derive(Debug)]
struct WebhookTarget {
    url: Url,
    /// The loopback address that the host was resolved to; `None` if any address is allowed.
    checked_ip: Option<IpAddr>,
}

/// The URI and the `Host` header of a request that sends the URL `original` unchanged, if that is possible.
///
/// The URL must use plain HTTP, and contain neither credentials nor characters that the HTTP library rejects. The
/// request connects to `checked_ip` if it is given, or else to the host of the URL.
fn verbatim_request_target(url: &Url, checked_ip: Option<IpAddr>, original: &str) -> Option<(Uri, HeaderValue)> {
    if url.scheme() != "http" || !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    let (_, address) = original.split_once("://")?;
    let path = address.find(['/', '?', '#', '\\']).map_or("", |start| &address[start..]);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let host = HeaderValue::from_str(url.authority()).ok()?;
    let host_name = url.host_str()?;
    let target = match checked_ip {
        Some(IpAddr::V6(address)) => format!("[{address}]"),
        Some(address) => address.to_string(),
        None => host_name.to_owned(),
    };
    let authority = url.port().map_or_else(|| target.clone(), |port| format!("{target}:{port}"));
    let uri = Uri::builder().scheme("http").authority(authority).path_and_query(path).build().ok()?;
    Some((uri, host))
}

/// Describes why a request failed, without the URL, which might contain a secret.
fn describe_send_error(error: &dyn Error, is_connect_error: bool) -> String {
    let innermost = std::iter::successors(error.source(), |cause| (*cause).source()).last();
    let cause = innermost.map_or_else(|| "the request failed".to_owned(), ToString::to_string);
    let problem = if is_connect_error { "cannot connect" } else { "the connection was interrupted" };
    format!("{problem}: {cause}")
}

type ReceiveFn = dyn Fn(Arc<str>, Vec<u8>) -> BoxFuture<'static, u16> + Send + Sync;

/// A receiver of webhooks in this process: it gets the URL and the body, and returns an HTTP status.
#[derive(Clone)]
pub struct LocalReceiver(Arc<ReceiveFn>);

impl LocalReceiver {
    /// Creates a receiver that calls this function with the URL and the body of each webhook; the function returns an
    /// HTTP status.
    pub fn new(receive: impl Fn(Arc<str>, Vec<u8>) -> BoxFuture<'static, u16> + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Delivers a webhook and returns the HTTP status.
    pub(super) async fn deliver(&self, url: Arc<str>, body: Vec<u8>) -> u16 {
        (self.0)(url, body).await
    }
}

impl fmt::Debug for LocalReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalReceiver")
    }
}

/// The timeout of the system's resolver.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// The maximum number of remembered names; a campaign needs one.
const MAX_NAMES: usize = 1_000;

/// A function that resolves a name; the result is empty if the name is unknown.
type HostLookup = dyn Fn(String) -> BoxFuture<'static, Vec<IpAddr>> + Send + Sync;

/// Resolved host names. Each name is resolved once, so that webhooks go to the address that was checked.
#[derive(Clone)]
pub(super) struct HostNames {
    lookup: Arc<HostLookup>,
    known: Arc<Mutex<HashMap<String, Option<IpAddr>>>>,
}

impl HostNames {
    /// Uses the system's resolver.
    pub(super) fn from_system() -> Self {
        Self::from_lookup(|name| {
            Box::pin(async move {
                let result = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name, 0))).await;
                result.ok().and_then(Result::ok).into_iter().flatten().map(|address| address.ip()).collect()
            })
        })
    }

    /// Uses this resolver.
    pub(super) fn from_lookup(
        lookup: impl Fn(String) -> BoxFuture<'static, Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self { lookup: Arc::new(lookup), known: Arc::default() }
    }

    /// The loopback address of a host; `None` if the host is, or could be, another machine.
    pub(super) async fn resolve_loopback(&self, host: &str) -> Option<IpAddr> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(address).filter(IpAddr::is_loopback);
        }
        // These names refer to this machine, even if they cannot be resolved (RFC 6761, 6.3).
        if is_loopback_host(host) {
            return Some(Ipv4Addr::LOCALHOST.into());
        }
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = known().get(host).copied() {
            return address;
        }
        let addresses = (self.lookup)(host.to_owned()).await;
        let address = addresses.first().copied().filter(|_| addresses.iter().all(IpAddr::is_loopback));
        let mut known = known();
        if known.len() < MAX_NAMES {
            known.insert(host.to_owned(), address);
        }
        address
    }
}

impl Resolve for HostNames {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let address =
                names.resolve_loopback(name.as_str()).await.ok_or("the host name does not belong to this machine")?;
            Ok(Box::new(std::iter::once(SocketAddr::new(address, 0))) as Addrs)
        })
    }
}

impl std::fmt::Debug for HostNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostNames").finish_non_exhaustive()
    }
}

/// Whether a host is certainly this machine, without a lookup of its name.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let is_local_name = address == "localhost" || address.ends_with(".localhost");
    is_local_name || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod request_tests {
    use super::*;
    use crate::tests::receiver::TestReceiver;

    fn test_post(url: &str) -> WebhookPost {
        WebhookPost { webhook: 1, url: url.into(), body: b"{\"success\":true}".to_vec() }
    }

    /// A client for which `shop.test` is this machine and all other names are unknown.
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
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let silent_url = format!("http://{}/?token=secret", silent.local_addr().expect("an address"));
        let client = WebhookClient::new(WebhookPolicy::Loopback, Duration::from_millis(50));
        let outcome = client.send(test_post(&silent_url)).await;
        assert_eq!(outcome, WebhookOutcome::Failed("no answer within 0.05 s".into()));
        drop(silent);
        let WebhookOutcome::Failed(reason) = test_client(WebhookPolicy::Loopback).send(test_post(&silent_url)).await
        else {
            panic!("no receiver is listening")
        };
        assert!(reason.starts_with("cannot connect: ") && !reason.contains("secret"), "{reason}");
    }

    #[tokio::test]
    async fn request_to_a_local_name_keeps_its_host_header() {
        let receiver = TestReceiver::with_statuses([]).await;
        // The last URL cannot be sent unchanged, so the fallback client, which has its own resolver, sends it.
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
        let sent = |original: &str| {
            let url = Url::parse(original).expect("an address");
            let at = (url.host_str() == Some("shop.localhost")).then_some(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST));
            verbatim_request_target(&url, at, original).map(|(uri, _)| uri.to_string())
        };
        for (original, uri) in [
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
            assert_eq!(sent(original).as_deref(), uri, "{original}");
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

#[cfg(test)]
mod names_tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn name_is_local_if_all_its_addresses_are_loopback() {
        let lookups = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&lookups);
        let names = HostNames::from_lookup(move |name| {
            counter.fetch_add(1, Ordering::Relaxed);
            let found: &[&str] = match name.as_str() {
                "shop.test" => &["127.0.0.1"],
                "both.test" => &["::1", "127.0.0.1"],
                "half.test" => &["127.0.0.1", "192.0.2.1"],
                _ => &[],
            };
            let found = found.iter().map(|address| address.parse().expect("an address")).collect();
            Box::pin(async move { found })
        });
        for (host, expected) in [
            ("shop.test", Some("127.0.0.1")),
            ("both.test", Some("::1")),
            ("half.test", None),
            ("hooks.example", None),
            ("hooks.example", None),
            ("shop.test", Some("127.0.0.1")),
            ("localhost", Some("127.0.0.1")),
            ("shop.localhost", Some("127.0.0.1")),
            ("127.9.9.9", Some("127.9.9.9")),
            ("[::1]", Some("::1")),
            ("10.0.0.1", None),
            ("[::ffff:127.0.0.1]", None),
        ] {
            let expected = expected.map(|address| address.parse::<IpAddr>().expect("an address"));
            assert_eq!(names.resolve_loopback(host).await, expected, "{host}");
        }
        assert_eq!(lookups.load(Ordering::Relaxed), 4, "only names, each once");
    }
}
