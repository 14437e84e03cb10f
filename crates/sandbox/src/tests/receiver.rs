//! A webhook receiver on loopback for tests, with canned answers.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinHandle;

/// A timeout that is far longer than these tests take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedWebhook {
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl ReceivedWebhook {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// A receiver that answers the first requests with these statuses, and all others with 200. The receiver stops
/// when dropped.
pub(crate) struct TestReceiver {
    address: SocketAddr,
    arrived: Mutex<mpsc::UnboundedReceiver<ReceivedWebhook>>,
    serving: JoinHandle<()>,
}

impl TestReceiver {
    pub(crate) async fn with_statuses(statuses: impl IntoIterator<Item = u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (arrivals, arrived) = mpsc::unbounded_channel();
        let mut statuses = statuses.into_iter().collect::<Vec<_>>().into_iter();
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let status = statuses.next().unwrap_or(200);
                if let Some(received) = answer_request(stream, status).await {
                    // The test might have stopped waiting.
                    let _ = arrivals.send(received);
                }
            }
        });
        Self { address, arrived: Mutex::new(arrived), serving }
    }

    /// A URL of this receiver.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Waits for the next request. Panics if no request arrives.
    pub(crate) async fn next(&self) -> ReceivedWebhook {
        let mut arrived = self.arrived.lock().await;
        let next = tokio::time::timeout(PATIENCE, arrived.recv()).await.expect("a webhook in time");
        next.expect("the receiver still listens")
    }

    /// Whether all requests were taken.
    pub(crate) fn is_idle(&self) -> bool {
        self.arrived.try_lock().expect("no test is waiting").is_empty()
    }
}

impl Drop for TestReceiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Reads one request from a connection and answers it.
async fn answer_request(stream: TcpStream, status: u16) -> Option<ReceivedWebhook> {
    let mut stream = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header =
        |line: &String| line.split_once(':').map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    let headers: Vec<_> = lines.iter().skip(1).filter_map(header).collect();
    let length = headers.iter().find(|(name, _)| name == "content-length")?.1.parse().ok()?;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let answer = format!("HTTP/1.1 {status} -\r\nContent-Length: 0\r\nConnection: close\r\nLocation: /b\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.ok()?;
    Some(ReceivedWebhook { line: lines.into_iter().next()?, headers, body })
}
