//! Builder of campaigns for the stories: `campaign().to(7).through(&gateway).batches_of(5).write()`.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use super::folder::Folder;
use super::{Gateway, KEY_VARIABLE, phone};

/// A gateway that a profile can point to.
pub(crate) trait Reachable {
    /// The URL of the gateway's synchronous endpoint.
    fn base_url(&self) -> String;
    /// The URL of the gateway's asynchronous endpoint.
    fn async_url(&self) -> String;
}

/// A campaign that has not yet been written to a folder.
pub(crate) struct Draft {
    list: String,
    channels: String,
    top: String,
    recipients: String,
    delivery: String,
    profile: Option<String>,
}

/// One SMS to three recipients through the built-in sandbox, without a noticeable rate limit.
pub(crate) fn campaign() -> Draft {
    let sms = "  - sms: { signature: OlenaCo, message: \"Hello, {{ name }}\" }";
    Draft {
        list: list_of_rows(2..5),
        channels: sms.to_owned(),
        top: String::new(),
        recipients: String::new(),
        delivery: "  rate: 100000/s\n".to_owned(),
        profile: None,
    }
}

/// The number of the next host that [`unreachable_url`] returns.
static NEXT_HOST: AtomicU16 = AtomicU16::new(1);

/// The URL of a loopback port without a listener.
///
/// On Linux each URL has its own host in 127.0.0.0/8, so that no server of another test gets the same port.
pub(crate) fn unreachable_url() -> String {
    let host = match cfg!(target_os = "linux") {
        true => {
            let [high, low] = NEXT_HOST.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            Ipv4Addr::new(127, 77, high, low)
        }
        false => Ipv4Addr::LOCALHOST,
    };
    let listener = TcpListener::bind((host, 0)).expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// A campaign to three recipients through a public gateway that cannot be reached.
pub(crate) fn live() -> Folder {
    let gateway = Gateway::accepting();
    let draft = campaign().delivery("rate: 100/s").delivery("stop_after: { unreachable: 1s }").through(&gateway);
    let sale = draft
        .profile("rate: 100/s")
        .profile("prices: { sms: 0.80 }")
        .profile(&format!("proxy: {}", unreachable_url()))
        .write();
    sale.replace("gateways.yaml", &gateway.base_url(), "https://gateway.invalid");
    sale
}

/// A CSV list of these rows, with a header.
fn list_of_rows(rows: std::ops::Range<usize>) -> String {
    let mut list = "phone,name\n".to_owned();
    for row in rows {
        writeln!(list, "{},Person {row}", phone(row)).expect("a string");
    }
    list
}

impl Draft {
    /// Sends to this number of recipients.
    pub(crate) fn to(self, number: usize) -> Self {
        self.with_list(&list_of_rows(2..number + 2))
    }

    /// Uses this CSV as the list.
    pub(crate) fn with_list(mut self, list: &str) -> Self {
        list.clone_into(&mut self.list);
        self
    }

    /// Sends through this gateway, with the profile `local`.
    pub(crate) fn through(mut self, gateway: &impl Reachable) -> Self {
        let (base, asynchronous) = (gateway.base_url(), gateway.async_url());
        let key = format!("  api_key: {{ env: {KEY_VARIABLE} }}");
        self.profile = Some(format!("local:\n  base_url: {base}\n  async_url: {asynchronous}\n{key}\n"));
        self.top("gateway: local")
    }

    /// Adds a key to the profile, such as `trust_status: [429]`.
    pub(crate) fn profile(mut self, line: &str) -> Self {
        let profile = self.profile.as_mut().expect("a gateway first");
        writeln!(profile, "  {line}").expect("a string");
        self
    }

    /// Uses the asynchronous endpoint.
    pub(crate) fn asynchronous(self) -> Self {
        self.top("endpoint: async")
    }

    /// Sets the lines under `channels:`.
    pub(crate) fn channels(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.channels);
        self
    }

    /// Sends this number of operations per envelope.
    pub(crate) fn batches_of(self, operations: usize) -> Self {
        self.delivery(&format!("batch: {operations}"))
    }

    /// Sends one envelope at a time.
    pub(crate) fn one_at_a_time(self) -> Self {
        self.delivery("in_flight: 1")
    }

    /// Sets a line under `delivery:` and removes the earlier line with the same key.
    pub(crate) fn delivery(mut self, line: &str) -> Self {
        let key = line.split_inclusive(':').next().expect("a key");
        self.delivery = self
            .delivery
            .lines()
            .filter(|old| !old.trim().starts_with(key))
            .fold(String::new(), |lines, old| lines + old + "\n");
        writeln!(self.delivery, "  {line}").expect("a string");
        self
    }

    /// Adds a key under `recipients:`.
    pub(crate) fn recipients(mut self, line: &str) -> Self {
        writeln!(self.recipients, "  {line}").expect("a string");
        self
    }

    /// Adds a top-level key.
    pub(crate) fn top(mut self, line: &str) -> Self {
        writeln!(self.top, "{line}").expect("a string");
        self
    }

    /// The text of the campaign file.
    fn text(&self) -> String {
        let Self { channels, top, recipients, delivery, .. } = self;
        format!(
            "name: sale\n{top}recipients:\n  file: sale.csv\n{recipients}channels:\n{channels}\ndelivery:\n{delivery}"
        )
    }

    /// Writes the campaign into a new folder.
    pub(crate) fn write(self) -> Folder {
        let folder = Folder::new(self.profile.is_some());
        self.rewrite(&folder);
        folder
    }

    /// Replaces the campaign in `folder`.
    pub(crate) fn rewrite(self, folder: &Folder) {
        let write = |name: &str, text: &str| fs::write(folder.path(name), text).expect("a file");
        write("sale.yaml", &self.text());
        write("sale.csv", &self.list);
        if let Some(profile) = &self.profile {
            write("gateways.yaml", profile);
        }
    }
}
