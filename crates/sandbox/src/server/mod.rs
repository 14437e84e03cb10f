//! The sandbox server: starting and stopping a [`Sandbox`], and its addresses.
//!
//! - `http`: the port, which can refuse or close connections, and requests and answers, which can be late, truncated or
//!   lost;
//! - `live`: the platform with its clock and journal;
//! - `webhook_client`: sending webhooks, only to this machine by default.
//!
//! This module must not know what an operation is.

pub(super) mod http;
mod live;
pub(super) mod webhook_client;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use crate::faults;
use crate::journal::{Journal, JournalSink};
use crate::platform::Counts;
use crate::request::AccountKeys;
use crate::scenario::Scenario;
use campaign_net::connectable_address;
use http::{HttpState, SandboxPort, Timeouts};
use live::LivePlatform;
use webhook_client::{RECEIVER_TIMEOUT, WebhookClient};

pub use webhook_client::{LocalReceiver, WebhookPolicy};

/// The drain timeout of a receiver in this process, which answers or ends with the process.
const LOCAL_RECEIVER_TIMEOUT: Duration = Duration::from_secs(3_600);

/// The options with which a sandbox is started.
#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// The address to listen on; port 0 picks a free port.
    pub listen: SocketAddr,
    /// The API key of the first account without its own key, the contract's `auth`.
    pub key: SecretString,
    /// The destination of its journal.
    pub journal: Journal,
    /// How the simulated gateway behaves: accounts, prices, deliveries and faults.
    pub scenario: Arc<Scenario>,
    /// The addresses to which webhooks are sent.
    pub hooks: WebhookPolicy,
    /// A receiver in this process that gets all webhooks instead; the sandbox waits for it to finish.
    pub receiver: Option<LocalReceiver>,
}

impl Default for SandboxSettings {
    /// A free port on loopback, the key `sandbox`, no journal, the default scenario, and webhooks to this machine
    /// only.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            key: SecretString::from("sandbox"),
            journal: Journal::Nowhere,
            scenario: Arc::default(),
            hooks: WebhookPolicy::Loopback,
            receiver: None,
        }
    }
}

/// A running sandbox. When dropped, the sandbox stops without waiting for open requests.
pub struct Sandbox {
    address: SocketAddr,
    key: SecretString,
    live: Arc<LivePlatform>,
    timeouts: Timeouts,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Sandbox {
    /// Starts a sandbox. The sandbox is reachable when this function returns, unless the scenario begins with a refused
    /// connection.
    ///
    /// # Errors
    /// The address is in use, the journal cannot be opened, or two accounts have the same key.
    pub async fn start(settings: SandboxSettings) -> io::Result<Self> {
        Self::start_with(settings, Timeouts::default()).await
    }

    pub(crate) async fn start_with(settings: SandboxSettings, timeouts: Timeouts) -> io::Result<Self> {
        let SandboxSettings { listen, key, journal, scenario, hooks, receiver } = settings;
        let timeouts = match receiver {
            Some(_) => Timeouts { receivers: LOCAL_RECEIVER_TIMEOUT, ..timeouts },
            None => timeouts,
        };
        if !AccountKeys::for_scenario(&scenario, &key).are_distinct() {
            let message = "an account in the scenario has the same key as the sandbox; give the account a different \
                `key`, or start the sandbox with a different `--key`";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let sink = JournalSink::open(&journal)?;
        let client = WebhookClient::new(hooks, RECEIVER_TIMEOUT).with_receiver(receiver);
        let mut port = SandboxPort::open(listen)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot listen on `{listen}`: {error}")))?;
        let address = port.address();
        let live = Arc::new(LivePlatform::new(Arc::clone(&scenario), &key, sink));
        let (behaviour, fault) = faults::decide_port_behaviour(&scenario, 1);
        if let Some(fault) = fault {
            port.apply(behaviour);
            live.record_initial_fault(fault);
        }
        let (port_sender, orders) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let app = http::router(Arc::new(HttpState {
            live: Arc::clone(&live),
            body_timeout: timeouts.body,
            port_orders: port_sender,
        }));
        let clock = live::run_clock(Arc::clone(&live), client);
        let serving = tokio::spawn(async move {
            // When the server ends, the clock stops and no more webhooks are sent.
            let mut clock_task = JoinSet::new();
            clock_task.spawn(clock);
            http::serve_connections(port, app, timeouts, (orders, stopped)).await;
        });
        let first_key = scenario.accounts.first().and_then(|account| account.key.as_deref());
        let key = first_key.map_or(key, SecretString::from);
        Ok(Self { address, key, live, timeouts, stop, serving })
    }

    /// The address on which the sandbox listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of the synchronous API: its endpoint is `{base_url}/api/json.php` (contract 4.1).
    pub fn base_url(&self) -> String {
        format!("http://{}", connectable_address(self.address))
    }

    /// The base URL of the asynchronous API: its endpoint is `{async_url}/v1/json` (contract 4.2).
    pub fn async_url(&self) -> String {
        self.base_url()
    }

    /// The key of the first account.
    pub fn key(&self) -> &SecretString {
        &self.key
    }

    /// The counts of operations, results and money so far.
    pub fn counts(&self) -> Counts {
        self.live.counts()
    }

    /// The lines of a journal in memory; the text is empty for any other journal.
    pub fn journal(&self) -> String {
        self.live.journal_text()
    }

    /// Waits until all messages have a final status and all webhooks are finished, at the speed of the scenario, with a
    /// timeout.
    pub async fn wait_until_settled(&self, timeout: Duration) {
        self.live.wait_until_settled(timeout).await;
    }

    /// Advances all messages to their final status now.
    ///
    /// Webhooks are sent with all retries. The timeout for receivers is five seconds; for a receiver in this process,
    /// there is practically no timeout.
    pub async fn drain(&self) -> Counts {
        self.live.drain(self.timeouts.receivers).await;
        self.live.counts()
    }

    /// Stops listening, waits up to five seconds for open requests, then closes all connections.
    pub async fn stop(self) {
        // If sending fails, the server has already stopped.
        let _ = self.stop.send(());
        if let Err(error) = self.serving.await {
            tracing::error!("the sandbox ended unexpectedly: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use reqwest::{Client, Method, StatusCode};
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::request::BODY_LIMIT;
    use crate::scenario::AccountSettings;

    async fn start_sandbox(journal: Journal) -> Sandbox {
        Sandbox::start(SandboxSettings { journal, ..SandboxSettings::default() }).await.expect("a sandbox")
    }

    fn test_client() -> Client {
        campaign_net::http_client::builder().build().expect("a client")
    }

    async fn post_json(url: String, body: impl Into<reqwest::Body>) -> (StatusCode, Value) {
        let request = test_client().post(url).header("Content-Type", "application/json").body(body);
        let response = request.send().await.expect("an answer");
        let status = response.status();
        (status, serde_json::from_slice(&response.bytes().await.expect("a body")).expect("JSON"))
    }

    fn one_sms_body() -> String {
        let sms = json!({"type": "sms", "id": 1, "phone": 380_501_234_567_u64, "sms_signature": "OlenaCo",
            "sms_message": "Hi", "hook": "https://a.example/hook?token=1"});
        json!({"auth": "sandbox", "data": [sms, {"type": "status", "id": 1}]}).to_string()
    }

    /// The number of operations in a journal.
    fn count_operations(journal: &str) -> usize {
        journal.matches(r#""event":"operation""#).count()
    }

    #[tokio::test]
    async fn both_endpoints_answer_on_one_port() {
        let sandbox = start_sandbox(Journal::Memory).await;
        let (status, answer) = post_json(format!("{}/api/json.php", sandbox.base_url()), one_sms_body()).await;
        assert_eq!((status, &answer["data"][1]["data"]["type"]), (StatusCode::OK, &json!("sms")));
        let (status, answer) = post_json(format!("{}/v1/json", sandbox.async_url()), one_sms_body()).await;
        assert_eq!((status, &answer["success"]), (StatusCode::OK, &json!(true)));
        assert!(answer["request_id"].is_string());
        assert_eq!((sandbox.counts().envelopes, sandbox.counts().messages), (2, 2));
        assert_eq!(count_operations(&sandbox.journal()), 4);
        sandbox.stop().await;
    }

    #[tokio::test]
    async fn every_rejected_request_is_answered_with_http_200() {
        let sandbox = start_sandbox(Journal::Nowhere).await;
        let url = format!("{}/api/json.php", sandbox.base_url());
        for (body, error) in [
            (String::new(), "The request is not valid JSON"),
            (one_sms_body().replace("sandbox", "wrong"), "Access denied"),
            (one_sms_body().replace("\"sms\"", "\"whatsapp\""), "Invalid message type"),
            (" ".repeat(BODY_LIMIT + 1), "The request is larger than 8 MiB"),
        ] {
            assert_eq!(post_json(url.clone(), body).await, (StatusCode::OK, json!({"success": false, "error": error})));
        }
        let response = test_client().get(&url).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.text().await.expect("a body").contains("Send a POST request"));
        let response = test_client().post(&url).body(one_sms_body()).send().await.expect("an answer");
        assert_eq!(response.status(), StatusCode::OK);
        assert!(response.text().await.expect("a body").contains("Content-Type must be application/json"));
    }

    #[tokio::test]
    async fn endpoint_path_allows_extra_leading_slashes() {
        let sandbox = start_sandbox(Journal::Nowhere).await;
        for path in ["//api/json.php", "///v1/json"] {
            let (status, answer) = post_json(format!("{}{path}", sandbox.base_url()), one_sms_body()).await;
            assert_eq!((status, &answer["success"]), (StatusCode::OK, &json!(true)), "{path}");
        }
        for (method, path) in [(Method::POST, "/api/json"), (Method::GET, "/"), (Method::PUT, "/v1/json/")] {
            let response =
                test_client().request(method, format!("{}{path}", sandbox.base_url())).send().await.expect("an answer");
            assert_eq!(response.status(), StatusCode::NOT_FOUND);
            let answer: Value = serde_json::from_str(&response.text().await.expect("a body")).expect("JSON");
            assert_eq!(answer["success"], false);
        }
    }

    #[tokio::test]
    async fn journal_is_written_before_the_response() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal.jsonl");
        let sandbox = start_sandbox(Journal::File(path.clone())).await;
        for number in 1..=20 {
            post_json(format!("{}/v1/json", sandbox.async_url()), one_sms_body()).await;
            let journal = std::fs::read_to_string(&path).expect("a journal");
            assert_eq!(count_operations(&journal), 2 * number);
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn broken_journal_makes_requests_fail_with_http_500() {
        let sandbox = start_sandbox(Journal::File("/dev/full".into())).await;
        for _ in 0..2 {
            let (status, answer) = post_json(format!("{}/api/json.php", sandbox.base_url()), one_sms_body()).await;
            assert_eq!((status, &answer["success"]), (StatusCode::INTERNAL_SERVER_ERROR, &json!(false)));
        }
        assert_eq!(sandbox.counts().messages, 1, "after the first failure nothing is executed");
    }

    #[tokio::test]
    async fn connection_serves_several_requests() {
        let sandbox = start_sandbox(Journal::Memory).await;
        let mut stream = TcpStream::connect(sandbox.address).await.expect("a connection");
        let body = one_sms_body();
        let head = format!(
            "POST /api/json.php HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            body.len()
        );
        stream
            .write_all(format!("{head}\r\n{body}{head}Connection: close\r\n\r\n{body}").as_bytes())
            .await
            .expect("sent");
        let mut answers = String::new();
        stream.read_to_string(&mut answers).await.expect("answers");
        assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2);
        let remotes = sandbox.journal().matches(&stream.local_addr().expect("ours").to_string()).count();
        assert_eq!(remotes, 2);
    }

    #[tokio::test]
    async fn unfinished_request_times_out() {
        let short =
            Timeouts { head: Duration::from_millis(50), body: Duration::from_millis(50), ..Timeouts::default() };
        let sandbox = Sandbox::start_with(SandboxSettings::default(), short).await.expect("a sandbox");
        let half_body =
            "POST /v1/json HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
        for (sent, answer) in [("", ""), ("POST /v1/json HTTP/1.1\r\nHos", ""), (half_body, "was not received in time")]
        {
            let mut stream = TcpStream::connect(sandbox.address).await.expect("a connection");
            stream.write_all(sent.as_bytes()).await.expect("sent");
            let mut response = String::new();
            // Returns only because the sandbox closes the connection.
            stream.read_to_string(&mut response).await.expect("an end");
            assert!(response.contains(answer), "{response}");
        }
    }

    #[tokio::test]
    async fn stop_closes_connections_within_its_timeout() {
        let short = Timeouts { stop: Duration::from_millis(50), ..Timeouts::default() };
        let sandbox = Sandbox::start_with(SandboxSettings::default(), short).await.expect("a sandbox");
        let address = sandbox.address;
        let mut hanging = TcpStream::connect(address).await.expect("a connection");
        hanging.write_all(b"POST /v1/json HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{").await.expect("sent");
        post_json(format!("{}/v1/json", sandbox.async_url()), one_sms_body()).await;
        sandbox.stop().await;
        assert!(TcpStream::connect(address).await.is_err());
    }

    #[tokio::test]
    async fn sandbox_stops_when_dropped() {
        let sandbox = start_sandbox(Journal::Nowhere).await;
        let address = sandbox.address;
        drop(sandbox);
        let wait_for_refusal = async { while TcpStream::connect(address).await.is_ok() {} };
        tokio::time::timeout(Duration::from_secs(10), wait_for_refusal).await.expect("the port is closed");
    }

    #[tokio::test]
    async fn address_in_use_error_names_the_address() {
        let sandbox = start_sandbox(Journal::Nowhere).await;
        let error = Sandbox::start(SandboxSettings { listen: sandbox.address, ..SandboxSettings::default() })
            .await
            .err()
            .expect("in use");
        assert!(error.to_string().starts_with(&format!("cannot listen on `{}`: ", sandbox.address)), "{error}");
    }

    #[tokio::test]
    async fn duplicate_account_key_is_rejected() {
        let accounts = vec![
            AccountSettings { key: Some("s3cret-key".into()), ..AccountSettings::default() },
            AccountSettings { key: Some("s3cret-key".into()), ..AccountSettings::default() },
        ];
        let scenario = Arc::new(Scenario { accounts, ..Scenario::default() });
        let error =
            Sandbox::start(SandboxSettings { scenario, ..SandboxSettings::default() }).await.err().expect("refused");
        let error = error.to_string();
        assert!(error.contains("different `key`") && !error.contains("s3cret"), "{error}");
    }

    #[tokio::test]
    async fn unspecified_address_is_reported_as_loopback() {
        let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let sandbox =
            Sandbox::start(SandboxSettings { listen, ..SandboxSettings::default() }).await.expect("a sandbox");
        assert!(sandbox.base_url().starts_with("http://127.0.0.1:"));
    }
}
