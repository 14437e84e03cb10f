//! The gateway's JSON API (sections 2, 4 and 7 of the contract): the HTTP client, with modules that encode requests and
//! read answers.
//!
//! For each call, the client sends a single POST to one host. It never repeats a request, follows a redirect, or uses a
//! proxy from the environment.

mod encode;
mod inquiry;
mod members;
#[cfg(test)]
mod read_tests;
mod receipt;
mod reply;
#[cfg(test)]
mod tests;

use std::error::Error as _;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};

use crate::{BoxFuture, Envelope, Gateway, GatewayReply, MayLeave, StatusAnswer};
use campaign_core::domain::{Endpoint, MessageId};
use campaign_net::http_client;
use inquiry::status;
use members::{redact_key, redact_numbers};

pub use encode::{OperationForm, encode_operation};
pub use inquiry::status::read_status_answers;
pub use inquiry::{
    AskBalance, AskSenders, AskStatus, Balance, CheckKey, CreateTemplate, DeleteTemplate, FailureCause, Inquiry,
    InquiryFailure, ListTemplates, MessageRecord, MessageTemplate, SenderName, TemplateChannel,
};
pub use members::RedactingReader;
pub use receipt::{IdentifiedReceipt, UnreadableReceipt, read_receipts};
pub use reply::{AnswerRules, read_reply};

/// The maximum size of an answer in bytes.
const MAX_ANSWER: usize = 8 << 20;
/// The maximum idle time of a connection that is reused. After a longer time, the server might be closing it.
const MAX_IDLE: Duration = Duration::from_secs(1);

/// The addresses of a gateway, and how to connect to them.
#[derive(Clone, Debug)]
pub struct GatewayAddress {
    /// The base URL of the synchronous endpoint (contract 4.1), without a trailing slash.
    pub base_url: String,
    /// The base URL of the asynchronous endpoint (contract 4.2), without a trailing slash.
    pub async_url: String,
    /// The proxy for all requests, if any.
    pub proxy: Option<String>,
    /// The timeout of a request.
    pub timeout: Duration,
    /// Whether the gateway is the sandbox in this process.
    pub embedded: bool,
}

impl GatewayAddress {
    /// Whether no request needs TLS: both endpoints are plain HTTP, and no proxy is used.
    fn is_plain(&self) -> bool {
        let is_plain_url =
            |url: &str| url.is_empty() || url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
        self.proxy.is_none() && is_plain_url(&self.base_url) && is_plain_url(&self.async_url)
    }
}

/// The reason why a client cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum JsonApiError {
    /// The proxy's address is invalid, the system certificates cannot be read, or no file handles are left.
    #[error(
        "cannot create an HTTP client: {reason}; install certificates (`ca-certificates`) or raise `ulimit -n`; nothing was \
         sent",
        reason = innermost_cause(.0)
    )]
    Client(#[source] reqwest::Error),
}

/// A gateway reached by its JSON API.
pub struct JsonApi {
    client: reqwest::Client,
    sync_url: String,
    async_url: String,
    key: SecretString,
    endpoint: Endpoint,
    rules: AnswerRules,
    timeout: Duration,
    embedded: bool,
}

impl JsonApi {
    /// A client for one endpoint.
    ///
    /// # Errors
    /// If the proxy's address is invalid, or the system certificates cannot be read.
    pub fn new(
        address: &GatewayAddress,
        endpoint: Endpoint,
        key: SecretString,
        rules: AnswerRules,
    ) -> Result<Self, JsonApiError> {
        let mut headers = HeaderMap::new();
        // Without this header, the gateway treats a request as incorrect (contract 4.1).
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let builder = if address.is_plain() { http_client::plain_builder() } else { http_client::builder() };
        let mut builder = builder
            .user_agent(concat!("campaign/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .http1_only()
            .timeout(address.timeout)
            .connect_timeout(connect_timeout(address.timeout))
            .pool_idle_timeout(MAX_IDLE)
            .tcp_nodelay(true);
        if let Some(proxy) = &address.proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(JsonApiError::Client)?);
        }
        Ok(Self {
            client: builder.build().map_err(JsonApiError::Client)?,
            sync_url: format!("{}/api/json.php", address.base_url.trim_end_matches('/')),
            async_url: format!("{}/v1/json", address.async_url.trim_end_matches('/')),
            key,
            endpoint,
            rules,
            timeout: address.timeout,
            embedded: address.embedded,
        })
    }

    /// A copy of this client with another key.
    pub fn with_key(&self, key: SecretString) -> Self {
        Self {
            key,
            rules: self.rules.clone(),
            sync_url: self.sync_url.clone(),
            async_url: self.async_url.clone(),
            client: self.client.clone(),
            ..*self
        }
    }

    /// Sends a HEAD request without the key to the host of the endpoint. Any HTTP answer proves that the host can be
    /// reached. Returns the time in the `Date` header of the answer (RFC 9110, 6.6.1), if present.
    ///
    /// # Errors
    /// The reason for a missing answer, as a fragment in plain words.
    pub async fn probe_host(&self) -> Result<Option<jiff::Timestamp>, String> {
        let url = match self.endpoint {
            Endpoint::Sync => &self.sync_url,
            Endpoint::Async => &self.async_url,
        };
        let response = self.client.head(url).send().await.map_err(|error| match self.classify_error(&error) {
            HttpExchange::NotConnected(reason) | HttpExchange::Handshake(reason) | HttpExchange::Broken(reason) => {
                reason
            }
            HttpExchange::TimedOut(after) => format!("no response within {} s", after.as_secs_f64()),
            HttpExchange::TooLong { .. } | HttpExchange::Answer { .. } => error.to_string(),
        })?;
        let date = response.headers().get(DATE).and_then(|value| parse_date(value.to_str().ok()?.trim()));
        Ok(date)
    }

    async fn post_operations<'a>(&self, url: &str, operations: impl Iterator<Item = &'a [u8]> + Clone) -> HttpExchange {
        let count = operations.clone().count();
        let body = encode::build_body(self.key.expose_secret(), operations);
        let (began, bytes) = (Instant::now(), body.len());
        let exchange = self.send_request(url, body.into()).await;
        log_exchange(&exchange, bytes, count, began);
        exchange
    }

    /// Posts an envelope. Returns `None` and sends nothing if `may_leave` returns false when the first byte is due.
    async fn post_envelope(&self, url: &str, envelope: &Envelope, may_leave: MayLeave) -> Option<HttpExchange> {
        let operations = envelope.operations().iter().map(|operation| operation.json.as_slice());
        let body = encode::build_body(self.key.expose_secret(), operations);
        let (began, bytes) = (Instant::now(), body.len());
        let (body, withheld) = GuardedBody::new(body, may_leave);
        let exchange = self.send_request(url, reqwest::Body::wrap(body)).await;
        if withheld.is_set() {
            tracing::info!(operations = envelope.operations().len(), "request withheld");
            return None;
        }
        log_exchange(&exchange, bytes, envelope.operations().len(), began);
        Some(exchange)
    }

    async fn send_request(&self, url: &str, body: reqwest::Body) -> HttpExchange {
        match self.client.post(url).body(body).send().await {
            Ok(response) => self.receive_answer(response).await,
            Err(error) => self.classify_error(&error),
        }
    }

    async fn receive_answer(&self, mut response: reqwest::Response) -> HttpExchange {
        let status = response.status().as_u16();
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| parse_retry_after(value.to_str().ok()?.trim()));
        let mut body = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() > MAX_ANSWER => return HttpExchange::TooLong { status },
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return HttpExchange::Answer { status, retry_after, body },
                Err(error) => return self.classify_error(&error),
            }
        }
    }

    /// Classifies an error of the HTTP library by the facts that it proves about the request.
    fn classify_error(&self, error: &reqwest::Error) -> HttpExchange {
        if !error.is_connect() {
            return if error.is_timeout() {
                HttpExchange::TimedOut(self.timeout)
            } else {
                HttpExchange::Broken(format!("the connection was lost: {}", innermost_cause(error)))
            };
        }
        let cause = innermost_cause(error);
        if is_handshake_failure(error) {
            return HttpExchange::Handshake(format!("the TLS handshake failed: {cause}"));
        }
        if is_refused(error) && self.embedded {
            return HttpExchange::NotConnected("the built-in sandbox refused the connection".to_owned());
        }
        if let Some(address) = error.url().filter(|_| is_refused(error)).and_then(loopback_address) {
            return HttpExchange::NotConnected(format!("connection refused by {address}"));
        }
        let host = error.url().and_then(|url| url.host_str()).unwrap_or("the gateway").to_owned();
        HttpExchange::NotConnected(format!("cannot connect to {host}: {cause}"))
    }
}

impl Gateway for JsonApi {
    fn submit<'a>(&'a self, envelope: &'a Envelope, may_leave: MayLeave) -> BoxFuture<'a, Option<GatewayReply>> {
        Box::pin(async move {
            let url = match self.endpoint {
                Endpoint::Sync => &self.sync_url,
                Endpoint::Async => &self.async_url,
            };
            let exchange = self.post_envelope(url, envelope, may_leave).await?;
            let mut reply = read_reply(&self.rules, self.endpoint, envelope, &exchange);
            redact_key(&mut reply, self.key.expose_secret());
            redact_numbers(&mut reply, envelope);
            Some(reply)
        })
    }

    fn ask_statuses<'a>(&'a self, ids: &'a [MessageId]) -> BoxFuture<'a, Vec<StatusAnswer>> {
        Box::pin(async move {
            let inquiries: Vec<Vec<u8>> = ids.iter().map(|&id| status::status_operation(id)).collect();
            // The asynchronous endpoint returns only a `request_id`, so inquiries go to the synchronous one.
            let exchange = self.post_operations(&self.sync_url, inquiries.iter().map(Vec::as_slice)).await;
            status::read_status_answers(ids, &exchange, &RedactingReader::new(self.key.expose_secret()))
        })
    }
}

/// Logs the size, status and duration of a request, but none of its contents.
fn log_exchange(exchange: &HttpExchange, bytes: usize, operations: usize, began: Instant) {
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    match exchange {
        HttpExchange::Answer { status, body, .. } => {
            tracing::info!(operations, http = status, ms, "request");
            tracing::trace!(sent = bytes, received = body.len(), "bytes");
        }
        HttpExchange::TooLong { status } => tracing::info!(operations, http = status, ms, "request: response too long"),
        HttpExchange::NotConnected(_) | HttpExchange::Handshake(_) => {
            tracing::info!(operations, ms, "request: not connected")
        }
        HttpExchange::TimedOut(_) => tracing::info!(operations, ms, "request: no response in time"),
        HttpExchange::Broken(_) => tracing::info!(operations, ms, "request: connection lost"),
    }
}

/// The wait that `Retry-After` asks for: seconds, or the time until a date (RFC 9110, 10.2.3).
fn parse_retry_after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    Some(Duration::try_from(parse_date(value)?.duration_since(jiff::Timestamp::now())).unwrap_or_default())
}

/// Parses a date in a header (RFC 9110, 5.6.7), in the form that servers must generate.
fn parse_date(value: &str) -> Option<jiff::Timestamp> {
    Some(jiff::fmt::rfc2822::parse(value).ok()?.timestamp())
}

/// The timeout for connecting, always shorter than the total timeout. If connecting times out, nothing was sent.
fn connect_timeout(total: Duration) -> Duration {
    (total / 3).min(Duration::from_secs(10))
}

/// Whether the TLS handshake failed.
pub(super) fn is_handshake_failure(error: &reqwest::Error) -> bool {
    // The connector has three steps: DNS lookup, TCP connection, TLS handshake.
    let is_connected =
        !error.is_timeout() && !error.is_dns() && !error_chain(error).any(|step| step == "tcp connect error");
    error.is_connect() && is_connected && error.url().is_some_and(|url| url.scheme() == "https")
}

/// Whether the host refused the connection.
fn is_refused(error: &reqwest::Error) -> bool {
    let mut sources = std::iter::successors(error.source(), |&error| error.source());
    sources
        .any(|source| source.downcast_ref().is_some_and(|io: &io::Error| io.kind() == io::ErrorKind::ConnectionRefused))
}

/// Host and port of a URL, if the host is this machine.
fn loopback_address(url: &reqwest::Url) -> Option<String> {
    let host = url.host_str()?;
    let ip: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_local = host == "localhost" || ip.is_some_and(|ip| ip.is_loopback());
    is_local.then(|| format!("{host}:{}", url.port_or_known_default().unwrap_or_default()))
}

/// The innermost cause of an error; the outer causes repeat the address.
pub(super) fn innermost_cause(error: &reqwest::Error) -> String {
    error_chain(error).last().unwrap_or_else(|| error.to_string())
}

fn error_chain(error: &reqwest::Error) -> impl Iterator<Item = String> {
    std::iter::successors(error.source(), |&error| error.source()).map(ToString::to_string)
}

/// The result of an HTTP exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpExchange {
    /// No connection: refused, unknown host name, or connect timeout. Nothing was sent.
    NotConnected(String),
    /// The TLS handshake failed. No byte of the request was sent.
    Handshake(String),
    /// The exchange timed out; its progress is unknown.
    TimedOut(Duration),
    /// The connection broke before the whole answer was read.
    Broken(String),
    /// An answer with a body over the limit.
    TooLong {
        /// The HTTP status.
        status: u16,
    },
    /// A complete answer.
    Answer {
        /// The HTTP status.
        status: u16,
        /// The wait that the `Retry-After` header asks for.
        retry_after: Option<Duration>,
        /// The whole body, at most `MAX_ANSWER` bytes.
        body: Vec<u8>,
    },
}

/// A request body that calls `may_leave` when the connection asks for the first byte, and aborts the request if sending
/// is no longer allowed.
///
/// Connecting can take seconds, and the process can be suspended in the meantime.
struct GuardedBody {
    bytes: Option<Bytes>,
    may_leave: MayLeave,
    withheld: WithheldFlag,
}

/// Whether a body was withheld.
#[derive(Clone, Default)]
struct WithheldFlag(Arc<AtomicBool>);

impl WithheldFlag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl GuardedBody {
    fn new(bytes: Vec<u8>, may_leave: MayLeave) -> (Self, WithheldFlag) {
        let withheld = WithheldFlag::default();
        (Self { bytes: Some(bytes.into()), may_leave, withheld: withheld.clone() }, withheld)
    }
}

impl Body for GuardedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(bytes) = self.bytes.take() else { return Poll::Ready(None) };
        if (self.may_leave)() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        self.withheld.0.store(true, Ordering::Release);
        Poll::Ready(Some(Err(io::Error::other("it is too late to send the request"))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod client_tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(parse_retry_after("120"), Some(Duration::from_secs(120)));
        assert_eq!(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        let later = parse_retry_after("Thu, 06 Nov 2994 08:49:37 GMT");
        assert!(later.is_some_and(|wait| wait > Duration::from_secs(86_400)), "{later:?}");
        assert_eq!(parse_retry_after("soon"), None);
    }

    #[test]
    fn connect_timeout_is_shorter_than_the_total_timeout() {
        for seconds in [1, 3, 30, 600] {
            let total = Duration::from_secs(seconds);
            assert!(connect_timeout(total) < total);
        }
    }
}

#[cfg(test)]
mod guarded_body_tests {
    use std::task::Waker;

    use super::*;

    fn poll_body(may_leave: bool) -> (Poll<Option<io::Result<Bytes>>>, bool) {
        let (body, withheld) = GuardedBody::new(b"[1]".to_vec(), Arc::new(move || may_leave));
        let mut body = Box::pin(body);
        assert_eq!(body.size_hint().exact(), Some(3));
        let frame = body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop()));
        assert!(body.is_end_stream());
        (frame.map(|frame| frame.map(|frame| frame.map(|frame| frame.into_data().unwrap()))), withheld.is_set())
    }

    #[test]
    fn guarded_body_is_sent_whole_or_not_at_all() {
        let (frame, withheld) = poll_body(true);
        assert!(matches!(frame, Poll::Ready(Some(Ok(bytes))) if bytes == "[1]".as_bytes()) && !withheld);
        let (frame, withheld) = poll_body(false);
        assert!(matches!(frame, Poll::Ready(Some(Err(_)))) && withheld);
    }
}
