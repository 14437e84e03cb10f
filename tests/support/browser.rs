//! A simple HTTP client in place of a browser, for dashboard pages: session cookie, forms, server-sent events.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use super::html::Html;
use super::server::Server;
use super::wait::PATIENCE;

/// A browser connected to the dashboard of a server.
pub(crate) struct Browser {
    address: String,
    cookie: Option<String>,
}

/// A response: status, head and body.
#[derive(Debug)]
pub(crate) struct BrowserResponse {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl BrowserResponse {
    /// A header; "" if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }

    /// The parsed page, which must meet the requirements of all pages.
    #[track_caller]
    pub(crate) fn page(&self) -> Html {
        Html::sound(&self.body)
    }
}

impl Browser {
    /// A browser without a session.
    pub(crate) fn anonymous(server: &Server) -> Self {
        Self { address: server.address(), cookie: None }
    }

    /// A browser that signed in with this link.
    #[track_caller]
    pub(crate) fn with_link(server: &Server, link: &str) -> Self {
        let mut browser = Self::anonymous(server);
        let response = browser.use_link(path_of(link));
        assert_eq!(response.status, 200, "{}", response.body);
        browser.cookie = response.header("set-cookie").split(';').next().map(str::to_owned);
        browser
    }

    /// Presses the button on the page of a sign-in link.
    pub(crate) fn use_link(&self, path: &str) -> BrowserResponse {
        self.post(path, &[("Origin", &format!("http://{}", self.address))], &[])
    }

    /// A browser that signed in with the link that the server printed at start.
    #[track_caller]
    pub(crate) fn signed_in(server: &Server) -> Self {
        Self::with_link(server, server.listening()["url"].as_str().expect("an address"))
    }

    /// A browser with the same session, connected to another server.
    pub(crate) fn on_server(&self, server: &Server) -> Self {
        Self { address: server.address(), cookie: self.cookie.clone() }
    }

    /// Sends `GET` for a path.
    pub(crate) fn get(&self, path: &str) -> BrowserResponse {
        self.request("GET", path, &[], "")
    }

    /// The parsed page at a path.
    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> Html {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        response.page()
    }

    /// The CSRF token in the forms of this session.
    #[track_caller]
    pub(crate) fn csrf_token(&self) -> String {
        let page = self.page("/");
        let tokens = page.all("input").into_iter().filter(|input| input.attribute("name") == "form");
        tokens.map(|input| input.attribute("value").to_owned()).next().expect("a form")
    }

    /// Submits a form with these fields, the CSRF token and an `Origin` header.
    #[track_caller]
    pub(crate) fn send(&self, path: &str, fields: &[(&str, &str)]) -> BrowserResponse {
        let token = self.csrf_token();
        let origin = format!("http://{}", self.address);
        self.post(path, &[("Origin", &origin)], &[fields, &[("form", token.as_str())]].concat())
    }

    /// Posts only these fields and headers, without a CSRF token.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> BrowserResponse {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.request("POST", path, &[headers, &[kind]].concat(), &body)
    }

    /// Sends a request with this method, these headers and this body; a `Host` in `headers` replaces the default one.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> BrowserResponse {
        let mut stream = self.send_request(method, path, headers, body);
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response");
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        BrowserResponse { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn send_request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
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

    /// Subscribes to the events of a live page; `last` is the ID of the last event received.
    pub(crate) fn follow(&self, path: &str, last: Option<&str>) -> EventStream {
        let headers: Vec<(&str, &str)> = last.iter().map(|last| ("Last-Event-ID", *last)).collect();
        let mut reader = BufReader::new(self.send_request("GET", path, &headers, ""));
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert!(reader.read_line(&mut line).expect("a head") > 0, "no stream at {path}");
        }
        EventStream { reader, text: String::new() }
    }
}

/// The path of a URL.
fn path_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.find('/').map_or("/", |at| &rest[at..])
}

/// The event stream of a live page.
pub(crate) struct EventStream {
    reader: BufReader<TcpStream>,
    text: String,
}

/// An event of a live page.
#[derive(Debug)]
pub(crate) struct StreamEvent {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) data: String,
}

impl StreamEvent {
    /// The HTML of a part of the page; "" if the event does not contain it.
    pub(crate) fn part(&self, name: &str) -> String {
        let parts: Value = serde_json::from_str(&self.data).expect("parts");
        parts[name].as_str().unwrap_or_default().to_owned()
    }
}

impl Iterator for EventStream {
    type Item = StreamEvent;

    /// The next event, without pings; `None` at the end of the stream.
    fn next(&mut self) -> Option<StreamEvent> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let lines = event.lines().filter_map(|line| line.split_once(": "));
                    lines.into_iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value).to_owned()
                };
                let parsed_event = StreamEvent { kind: field("event"), id: field("id"), data: field("data") };
                self.text = rest.to_owned();
                if !parsed_event.kind.is_empty() {
                    return Some(parsed_event);
                }
            }
            let chunk = self.read_chunk()?;
            self.text += &chunk;
        }
    }
}

impl EventStream {
    /// Reads the next chunk of the body; `None` at the end.
    fn read_chunk(&mut self) -> Option<String> {
        let mut size = String::new();
        self.reader.read_line(&mut size).ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
        let mut chunk = vec![0; size + 2];
        self.reader.read_exact(&mut chunk).ok()?;
        String::from_utf8(chunk[..size].to_vec()).ok()
    }
}
