//! HTTP client that posts receipts to the webhook endpoint, as the gateway does.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::scene::message_id;

/// If an answer takes longer, the benchmark fails.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that sends one webhook after another.
pub(crate) struct Connection {
    stream: TcpStream,
    host: SocketAddr,
    request: Vec<u8>,
}

impl Connection {
    /// Connects to the webhook endpoint.
    pub(crate) fn open(endpoint: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(endpoint)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, host: endpoint, request: Vec::new() })
    }

    /// Posts a receipt with status "delivered" to the path of a message. `time` is the time of delivery. Returns the
    /// HTTP status of the answer.
    pub(crate) fn post_delivered(&mut self, path: &str, time: &str) -> io::Result<u16> {
        let id = message_id(path);
        // The `msg_id` of the loopback gateway is a 1 and the last nine digits of the id.
        let end = &id[id.len().saturating_sub(9)..];
        let body = format!(
            r#"{{"success":true,"id":"{id}","msg_id":"1{end}","type":"sms","status":"DELIVERED","updated":"{time}"}}"#
        );
        self.request.clear();
        write!(
            self.request,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        )?;
        self.stream.write_all(&self.request)?;
        self.read_status()
    }

    /// Reads an answer and returns its HTTP status.
    fn read_status(&mut self) -> io::Result<u16> {
        // The body is at most one word, so the buffer holds the whole answer.
        let mut answer = [0; 512];
        let length = self.stream.read(&mut answer)?;
        // The status follows `HTTP/1.1 `.
        let status = std::str::from_utf8(&answer[..length]).ok().and_then(|text| text.get(9..12)?.parse().ok());
        status.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
