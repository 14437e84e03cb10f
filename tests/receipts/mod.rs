//! Delivery receipts by webhook and inquiry: endpoint, status changes, replies, delivery times and `status --watch`.

mod chains;
mod faulty_webhooks;
#[cfg(target_os = "linux")]
mod figures;
mod hook_test;
mod status_changes;
mod upgraded;
mod uses_of_receipts;
mod watched;
mod webhook_endpoint;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::support::{Draft, Folder, Gateway, Results, Server, unreachable_url};

/// A campaign whose gateway profile has a webhook endpoint.
pub(crate) struct Hooked {
    pub(crate) sale: Folder,
    /// Host and port of the webhook endpoint.
    pub(crate) address: String,
}

impl Hooked {
    /// Writes a campaign with a webhook endpoint on a free port.
    pub(crate) fn write(draft: Draft) -> Self {
        let address = unreachable_url().trim_start_matches("http://").to_owned();
        let hook = format!("hook: {{ public_url: http://{address}, secret: {{ file: hook.secret }} }}");
        let sale = draft.profile(&hook).write();
        write_secret(&sale, "hook.secret", 's');
        Self { sale, address }
    }

    /// Starts the server with the webhook endpoint.
    pub(crate) fn serve(&self) -> Server {
        Server::start(&self.sale, &["--hooks", &self.address])
    }

    /// Exports the results and reads them.
    pub(crate) fn results(&self) -> Results {
        self.sale.campaign(&["results", "sale"]);
        self.sale.results()
    }

    /// Sends a webhook for an operation; returns the HTTP status.
    pub(crate) fn post(&self, operation: &Value, body: &str) -> u16 {
        post(&self.address, webhook_path(operation), body)
    }
}

/// Writes a secret that only its owner can read.
pub(crate) fn write_secret(sale: &Folder, name: &str, letter: char) {
    sale.write_secret(name, &letter.to_string().repeat(40));
}

/// The path of the webhook URL in an operation.
pub(crate) fn webhook_path(operation: &Value) -> &str {
    let url = operation["hook"].as_str().unwrap_or_else(|| panic!("no `hook`: {operation}"));
    url.trim_start_matches("http://")
        .split_once('/')
        .map(|(host, _)| &url["http://".len() + host.len()..])
        .expect("a path")
}

/// The operations that a gateway received, in order of arrival.
pub(crate) fn operations(gateway: &Gateway) -> Vec<Value> {
    gateway.sends().iter().flat_map(crate::support::Request::operations).collect()
}

/// Posts a body; returns the HTTP status.
pub(crate) fn post(address: &str, path: &str, body: &str) -> u16 {
    post_with_header(address, path, "Accept: */*", body)
}

/// Posts a body with an additional header; returns the HTTP status.
fn post_with_header(address: &str, path: &str, header: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{header}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    // The server can close the connection before it reads a forged body.
    let _ = stream.write_all(body.as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer}"))
}
