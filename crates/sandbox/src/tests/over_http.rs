//! Faults of connections and answers, as a client sees them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::receiver::TestReceiver;
use crate::journal::Journal;
use crate::scenario::{FaultEffect, Scenario, ScenarioCondition, ScenarioFault, WebhookFault};
use crate::server::http::Timeouts;
use crate::server::{Sandbox, SandboxSettings};

/// A timeout that is far longer than these tests take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A sandbox with these faults, by the number of the envelope.
async fn start_with_faults(faults: impl IntoIterator<Item = (u64, FaultEffect)>) -> Sandbox {
    let fault = |(number, effect)| ScenarioFault {
        when: ScenarioCondition { envelope: Some(number..=number), ..ScenarioCondition::default() },
        effect,
    };
    start(Scenario { faults: faults.into_iter().map(fault).collect(), ..Scenario::default() }).await
}

async fn start(scenario: Scenario) -> Sandbox {
    let settings =
        SandboxSettings { scenario: Arc::new(scenario), journal: Journal::Memory, ..SandboxSettings::default() };
    Sandbox::start(settings).await.expect("a sandbox")
}

fn socket_address(sandbox: &Sandbox) -> SocketAddr {
    sandbox.base_url().trim_start_matches("http://").parse().expect("an address")
}

fn sms(id: u64) -> Value {
    json!({"type": "sms", "id": id, "phone": 380_501_234_567_u64, "sms_signature": "OlenaCo", "sms_message": "Hi"})
}

/// The bytes of a request with these operations.
fn request(operations: &[Value]) -> Vec<u8> {
    let body = json!({"auth": "sandbox", "data": operations}).to_string();
    let length = body.len();
    let head = "POST /api/json.php HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    format!("{head}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A kept-alive connection.
struct TestConnection(TcpStream);

/// An HTTP answer. Its body can be incomplete.
struct HttpAnswer {
    head: String,
    body: Vec<u8>,
}

impl HttpAnswer {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

impl TestConnection {
    async fn connect(sandbox: &Sandbox) -> Self {
        Self(TcpStream::connect(socket_address(sandbox)).await.expect("a connection"))
    }

    /// Sends one SMS and returns the answer, if any.
    async fn send(&mut self, id: u64) -> Option<HttpAnswer> {
        self.send_operations(&[sms(id)]).await
    }

    /// Sends these operations and returns the answer, if any.
    async fn send_operations(&mut self, operations: &[Value]) -> Option<HttpAnswer> {
        self.0.write_all(&request(operations)).await.ok()?;
        self.read_answer().await
    }

    async fn read_answer(&mut self) -> Option<HttpAnswer> {
        let mut received = Vec::new();
        let head = loop {
            if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if self.0.read_buf(&mut received).await.ok()? == 0 {
                assert!(received.is_empty(), "a piece of a head");
                return None;
            }
        };
        let body = received.split_off(head);
        let head = String::from_utf8(received).expect("a head").to_lowercase();
        let length: usize = header(&head, "content-length").and_then(|length| length.parse().ok()).expect("a length");
        let mut received = HttpAnswer { head, body };
        while received.body.len() < length && self.0.read_buf(&mut received.body).await.unwrap_or(0) > 0 {}
        Some(received)
    }

    /// Waits for an answer or the end of the connection. Returns whether the connection was closed.
    async fn wait_until_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]).await, Ok(0) | Err(_))
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn fault_lines(sandbox: &Sandbox) -> Vec<(u64, String)> {
    let journal = sandbox.journal();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let faults = lines.filter(|line| line["event"] == "fault");
    faults
        .map(|line| (line["envelope"].as_u64().expect("a number"), line["fault"].as_str().expect("a name").into()))
        .collect()
}

#[tokio::test]
async fn dropped_answer_has_no_bytes_but_the_request_is_executed() {
    let sandbox = start_with_faults([(2, FaultEffect::Dropped)]).await;
    let mut client = TestConnection::connect(&sandbox).await;
    assert_eq!(client.send(1).await.expect("an answer").json()["success"], true);
    assert!(client.send(2).await.is_none());
    assert_eq!(sandbox.counts().messages, 2);
    assert!(TestConnection::connect(&sandbox).await.send(3).await.is_some());
    assert_eq!(fault_lines(&sandbox), [(2, "dropped".into())]);
}

#[tokio::test]
async fn truncated_answer_ends_halfway_through_its_body() {
    let sandbox = start_with_faults([(1, FaultEffect::Truncated)]).await;
    let mut client = TestConnection::connect(&sandbox).await;
    let cut = client.send(1).await.expect("half an answer");
    assert!(cut.head.starts_with("http/1.1 200"), "{}", cut.head);
    let declared: usize = header(&cut.head, "content-length").and_then(|value| value.parse().ok()).expect("a length");
    assert_eq!(cut.body.len(), declared / 2);
    assert!(client.wait_until_closed().await);
    let complete = TestConnection::connect(&sandbox).await.send(2).await.expect("an answer");
    assert_eq!((complete.body.len(), complete.json()["success"].clone()), (declared, json!(true)));
    assert_eq!(sandbox.counts().messages, 2);
}

#[tokio::test]
async fn delayed_answer_does_not_delay_others() {
    let (wait, hour) = (Duration::from_millis(100), Duration::from_secs(3_600));
    let sandbox = start_with_faults([(1, FaultEffect::Delay(wait)), (2, FaultEffect::Delay(hour))]).await;
    let mut client = TestConnection::connect(&sandbox).await;
    let began = Instant::now();
    assert_eq!(client.send(1).await.expect("an answer").json()["success"], true);
    assert!(began.elapsed() >= wait);
    client.0.write_all(&request(&[sms(2)])).await.expect("sent");
    while sandbox.counts().messages < 2 {
        assert!(began.elapsed() < PATIENCE, "it is executed at once");
        tokio::task::yield_now().await;
    }
    assert_eq!(TestConnection::connect(&sandbox).await.send(3).await.expect("an answer").json()["success"], true);
}

#[tokio::test]
async fn error_page_can_replace_the_answer_to_an_executed_request() {
    let wait = Some(Duration::from_secs(7));
    for (status, retry_after, executed) in
        [(503, wait, false), (502, None, true), (429, wait, false), (404, None, false)]
    {
        let sandbox = start_with_faults([(1, FaultEffect::Http { status, retry_after, executed })]).await;
        let mut client = TestConnection::connect(&sandbox).await;
        let page = client.send(1).await.expect("a page");
        assert!(page.head.starts_with(&format!("http/1.1 {status} ")), "{}", page.head);
        assert_eq!(header(&page.head, "content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(header(&page.head, "retry-after"), retry_after.map(|_| "7"));
        assert!(page.body.starts_with(b"<!DOCTYPE html>") && page.body.ends_with(b"</html>\n"));
        assert_eq!(sandbox.counts().messages, u64::from(executed), "{status}");
        assert_eq!(client.send(2).await.expect("an answer").json()["success"], true, "the connection stays open");
        assert_eq!(fault_lines(&sandbox), [(1, "http".into())]);
    }
}

#[tokio::test]
async fn refused_connection_leaves_the_previous_answer_intact() {
    let pause = Duration::from_secs(1);
    let sandbox = start_with_faults([(2, FaultEffect::Refused(pause))]).await;
    let (mut idle, mut client) = (TestConnection::connect(&sandbox).await, TestConnection::connect(&sandbox).await);
    let answer = client.send(1).await.expect("an answer");
    let began = Instant::now();
    assert_eq!(answer.json()["success"], true);
    assert_eq!(header(&answer.head, "connection"), Some("close"));
    assert!(client.wait_until_closed().await && idle.wait_until_closed().await);
    let error = TcpStream::connect(socket_address(&sandbox)).await.expect_err("refused");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    while TcpStream::connect(socket_address(&sandbox)).await.is_err() {
        assert!(began.elapsed() < PATIENCE, "it listens again");
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed() > pause / 2, "{:?}", began.elapsed());
    assert_eq!(TestConnection::connect(&sandbox).await.send(2).await.expect("an answer").json()["success"], true);
    assert_eq!(fault_lines(&sandbox), [(1, "refused".into())]);
}

#[tokio::test]
async fn refusal_before_the_first_envelope_applies_from_the_start() {
    let sandbox = start_with_faults([(1, FaultEffect::Refused(Duration::from_secs(3_600)))]).await;
    assert!(TcpStream::connect(socket_address(&sandbox)).await.is_err());
    assert_eq!(fault_lines(&sandbox), [(0, "refused".into())]);
    sandbox.stop().await;
}

#[tokio::test]
async fn request_on_a_connection_closed_by_a_fault_is_not_read() {
    let sandbox = start_with_faults([(2, FaultEffect::Closed)]).await;
    let mut client = TestConnection::connect(&sandbox).await;
    assert_eq!(client.send(1).await.expect("an answer").json()["success"], true);
    assert!(client.wait_until_closed().await, "a kept-alive connection would avoid the fault");
    assert!(TestConnection::connect(&sandbox).await.send(2).await.is_none());
    assert_eq!(TestConnection::connect(&sandbox).await.send(3).await.expect("an answer").json()["success"], true);
    assert_eq!((sandbox.counts().messages, fault_lines(&sandbox)), (2, vec![(1, "closed".into())]));
}

#[tokio::test]
async fn port_refuses_connections_even_if_the_client_hangs_up() {
    let delay = FaultEffect::Delay(Duration::from_millis(50));
    let sandbox = start_with_faults([(1, delay), (2, FaultEffect::Refused(Duration::from_secs(3_600)))]).await;
    let mut client = TestConnection::connect(&sandbox).await;
    client.0.write_all(&request(&[sms(1)])).await.expect("sent");
    while sandbox.counts().messages == 0 {
        tokio::task::yield_now().await;
    }
    drop(client);
    let wait_for_refusal = async { while TcpStream::connect(socket_address(&sandbox)).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, wait_for_refusal).await.expect("the port is closed");
}

#[tokio::test]
async fn answer_items_can_be_missing_foreign_or_out_of_order() {
    let sandbox =
        start_with_faults([(1, FaultEffect::Reordered), (2, FaultEffect::Missing), (3, FaultEffect::Foreign)]).await;
    let mut client = TestConnection::connect(&sandbox).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let answer = client.send_operations(&[sms(1), sms(2), sms(3)]).await.expect("an answer").json();
        let ids = answer["data"].as_array().expect("items").iter().map(|item| item["data"]["id"].as_u64());
        answers.push(ids.collect::<Option<Vec<_>>>().expect("identifiers"));
    }
    assert_eq!(answers[..2], [vec![3, 2, 1], vec![1, 2]]);
    assert_eq!(answers[2][1..], [2, 3]);
    assert!(!(1..=3).contains(&answers[2][0]));
    assert_eq!(sandbox.counts().messages, 9, "all of them were executed");
}

#[tokio::test]
async fn envelope_without_messages_triggers_no_fault() {
    let sandbox = start_with_faults([(1, FaultEffect::Dropped)]).await;
    let mut client = TestConnection::connect(&sandbox).await;
    for _ in 0..3 {
        let answer = client.send_operations(&[json!({"type": "balance"})]).await.expect("an answer");
        assert_eq!(answer.json()["success"], true);
    }
    assert!(client.send(1).await.is_none(), "the first envelope with a message");
}

#[tokio::test]
async fn webhooks_arrive_as_often_as_the_scenario_says() {
    for (fault, expected) in [(None, 1), (Some(WebhookFault::Twice), 2), (Some(WebhookFault::Lost), 0)] {
        let receiver = TestReceiver::with_statuses([]).await;
        let faults = fault
            .map(|fault| ScenarioFault { when: ScenarioCondition::default(), effect: FaultEffect::Webhook(fault) });
        let scenario = Scenario { speed: 200, faults: faults.into_iter().collect(), ..Scenario::default() };
        let sandbox = start(scenario).await;
        let mut message = sms(1);
        message["hook"] = receiver.url("/?token=1").into();
        TestConnection::connect(&sandbox).await.send_operations(&[message]).await.expect("an answer");
        for _ in 0..expected {
            assert_eq!(receiver.next().await.json()["status"], "DELIVERED", "{fault:?}");
        }
        let counts = sandbox.drain().await;
        assert_eq!(counts.statuses.get("DELIVERED"), Some(&1), "{fault:?}");
        assert!(receiver.is_idle(), "{fault:?}");
    }
}

#[tokio::test]
async fn late_webhook_arrives_after_the_others() {
    let receiver = TestReceiver::with_statuses([]).await;
    let late = FaultEffect::Webhook(WebhookFault::Late(Duration::from_secs(60)));
    let when = ScenarioCondition { suffix: Some("67".into()), ..ScenarioCondition::default() };
    let sandbox = start(Scenario { faults: vec![ScenarioFault { when, effect: late }], ..Scenario::default() }).await;
    let message = |id: u64, phone: u64| {
        let mut message = sms(id);
        message["phone"] = phone.into();
        message["hook"] = receiver.url("/").into();
        message
    };
    let messages = [message(1, 380_501_234_567), message(2, 380_501_234_568)];
    TestConnection::connect(&sandbox).await.send_operations(&messages).await.expect("an answer");
    sandbox.drain().await;
    assert_eq!([receiver.next().await.json()["id"].clone(), receiver.next().await.json()["id"].clone()], ["2", "1"]);
}

#[tokio::test]
async fn reordered_webhooks_arrive_newest_first() {
    let receiver = TestReceiver::with_statuses([]).await;
    let reordered = FaultEffect::Webhook(WebhookFault::Reordered);
    let fault = ScenarioFault { when: ScenarioCondition::default(), effect: reordered };
    let sandbox = start(Scenario { faults: vec![fault], ..Scenario::default() }).await;
    let mut message = json!({"type": "viber", "id": 1, "phone": 380_501_234_567_u64,
        "viber_type": "text", "viber_signature": "OlenaCo", "viber_message": "Hi"});
    message["hook"] = receiver.url("/").into();
    TestConnection::connect(&sandbox).await.send_operations(&[message]).await.expect("an answer");
    sandbox.drain().await;
    let statuses = [receiver.next().await.json()["status"].clone(), receiver.next().await.json()["status"].clone()];
    assert_eq!(statuses, ["READ", "DELIVERED"]);
}

#[tokio::test]
async fn drain_finishes_messages_beyond_one_slice() {
    let sandbox = start(Scenario::default()).await;
    let messages: Vec<_> = (1..=2_500).map(sms).collect();
    TestConnection::connect(&sandbox).await.send_operations(&messages).await.expect("an answer");
    assert_eq!(sandbox.drain().await.statuses, [("DELIVERED".to_owned(), 2_500)].into());
}

#[tokio::test]
async fn time_passes_at_the_speed_of_the_scenario() {
    let sandbox = start(Scenario { speed: 100, ..Scenario::default() }).await;
    let began = Instant::now();
    TestConnection::connect(&sandbox).await.send(1).await.expect("an answer");
    while sandbox.counts().statuses.is_empty() {
        assert!(began.elapsed() < PATIENCE, "the message is delivered without a request");
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed() >= Duration::from_millis(20), "two seconds, a hundred times as fast");
}

#[tokio::test]
async fn drain_stops_waiting_for_receivers_after_a_timeout() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let short = Timeouts { receivers: Duration::from_millis(50), ..Timeouts::default() };
    let sandbox = Sandbox::start_with(SandboxSettings::default(), short).await.expect("a sandbox");
    let mut message = sms(1);
    message["hook"] = format!("http://{}/", silent.local_addr().expect("an address")).into();
    TestConnection::connect(&sandbox).await.send_operations(&[message]).await.expect("an answer");
    let counts = tokio::time::timeout(PATIENCE, sandbox.drain()).await.expect("an end");
    assert_eq!(counts.statuses.get("DELIVERED"), Some(&1));
    sandbox.stop().await;
}
