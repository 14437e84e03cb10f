//! A list from an address.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use super::{fetched, kept};
use crate::support::{Folder, Gateway, Process, campaign, nobody, phone};

/// A server that answers every request with this, and keeps their heads.
struct Web {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Web {
    fn answering(answer: impl Into<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let (heads, answer) = (Arc::new(Mutex::new(Vec::new())), answer.into());
        let kept = Arc::clone(&heads);
        // It ends with the tests: nobody has to wait for it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let lines = BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty());
                kept.lock().expect("the heads").push(lines.collect::<Vec<_>>().join("\n"));
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Self { address, heads }
    }

    fn giving(list: &str) -> Self {
        Self::answering(format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{list}", list.len()))
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("the heads").clone()
    }
}

const LIST: &str = "phone,name\n380501000002,Ann\n380501000003,Bob\n";

fn run(sale: &Folder) -> crate::support::Finished {
    let mut command = sale.command(&["run", "sale.yaml"]);
    command.env("CRM_TOKEN", "Bearer s3cret");
    Process::start(command).finish()
}

/// The campaign with the list at this address, asked with a secret.
fn at(address: &str, gateway: &Gateway) -> Folder {
    let source = format!(
        "url: {address}/people.csv?token=hidden\nheaders: {{ Authorization: {{ env: CRM_TOKEN }}, Accept: text/csv }}"
    );
    fetched(campaign().through(gateway), &source)
}

#[test]
fn a_list_is_fetched_once_with_its_headers_and_sent_to() {
    let (gateway, web) = (Gateway::accepting(), Web::giving(LIST));
    let sale = at(&web.address, &gateway);
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("/people.csv").says("--fetch");
    assert_eq!(web.heads().len(), 0);
    let told = run(&sale).exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3)]);
    let head = web.heads().concat().to_lowercase();
    assert!(head.contains("get /people.csv?token=hidden") && head.contains("authorization: bearer s3cret"), "{head}");
    assert_eq!(web.heads().len(), 1);
    assert!(!format!("{}{}", told.stdout, told.stderr).contains("hidden"), "{}", told.told());
    assert_eq!(kept(&sale), 0);
}

#[test]
fn what_is_no_whole_list_is_told_and_not_sent_to() {
    let gateway = Gateway::accepting();
    for (answer, words) in [
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".to_owned(), "status 403"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nphone,name\n380501000002,Ann\n".to_owned(), "broke"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(), "not even a header"),
    ] {
        let told = run(&at(&Web::answering(answer).address, &gateway)).exits(2).says(words).says("sale.yaml:4");
        assert!(!format!("{}{}", told.stdout, told.stderr).contains("s3cret"), "{}", told.told());
    }
    run(&at(&nobody(), &gateway)).exits(2).says("no connection");
    assert_eq!(gateway.phones(), Vec::<u64>::new());
}

#[test]
fn the_headers_go_to_no_other_host() {
    let (gateway, other) = (Gateway::accepting(), Web::giving(LIST));
    let moved = format!("HTTP/1.1 302 Found\r\nLocation: {}/people.csv\r\nContent-Length: 0\r\n\r\n", other.address);
    run(&at(&Web::answering(moved).address, &gateway)).exits(2).says("another host");
    assert_eq!(other.heads().len(), 0);
}
