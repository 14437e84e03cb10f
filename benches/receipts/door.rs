//! The gateway's side of the receipts' door.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::scene::id_of;

/// How long an answer may take before the benchmark is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that webhooks are sent over, one after another.
pub(crate) struct Connection {
    stream: TcpStream,
    host: SocketAddr,
    request: Vec<u8>,
}

impl Connection {
    /// Connects to the door.
    pub(crate) fn open(door: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(door)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, host: door, request: Vec::new() })
    }

    /// Posts to a path that its message was delivered; the status of the answer.
    pub(crate) fn delivered(&mut self, path: &str, at: &str) -> io::Result<u16> {
        let id = id_of(path);
        // The identifier that the gateway gave: see the answers of `gateway`.
        let msg_id = &id[id.len().saturating_sub(9)..];
        let body = format!(
            r#"{{"success":true,"id":"{id}","msg_id":"1{msg_id}","type":"sms","status":"DELIVERED","updated":"{at}"}}"#
        );
        self.request.clear();
        write!(
            self.request,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        )?;
        self.stream.write_all(&self.request)?;
        self.answer()
    }

    /// The status of an answer, whose body is a word at most.
    fn answer(&mut self) -> io::Result<u16> {
        let mut answer = [0; 512];
        let length = self.stream.read(&mut answer)?;
        let status = std::str::from_utf8(&answer[..length]).ok().and_then(|text| text.get(9..12)?.parse().ok());
        status.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}
