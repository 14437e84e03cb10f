//! A loopback gateway that accepts every operation immediately: each gets an answer with its id and a `msg_id`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// A callback that receives the body of each request.
pub(crate) type Watcher = Arc<dyn Fn(&[u8]) + Send + Sync>;

/// Starts the gateway, which runs until this process ends, and returns its address.
pub(crate) fn start(watcher: Watcher) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
    let address = listener.local_addr().expect("the address of the listener");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let watcher = Arc::clone(&watcher);
            // If a client disconnects, only its own connection ends.
            std::thread::spawn(move || serve(stream, &watcher));
        }
    });
    address
}

fn serve(stream: TcpStream, watcher: &Watcher) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(1 << 16, stream);
    let (mut body, mut answer) = (Vec::new(), Vec::new());
    while let Some(length) = read_content_length(&mut reader)? {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        watcher(&body);
        answer.clear();
        write_items(&body, &mut answer);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", answer.len());
        writer.write_all(&[head.as_bytes(), &answer].concat())?;
    }
    Ok(())
}

/// Reads the head of a request and returns its content length. Returns `None` at the end of the connection.
fn read_content_length(reader: &mut impl BufRead) -> std::io::Result<Option<usize>> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Ok(Some(length));
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
}

/// Writes an answer with one item for each operation. Each `"id":` in the body counts as an operation.
fn write_items(body: &[u8], answer: &mut Vec<u8>) {
    const ID: &[u8] = b"\"id\":";
    answer.extend_from_slice(br#"{"success":true,"data":["#);
    let mut rest = body;
    let mut is_first = true;
    while let Some(at) = rest.windows(ID.len()).position(|window| window == ID) {
        rest = rest[at + ID.len()..].trim_ascii_start();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        answer.extend_from_slice(if is_first {
            br#"{"success":true,"data":{"id":"#
        } else {
            br#",{"success":true,"data":{"id":"#
        });
        answer.extend_from_slice(&rest[..digits]);
        // The `msg_id` is a 1 and the last nine digits of the id. Without the 1, the number could begin with 0.
        answer.extend_from_slice(br#","msg_id":1"#);
        answer.extend_from_slice(&rest[digits.saturating_sub(9)..digits]);
        answer.extend_from_slice(br#","parts":1,"data":1}}"#);
        is_first = false;
    }
    answer.extend_from_slice(b"]}");
}
