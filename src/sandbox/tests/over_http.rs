//! The promise that what a scenario makes go wrong on the wire goes wrong there, as a client sees it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::receiver::Receiver;
use crate::sandbox::doors::connections::Timeouts;
use crate::sandbox::doors::server::{Sandbox, Settings};
use crate::sandbox::journal::Journal;
use crate::sandbox::scenario::{Effect, Fault, Scenario, WebhookFault, When};

/// Far longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A sandbox in which this goes wrong with that envelope of sends.
async fn playing(faults: impl IntoIterator<Item = (u64, Effect)>) -> Sandbox {
    let fault = |(number, effect)| Fault { when: When { envelope: Some(number..=number), ..When::default() }, effect };
    start(Scenario { faults: faults.into_iter().map(fault).collect(), ..Scenario::default() }).await
}

async fn start(scenario: Scenario) -> Sandbox {
    let settings = Settings { scenario: Arc::new(scenario), journal: Journal::Memory, ..Settings::default() };
    Sandbox::start(settings).await.expect("a sandbox")
}

fn address(sandbox: &Sandbox) -> SocketAddr {
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
struct Client(TcpStream);

/// An answer as far as it came.
struct Heard {
    head: String,
    body: Vec<u8>,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

impl Client {
    async fn to(sandbox: &Sandbox) -> Self {
        Self(TcpStream::connect(address(sandbox)).await.expect("a connection"))
    }

    /// Sends one SMS; the answer, if one begins.
    async fn send(&mut self, id: u64) -> Option<Heard> {
        self.ask(&[sms(id)]).await
    }

    /// Sends these operations; the answer, if one begins.
    async fn ask(&mut self, operations: &[Value]) -> Option<Heard> {
        self.0.write_all(&request(operations)).await.ok()?;
        self.hear().await
    }

    async fn hear(&mut self) -> Option<Heard> {
        let mut heard = Vec::new();
        let head = loop {
            if let Some(end) = heard.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
            if self.0.read_buf(&mut heard).await.ok()? == 0 {
                assert!(heard.is_empty(), "a piece of a head");
                return None;
            }
        };
        let body = heard.split_off(head);
        let head = String::from_utf8(heard).expect("a head").to_lowercase();
        let length: usize = header(&head, "content-length").and_then(|length| length.parse().ok()).expect("a length");
        let mut heard = Heard { head, body };
        while heard.body.len() < length && self.0.read_buf(&mut heard.body).await.unwrap_or(0) > 0 {}
        Some(heard)
    }

    /// Whether the other side has closed it; waits for that or for an answer.
    async fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]).await, Ok(0) | Err(_))
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

fn faults(sandbox: &Sandbox) -> Vec<(u64, String)> {
    let journal = sandbox.journal();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let faults = lines.filter(|line| line["event"] == "fault");
    faults
        .map(|line| (line["envelope"].as_u64().expect("a number"), line["fault"].as_str().expect("a name").into()))
        .collect()
}

#[tokio::test]
async fn an_answer_that_is_dropped_was_executed_and_its_connection_ends_without_a_byte() {
    let sandbox = playing([(2, Effect::Dropped)]).await;
    let mut client = Client::to(&sandbox).await;
    assert_eq!(client.send(1).await.expect("an answer").json()["success"], true);
    assert!(client.send(2).await.is_none());
    assert_eq!(sandbox.counts().messages, 2);
    assert!(Client::to(&sandbox).await.send(3).await.is_some());
    assert_eq!(faults(&sandbox), [(2, "dropped".into())]);
}

#[tokio::test]
async fn an_answer_that_is_truncated_promises_all_and_ends_in_the_middle() {
    let sandbox = playing([(1, Effect::Truncated)]).await;
    let mut client = Client::to(&sandbox).await;
    let cut = client.send(1).await.expect("half an answer");
    assert!(cut.head.starts_with("http/1.1 200"), "{}", cut.head);
    let promised: usize = header(&cut.head, "content-length").and_then(|it| it.parse().ok()).expect("a length");
    assert_eq!(cut.body.len(), promised / 2);
    assert!(client.is_closed().await);
    let whole = Client::to(&sandbox).await.send(2).await.expect("an answer");
    assert_eq!((whole.body.len(), whole.json()["success"].clone()), (promised, json!(true)));
    assert_eq!(sandbox.counts().messages, 2);
}

#[tokio::test]
async fn an_answer_that_is_delayed_comes_later_and_holds_up_nobody_else() {
    let (wait, for_ever) = (Duration::from_millis(100), Duration::from_secs(3_600));
    let sandbox = playing([(1, Effect::Delay(wait)), (2, Effect::Delay(for_ever))]).await;
    let mut client = Client::to(&sandbox).await;
    let began = Instant::now();
    assert_eq!(client.send(1).await.expect("an answer").json()["success"], true);
    assert!(began.elapsed() >= wait);
    client.0.write_all(&request(&[sms(2)])).await.expect("sent");
    while sandbox.counts().messages < 2 {
        assert!(began.elapsed() < PATIENCE, "it is executed at once");
        tokio::task::yield_now().await;
    }
    assert_eq!(Client::to(&sandbox).await.send(3).await.expect("an answer").json()["success"], true);
}

#[tokio::test]
async fn a_page_stands_in_the_answers_place_whether_or_not_the_envelope_was_executed() {
    let wait = Some(Duration::from_secs(7));
    for (status, retry_after, executed) in
        [(503, wait, false), (502, None, true), (429, wait, false), (404, None, false)]
    {
        let sandbox = playing([(1, Effect::Http { status, retry_after, executed })]).await;
        let mut client = Client::to(&sandbox).await;
        let page = client.send(1).await.expect("a page");
        assert!(page.head.starts_with(&format!("http/1.1 {status} ")), "{}", page.head);
        assert_eq!(header(&page.head, "content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(header(&page.head, "retry-after"), retry_after.map(|_| "7"));
        assert!(page.body.starts_with(b"<!DOCTYPE html>") && page.body.ends_with(b"</html>\n"));
        assert_eq!(sandbox.counts().messages, u64::from(executed), "{status}");
        assert_eq!(client.send(2).await.expect("an answer").json()["success"], true, "the connection lives on");
        assert_eq!(faults(&sandbox), [(1, "http".into())]);
    }
}

#[tokio::test]
async fn before_its_envelope_the_door_refuses_and_the_answer_before_it_arrives_whole() {
    let shut = Duration::from_secs(1);
    let sandbox = playing([(2, Effect::Refused(shut))]).await;
    let (mut idle, mut client) = (Client::to(&sandbox).await, Client::to(&sandbox).await);
    let answer = client.send(1).await.expect("an answer");
    let began = Instant::now();
    assert_eq!(answer.json()["success"], true);
    assert_eq!(header(&answer.head, "connection"), Some("close"));
    assert!(client.is_closed().await && idle.is_closed().await);
    let refused = TcpStream::connect(address(&sandbox)).await.expect_err("refused");
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    while TcpStream::connect(address(&sandbox)).await.is_err() {
        assert!(began.elapsed() < PATIENCE, "it listens again");
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed() > shut / 2, "{:?}", began.elapsed());
    assert_eq!(Client::to(&sandbox).await.send(2).await.expect("an answer").json()["success"], true);
    assert_eq!(faults(&sandbox), [(1, "refused".into())]);
}

#[tokio::test]
async fn before_the_first_envelope_the_door_is_shut_from_the_start() {
    let sandbox = playing([(1, Effect::Refused(Duration::from_secs(3_600)))]).await;
    assert!(TcpStream::connect(address(&sandbox)).await.is_err());
    assert_eq!(faults(&sandbox), [(0, "refused".into())]);
    sandbox.stop().await;
}

#[tokio::test]
async fn the_connection_that_brings_its_envelope_is_closed_before_anything_is_read() {
    let sandbox = playing([(2, Effect::Closed)]).await;
    let mut client = Client::to(&sandbox).await;
    assert_eq!(client.send(1).await.expect("an answer").json()["success"], true);
    assert!(client.is_closed().await, "a kept-alive connection would bring it past the door");
    assert!(Client::to(&sandbox).await.send(2).await.is_none());
    assert_eq!(Client::to(&sandbox).await.send(3).await.expect("an answer").json()["success"], true);
    assert_eq!((sandbox.counts().messages, faults(&sandbox)), (2, vec![(1, "closed".into())]));
}

#[tokio::test]
async fn a_client_that_hangs_up_does_not_keep_the_door_from_shutting() {
    let delay = Effect::Delay(Duration::from_millis(50));
    let sandbox = playing([(1, delay), (2, Effect::Refused(Duration::from_secs(3_600)))]).await;
    let mut client = Client::to(&sandbox).await;
    client.0.write_all(&request(&[sms(1)])).await.expect("sent");
    while sandbox.counts().messages == 0 {
        tokio::task::yield_now().await;
    }
    drop(client);
    let shut = async { while TcpStream::connect(address(&sandbox)).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, shut).await.expect("nobody listens");
}

#[tokio::test]
async fn items_are_reordered_missing_and_about_somebody_else() {
    let sandbox = playing([(1, Effect::Reordered), (2, Effect::Missing), (3, Effect::Foreign)]).await;
    let mut client = Client::to(&sandbox).await;
    let mut answers = Vec::new();
    for _ in 0..3 {
        let answer = client.ask(&[sms(1), sms(2), sms(3)]).await.expect("an answer").json();
        let ids = answer["data"].as_array().expect("items").iter().map(|item| item["data"]["id"].as_u64());
        answers.push(ids.collect::<Option<Vec<_>>>().expect("identifiers"));
    }
    assert_eq!(answers[..2], [vec![3, 2, 1], vec![1, 2]]);
    assert_eq!(answers[2][1..], [2, 3]);
    assert!(!(1..=3).contains(&answers[2][0]));
    assert_eq!(sandbox.counts().messages, 9, "all of them were executed");
}

#[tokio::test]
async fn what_sends_nothing_meets_no_fault_and_is_not_counted() {
    let sandbox = playing([(1, Effect::Dropped)]).await;
    let mut client = Client::to(&sandbox).await;
    for _ in 0..3 {
        let answer = client.ask(&[json!({"type": "balance"})]).await.expect("an answer");
        assert_eq!(answer.json()["success"], true);
    }
    assert!(client.send(1).await.is_none(), "the first that holds a send");
}

#[tokio::test]
async fn webhooks_come_by_themselves_and_as_often_as_the_scenario_says() {
    for (fault, expected) in [(None, 1), (Some(WebhookFault::Twice), 2), (Some(WebhookFault::Lost), 0)] {
        let receiver = Receiver::answering([]).await;
        let faults = fault.map(|fault| Fault { when: When::default(), effect: Effect::Webhook(fault) });
        let scenario = Scenario { speed: 200, faults: faults.into_iter().collect(), ..Scenario::default() };
        let sandbox = start(scenario).await;
        let mut message = sms(1);
        message["hook"] = receiver.url("/?token=1").into();
        Client::to(&sandbox).await.ask(&[message]).await.expect("an answer");
        for _ in 0..expected {
            assert_eq!(receiver.next().await.json()["status"], "DELIVERED", "{fault:?}");
        }
        let counts = sandbox.run_out().await;
        assert_eq!(counts.statuses.get("DELIVERED"), Some(&1), "{fault:?}");
        assert!(receiver.is_idle(), "{fault:?}");
    }
}

#[tokio::test]
async fn a_late_webhook_comes_after_the_others() {
    let receiver = Receiver::answering([]).await;
    let late = Effect::Webhook(WebhookFault::Late(Duration::from_secs(60)));
    let when = When { suffix: Some("67".into()), ..When::default() };
    let sandbox = start(Scenario { faults: vec![Fault { when, effect: late }], ..Scenario::default() }).await;
    let message = |id: u64, phone: u64| {
        let mut message = sms(id);
        message["phone"] = phone.into();
        message["hook"] = receiver.url("/").into();
        message
    };
    let messages = [message(1, 380_501_234_567), message(2, 380_501_234_568)];
    Client::to(&sandbox).await.ask(&messages).await.expect("an answer");
    sandbox.run_out().await;
    assert_eq!([receiver.next().await.json()["id"].clone(), receiver.next().await.json()["id"].clone()], ["2", "1"]);
}

#[tokio::test]
async fn webhooks_that_are_reordered_tell_the_newest_first() {
    let receiver = Receiver::answering([]).await;
    let reordered = Effect::Webhook(WebhookFault::Reordered);
    let fault = Fault { when: When::default(), effect: reordered };
    let sandbox = start(Scenario { faults: vec![fault], ..Scenario::default() }).await;
    let mut message = json!({"type": "viber", "id": 1, "phone": 380_501_234_567_u64,
        "viber_type": "text", "viber_signature": "OlenaCo", "viber_message": "Hi"});
    message["hook"] = receiver.url("/").into();
    Client::to(&sandbox).await.ask(&[message]).await.expect("an answer");
    sandbox.run_out().await;
    let told = [receiver.next().await.json()["status"].clone(), receiver.next().await.json()["status"].clone()];
    assert_eq!(told, ["READ", "DELIVERED"]);
}

#[tokio::test]
async fn running_out_ends_more_messages_than_fit_under_one_lock() {
    let sandbox = start(Scenario::default()).await;
    let messages: Vec<_> = (1..=2_500).map(sms).collect();
    Client::to(&sandbox).await.ask(&messages).await.expect("an answer");
    assert_eq!(sandbox.run_out().await.statuses, [("DELIVERED".to_owned(), 2_500)].into());
}

#[tokio::test]
async fn time_passes_by_itself_and_as_fast_as_the_scenario_says() {
    let sandbox = start(Scenario { speed: 100, ..Scenario::default() }).await;
    let began = Instant::now();
    Client::to(&sandbox).await.send(1).await.expect("an answer");
    while sandbox.counts().statuses.is_empty() {
        assert!(began.elapsed() < PATIENCE, "nobody asks, and it is delivered nevertheless");
        tokio::task::yield_now().await;
    }
    assert!(began.elapsed() >= Duration::from_millis(20), "two seconds, a hundred times as fast");
}

#[tokio::test]
async fn running_out_waits_for_receivers_that_answer_and_not_for_ever_for_those_that_do_not() {
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let short = Timeouts { receivers: Duration::from_millis(50), ..Timeouts::default() };
    let sandbox = Sandbox::start_with(Settings::default(), short).await.expect("a sandbox");
    let mut message = sms(1);
    message["hook"] = format!("http://{}/", deaf.local_addr().expect("an address")).into();
    Client::to(&sandbox).await.ask(&[message]).await.expect("an answer");
    let ran_out = tokio::time::timeout(PATIENCE, sandbox.run_out()).await.expect("an end");
    assert_eq!(ran_out.statuses.get("DELIVERED"), Some(&1));
    sandbox.stop().await;
}
