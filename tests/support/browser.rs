//! A browser without a screen: it keeps the cookie of the pages, sends what forms carry, and follows what is live.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use super::html::Html;
use super::server::Server;
use super::wait::PATIENCE;

/// A browser at the door of a server.
pub(crate) struct Browser {
    address: String,
    cookie: Option<String>,
}

/// An answer with its head.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answered {
    /// A header; "" where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }

    /// The page, which keeps to what all of ours keep to.
    #[track_caller]
    pub(crate) fn page(&self) -> Html {
        Html::sound(&self.body)
    }
}

impl Browser {
    /// One that was never let in.
    pub(crate) fn stranger(server: &Server) -> Self {
        Self { address: server.address(), cookie: None }
    }

    /// One that came by the link of this address.
    #[track_caller]
    pub(crate) fn by(server: &Server, link: &str) -> Self {
        let mut browser = Self::stranger(server);
        let answered = browser.get(path_of(link));
        assert_eq!(answered.status, 200, "{}", answered.body);
        browser.cookie = answered.header("set-cookie").split(';').next().map(str::to_owned);
        browser
    }

    /// One that came by the link that the server told when it began.
    #[track_caller]
    pub(crate) fn first(server: &Server) -> Self {
        Self::by(server, server.listening()["url"].as_str().expect("an address"))
    }

    /// The same session at another server.
    pub(crate) fn at(&self, server: &Server) -> Self {
        Self { address: server.address(), cookie: self.cookie.clone() }
    }

    /// What comes for `GET` of a path.
    pub(crate) fn get(&self, path: &str) -> Answered {
        self.ask("GET", path, &[], "")
    }

    /// The page of a path.
    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> Html {
        let answered = self.get(path);
        assert_eq!(answered.status, 200, "{path}: {}", answered.body);
        answered.page()
    }

    /// What the forms of this session carry.
    #[track_caller]
    pub(crate) fn mark(&self) -> String {
        let page = self.page("/");
        let marks = page.all("input").into_iter().filter(|input| input.attribute("name") == "form");
        marks.map(|input| input.attribute("value").to_owned()).next().expect("a form")
    }

    /// Sends a form of a page with these fields.
    #[track_caller]
    pub(crate) fn send(&self, path: &str, fields: &[(&str, &str)]) -> Answered {
        let mark = self.mark();
        let origin = format!("http://{}", self.address);
        self.post(path, &[("Origin", &origin)], &[fields, &[("form", mark.as_str())]].concat())
    }

    /// Posts these fields with these headers, and nothing of a form's own.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> Answered {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.ask("POST", path, &[headers, &[kind]].concat(), &body)
    }

    /// What comes for any request; a `Host` among the headers takes the place of the address.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answered {
        let mut stream = self.asked(method, path, headers, body);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Answered { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn asked(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        let mut request =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if let Some(cookie) = &self.cookie {
            request += &format!("Cookie: other=1; {cookie}\r\n");
        }
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).expect("sent");
        stream
    }

    /// Follows a live page; `last` is the identifier of what it has.
    pub(crate) fn follow(&self, path: &str, last: Option<&str>) -> Live {
        let headers: Vec<(&str, &str)> = last.iter().map(|last| ("Last-Event-ID", *last)).collect();
        let mut reader = BufReader::new(self.asked("GET", path, &headers, ""));
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert!(reader.read_line(&mut line).expect("a head") > 0, "no stream at {path}");
        }
        Live { reader, text: String::new() }
    }
}

/// The path of an address.
fn path_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// A live page.
pub(crate) struct Live {
    reader: BufReader<TcpStream>,
    text: String,
}

/// Something that a live page was told.
#[derive(Debug)]
pub(crate) struct LiveEvent {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl LiveEvent {
    /// The HTML of a part that was told; "" where it was not.
    pub(crate) fn part(&self, name: &str) -> String {
        let parts: Value = serde_json::from_str(&self.data).expect("parts");
        parts[name].as_str().unwrap_or_default().to_owned()
    }
}

impl Iterator for Live {
    type Item = LiveEvent;

    /// The next event, pings aside; nothing at the end.
    fn next(&mut self) -> Option<LiveEvent> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = event.lines().filter_map(|line| line.split_once(": "));
                    lines.into_iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value).to_owned()
                };
                let told = LiveEvent { kind: field("event"), id: field("id"), data: field("data") };
                self.text = rest.to_owned();
                if !told.kind.is_empty() {
                    return Some(told);
                }
            }
            let chunk = self.chunk()?;
            self.text += &chunk;
        }
    }
}

impl Live {
    /// The next chunk of the body; nothing at the end.
    fn chunk(&mut self) -> Option<String> {
        let mut size = String::new();
        self.reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        String::from_utf8(chunk[..size].to_vec()).ok()
    }
}
