//! One POST over plain HTTP, to an address as it was written.
//!
//! The types of HTTP libraries hold no address with a `"` or a `..` in it, or write it otherwise. A
//! receiver's token may consist of anything, so path and query are sent here to the letter. It
//! must not judge whether the receiver may be posted to: its host and port are those that were judged.

use std::io::{self, ErrorKind};

use reqwest::Url;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// The longest head of an answer, in bytes.
const HEAD_LIMIT: u64 = 64 << 10;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target<'a> {
    host: &'a str,
    port: u16,
    /// Path and query, to the letter.
    path: String,
}

/// Why there was no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// Nobody was reached.
    NoConnection(io::Error),
    /// Somebody was, and gave no answer that is one.
    Broken(io::Error),
}

impl<'a> Target<'a> {
    /// The target of an address that was read as `url` and written so; nothing if it cannot be sent as it is:
    /// with another scheme, with a password, or with a space or a control character.
    pub(super) fn of(url: &'a Url, written: &str) -> Option<Self> {
        let anonymous = url.username().is_empty() && url.password().is_none();
        if url.scheme() != "http" || !anonymous || written.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return None;
        }
        let (_, address) = written.split_once("://")?;
        let path = address.find(['/', '?', '#', '\\']).map_or("", |start| &address[start..]);
        // What stands behind the `#` is the reader's own (RFC 3986, 3.5).
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some(Self { host: url.host_str()?, port: url.port_or_known_default()?, path })
    }

    /// The head of a request with a JSON body of that many bytes.
    fn head(&self, agent: &str, length: usize) -> String {
        let Self { host, port, path } = self;
        let port = if *port == 80 { String::new() } else { format!(":{port}") };
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}{port}\r\nUser-Agent: {agent}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        )
    }

    /// Posts a JSON body and gives the HTTP status of the answer. How long that may take is the caller's affair.
    ///
    /// # Errors
    /// If there is no connection, or no answer.
    pub(super) async fn post(&self, agent: &str, body: &[u8]) -> Result<u16, NoAnswer> {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let mut stream = TcpStream::connect((bare, self.port)).await.map_err(NoAnswer::NoConnection)?;
        let request = [self.head(agent, body.len()).as_bytes(), body].concat();
        stream.write_all(&request).await.map_err(NoAnswer::Broken)?;
        status(stream).await.map_err(NoAnswer::Broken)
    }
}

/// The status of the answer; those that announce another one are passed over.
async fn status(stream: TcpStream) -> io::Result<u16> {
    let mut answer = BufReader::new(stream.take(HEAD_LIMIT));
    loop {
        let status = status_of(&line(&mut answer).await?)?;
        if !(100..200).contains(&status) {
            return Ok(status);
        }
        while !line(&mut answer).await?.is_empty() {}
    }
}

async fn line(answer: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    if answer.read_until(b'\n', &mut line).await? == 0 {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "it was closed before an answer"));
    }
    Ok(line.trim_ascii_end().to_vec())
}

fn status_of(line: &[u8]) -> io::Result<u16> {
    let mut words = line.split(|byte| *byte == b' ');
    let version = words.next().is_some_and(|version| version.starts_with(b"HTTP/1."));
    let digits = words.next().filter(|digits| version && digits.len() == 3);
    let status = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    status.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the answer is not HTTP"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_goes_to_the_host_that_was_judged_with_its_own_path() {
        let target = |written: &str| {
            let url = Url::parse(written).expect("an address");
            Target::of(&url, written).map(|target| format!("{} {} {}", target.host, target.port, target.path))
        };
        for (written, sent) in [
            ("HTTP://Localhost:80?a=1#b", Some("localhost 80 /?a=1")),
            ("http://127.1:9", Some("127.0.0.1 9 /")),
            ("http://[::1]:8080/a//b", Some("[::1] 8080 /a//b")),
            ("http://127.0.0.1/@hooks.example/", Some("127.0.0.1 80 /@hooks.example/")),
            ("http://127.0.0.1\\@hooks.example/", Some("127.0.0.1 80 /\\@hooks.example/")),
            ("http://127.0.0.1/\u{43f}", Some("127.0.0.1 80 /\u{43f}")),
            ("http://user:word@127.0.0.1/", None),
            ("http://127.0.0.1/a b", None),
            ("http://127.0.0.1/a\r\nX: y", None),
            ("https://127.0.0.1/", None),
        ] {
            assert_eq!(target(written).as_deref(), sent, "{written}");
        }
    }

    #[test]
    fn only_http_has_a_status() {
        for (line, status) in [
            ("HTTP/1.1 200 OK", Some(200)),
            ("HTTP/1.0 404", Some(404)),
            ("HTTP/1.1 20 OK", None),
            ("HTTP/2 200", None),
            ("SSH-2.0-x 200", None),
            ("", None),
        ] {
            assert_eq!(status_of(line.as_bytes()).ok(), status, "{line}");
        }
    }
}
