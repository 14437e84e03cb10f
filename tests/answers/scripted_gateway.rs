//! A scripted TCP gateway that controls every byte: each connection runs one script, which owns the socket.
//!
//! It records executed messages separately from its answers, so that results can be compared with the truth.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::json;

use crate::support::{Reachable, Request, accepted};

/// The script of one connection.
type Script = dyn Fn(&Wire<'_>) -> io::Result<()> + Send + Sync;

pub(crate) fn script(play: impl Fn(&Wire<'_>) -> io::Result<()> + Send + Sync + 'static) -> Arc<Script> {
    Arc::new(play)
}

/// A script that accepts every message and closes the connection after each answer.
pub(crate) fn accept_all() -> Arc<Script> {
    script(|wire| {
        let request = wire.read()?;
        wire.write(&complete_answer(&request))
    })
}

/// A scripted gateway: each connection runs the next script, and the last script repeats.
pub(crate) struct ScriptedGateway {
    address: SocketAddr,
    records: Arc<Records>,
    listener_thread: Option<JoinHandle<()>>,
}

/// The state that all connections share.
#[derive(Default)]
struct Records {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
    closed: AtomicBool,
}

/// One connection, as its script sees it.
pub(crate) struct Wire<'g> {
    pub(crate) stream: &'g TcpStream,
    records: &'g Records,
}

impl ScriptedGateway {
    pub(crate) fn start(scripts: Vec<Arc<Script>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let records = Arc::new(Records::default());
        let shared = Arc::clone(&records);
        let listener_thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.closed.load(Ordering::SeqCst) {
                    return;
                }
                let number = shared.connections.fetch_add(1, Ordering::SeqCst);
                let script = Arc::clone(&scripts[number.min(scripts.len() - 1)]);
                let records = Arc::clone(&shared);
                std::thread::spawn(move || {
                    let stream = stream.expect("a connection");
                    // Errors are ignored: in many stories, the client disconnects early.
                    let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
                    let _ = script(&Wire { stream: &stream, records: &records });
                });
            }
        });
        Self { address, records, listener_thread: Some(listener_thread) }
    }

    /// The number of connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.records.connections.load(Ordering::SeqCst)
    }

    /// Every complete request received.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.records.requests.lock().expect("the requests").clone()
    }

    /// The numbers of all messages received. All of them count as executed, regardless of the answer.
    pub(crate) fn executed(&self) -> Vec<u64> {
        self.requests().iter().filter(|request| !request.is_status_inquiry()).flat_map(Request::phones).collect()
    }
}

impl Reachable for ScriptedGateway {
    fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn async_url(&self) -> String {
        self.base_url()
    }
}

impl Drop for ScriptedGateway {
    fn drop(&mut self) {
        self.records.closed.store(true, Ordering::SeqCst);
        // Wakes the listener, which then stops.
        let _ = TcpStream::connect(self.address);
        if let Some(listener_thread) = self.listener_thread.take() {
            let _ = listener_thread.join();
        }
    }
}

impl Wire<'_> {
    /// Reads a complete request; its messages count as executed.
    pub(crate) fn read(&self) -> io::Result<Request> {
        self.record(Request::read(&mut BufReader::new(self.stream))?)
    }

    /// Peeks at a complete request. Its bytes stay in the socket, so closing the socket resets the connection.
    pub(crate) fn peek(&self) -> io::Result<Request> {
        let mut bytes = vec![0; 1 << 16];
        loop {
            let length = self.stream.peek(&mut bytes)?;
            // Parsing fails until the body is complete.
            if let Ok(Some(request)) = Request::read(&mut &bytes[..length]) {
                return self.record(Some(request));
            }
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            std::thread::yield_now();
        }
    }

    fn record(&self, request: Option<Request>) -> io::Result<Request> {
        let request = request.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.records.requests.lock().expect("the requests").push(request.clone());
        Ok(request)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(bytes)
    }

    /// Closes the sending side, and waits until the client disconnects.
    pub(crate) fn end_and_wait(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.wait_for_disconnect()
    }

    /// Waits without an answer until the client disconnects.
    pub(crate) fn wait_for_disconnect(&self) -> io::Result<()> {
        let mut stream = self.stream;
        stream.read_to_end(&mut Vec::new()).map(drop)
    }

    /// Waits one tenth of a second, unless the client disconnects.
    pub(crate) fn pause(&self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(Duration::from_millis(100)))?;
        let mut stream = self.stream;
        match stream.read(&mut [0]) {
            Ok(0) => Err(io::ErrorKind::BrokenPipe.into()),
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// An answer body that accepts every operation of a request.
pub(crate) fn body(request: &Request) -> Vec<u8> {
    let items: Vec<_> = request.operations().iter().map(accepted).collect();
    let body = match request.path() {
        "/v1/json" => json!({ "success": true, "request_id": "cf-ray-8d5e2f-KBP" }),
        _ => json!({ "success": true, "data": items }),
    };
    body.to_string().into_bytes()
}

/// A complete answer that accepts every operation and closes the connection.
pub(crate) fn complete_answer(request: &Request) -> Vec<u8> {
    answer("HTTP/1.1 200 OK", &["Connection: close"], &body(request))
}

/// An answer with a `Content-Length` header.
pub(crate) fn answer(line: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let length = format!("Content-Length: {}", body.len());
    raw(line, &[headers, &[&length]].concat(), body)
}

/// An answer with exactly these headers.
pub(crate) fn raw(line: &str, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let head: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    [format!("{line}\r\n{head}\r\n").as_bytes(), body].concat()
}
