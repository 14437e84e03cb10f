//! Recipient lists that are fetched from a URL.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::{campaign_with_source, count_copies};
use crate::support::{Folder, Gateway, Process, campaign, phone, unreachable_url};

/// A server that gives the same answer to every request and records the request heads.
pub(super) struct WebServer {
    pub(super) address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl WebServer {
    pub(super) fn answering(answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (heads, answer) = (Arc::new(Mutex::new(Vec::new())), answer.into());
        let recorded = Arc::clone(&heads);
        // The thread ends with the test process, so the test does not join it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let lines = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
                recorded.lock().expect("the heads").push(lines.collect::<Vec<_>>().join("\n"));
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Self { address, heads }
    }

    pub(super) fn serving_list(list: &str) -> Self {
        Self::answering(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{list}", list.len()))
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("the heads").clone()
    }
}

pub(super) const LIST: &str = "phone,name\n380501000002,Ann\n380501000003,Bob\n";

pub(super) fn run(sale: &Folder) -> crate::support::Finished {
    let mut command = sale.command(&["run", "sale.yaml"]);
    command.env("CRM_TOKEN", "Bearer s3cret");
    Process::start(command).finish()
}

/// Creates a campaign with the list at this address, requested with a secret header.
pub(super) fn campaign_with_url(address: &str, gateway: &Gateway) -> Folder {
    let source = format!(
        "url: {address}/people.csv?token=hidden\nheaders: {{ Authorization: {{ env: CRM_TOKEN }}, Accept: text/csv }}"
    );
    campaign_with_source(campaign().through(gateway), &source)
}

#[test]
fn list_is_fetched_once_with_its_headers_and_then_sent() {
    let (gateway, web) = (Gateway::accepting(), WebServer::serving_list(LIST));
    let sale = campaign_with_url(&web.address, &gateway);
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("/people.csv").says("--fetch");
    assert_eq!(web.heads().len(), 0);
    let output = run(&sale).exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3)]);
    let head = web.heads().concat().to_lowercase();
    assert!(head.contains("get /people.csv?token=hidden") && head.contains("authorization: bearer s3cret"), "{head}");
    assert_eq!(web.heads().len(), 1);
    assert!(!format!("{}{}", output.stdout, output.stderr).contains("hidden"), "{}", output.details());
    assert_eq!(count_copies(&sale), 0);
}

#[test]
fn incomplete_list_is_reported_and_not_sent() {
    let gateway = Gateway::accepting();
    for (answer, words) in [
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned(), "status 403"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nphone,name\n380501000002,Ann\n".to_owned(), "was lost"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(), "not even a header"),
    ] {
        let sale = campaign_with_url(&WebServer::answering(answer).address, &gateway);
        let output = run(&sale).exits(2).says(words).says("sale.yaml:4");
        assert!(!format!("{}{}", output.stdout, output.stderr).contains("s3cret"), "{}", output.details());
    }
    run(&campaign_with_url(&unreachable_url(), &gateway)).exits(2).says("cannot connect");
    assert_eq!(gateway.phones(), Vec::<u64>::new());
}

/// Builds an answer with this status and these headers, and the list as its body.
fn http_answer(status: &str, headers: &str) -> String {
    let length = LIST.len();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{LIST}")
}

#[test]
fn response_without_the_complete_list_sends_nothing() {
    let gateway = Gateway::accepting();
    let page = |kind: &str, page: &str| {
        let length = page.len();
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{page}")
    };
    for (answer, words) in [
        (http_answer("206 Partial Content", "Content-Range: bytes 0-46/90\r\n"), "only part of the list (status 206)"),
        (http_answer("206 Partial Content", ""), "only part of the list (status 206)"),
        (http_answer("200 OK", "Content-Range: bytes 0-46/90\r\n"), "only part of the list (`Content-Range`)"),
        (http_answer("200 OK", "Content-Type: multipart/byteranges; boundary=x\r\n"), "several parts"),
        (http_answer("200 OK", "Content-Encoding: br\r\n"), "`br` is not supported"),
        (http_answer("200 OK", "Content-Encoding: gzip\r\nContent-Encoding: br\r\n"), "`gzip, br` is not supported"),
        (http_answer("202 Accepted", ""), "not ready (status 202)"),
        (http_answer("203 Non-Authoritative Information", ""), "status 203"),
        (http_answer("226 IM Used", ""), "status 226"),
        (http_answer("304 Not Modified", ""), "has not changed (status 304)"),
        (http_answer("300 Multiple Choices", ""), "unsupported status (300)"),
        (http_answer("302 Found", ""), "unsupported status (302)"),
        ("HTTP/1.1 204 No Content\r\n\r\n".to_owned(), "no content (status 204)"),
        ("HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n".to_owned(), "no content (status 205)"),
        (format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{LIST}"), "no `Content-Length`"),
        (format!("HTTP/1.0 200 OK\r\n\r\n{LIST}"), "no `Content-Length`"),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2d\r\n{LIST}\r\n"), "was lost"),
        (format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{LIST}"), "was lost"),
        (page("text/html; charset=utf-8", "<form action=/login>"), "a web page instead of a list"),
        (page("text/csv", "\n<!DOCTYPE HTML><title>Sign in</title>"), "a web page instead of a list"),
    ] {
        let sale = campaign_with_url(&WebServer::answering(answer).address, &gateway);
        run(&sale).exits(2).says(words).says("sale.yaml:4");
    }
    // Parsing the body detects web pages that are labelled as CSV.
    run(&campaign_with_url(&WebServer::answering(page("text/csv", "<form action=/login>")).address, &gateway))
        .exits(2)
        .says("a web page");
    assert_eq!(gateway.phones(), Vec::<u64>::new());
}

#[test]
fn list_is_accepted_from_every_kind_of_complete_response() {
    for answer in [
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2d\r\n{LIST}\r\n0\r\n\r\n"),
        http_answer("200 OK", "Content-Type: text/html\r\n"),
        http_answer("200 OK", "Content-Encoding: identity\r\n"),
    ] {
        let gateway = Gateway::accepting();
        run(&campaign_with_url(&WebServer::answering(answer).address, &gateway)).exits(0);
        assert_eq!(gateway.phones(), [phone(2), phone(3)]);
    }
}

#[test]
fn headers_that_request_a_partial_list_are_refused_by_check() {
    let gateway = Gateway::accepting();
    let source = "url: https://crm.example/people.csv\nheaders: { Range: bytes=0-99, if-none-match: '\"x\"' }";
    let sale = campaign_with_source(campaign().through(&gateway), source);
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("`Range` requests only part").says("remove `if-none-match`");
}

#[test]
fn headers_are_not_sent_to_another_host() {
    let (gateway, other) = (Gateway::accepting(), WebServer::serving_list(LIST));
    let redirect = format!("HTTP/1.1 302 Found\r\nLocation: {}/people.csv\r\nContent-Length: 0\r\n\r\n", other.address);
    run(&campaign_with_url(&WebServer::answering(redirect).address, &gateway)).exits(2).says("another host");
    assert_eq!(other.heads().len(), 0);
}
