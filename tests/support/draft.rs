//! A campaign as it is put together: `campaign().to(7).through(&gateway).batches_of(5).write()`.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

use super::folder::Folder;
use super::{Gateway, KEY_VARIABLE, phone};

/// Something that a profile can point to.
pub(crate) trait Reachable {
    /// The address of its synchronous endpoint.
    fn base_url(&self) -> String;
    /// The address of its asynchronous endpoint.
    fn async_url(&self) -> String;
}

/// A campaign that is not written down yet.
pub(crate) struct Draft {
    list: String,
    channels: String,
    top: String,
    recipients: String,
    delivery: String,
    profile: Option<String>,
}

/// One SMS to three people, through the built-in sandbox, as fast as it goes.
pub(crate) fn campaign() -> Draft {
    let sms = "  - sms: { signature: OlenaCo, message: \"Hello, {{ name }}\" }";
    Draft {
        list: people(2..5),
        channels: sms.to_owned(),
        top: String::new(),
        recipients: String::new(),
        delivery: "  rate: 100000/s\n".to_owned(),
        profile: None,
    }
}

/// The addresses that [`nobody`] has given so far.
static GIVEN: AtomicU16 = AtomicU16::new(1);

/// An address on loopback where nobody listens.
///
/// On Linux each has its own host within 127.0.0.0/8, so that no server of another test gets its port meanwhile.
pub(crate) fn nobody() -> String {
    let host = match cfg!(target_os = "linux") {
        true => {
            let [high, low] = GIVEN.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            Ipv4Addr::new(127, 77, high, low)
        }
        false => Ipv4Addr::LOCALHOST,
    };
    let listener = TcpListener::bind((host, 0)).expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// A campaign to three people through a gateway on the internet that cannot be reached.
pub(crate) fn live() -> Folder {
    let gateway = Gateway::accepting();
    let draft = campaign().delivery("rate: 100/s").delivery("stop_after: { unreachable: 1s }").through(&gateway);
    let sale =
        draft.profile("rate: 100/s").profile("prices: { sms: 0.80 }").profile(&format!("proxy: {}", nobody())).write();
    sale.replace("gateways.yaml", &gateway.base_url(), "https://gateway.invalid");
    sale
}

/// The lines of a list for these rows, under their header.
fn people(rows: std::ops::Range<usize>) -> String {
    let mut list = "phone,name\n".to_owned();
    for row in rows {
        writeln!(list, "{},Person {row}", phone(row)).expect("a string");
    }
    list
}

impl Draft {
    /// To so many people.
    pub(crate) fn to(self, number: usize) -> Self {
        self.with_list(&people(2..number + 2))
    }

    /// To the people of this CSV.
    pub(crate) fn with_list(mut self, list: &str) -> Self {
        list.clone_into(&mut self.list);
        self
    }

    /// Through this gateway, by the profile `local`.
    pub(crate) fn through(mut self, gateway: &impl Reachable) -> Self {
        let (base, asynchronous) = (gateway.base_url(), gateway.async_url());
        let key = format!("  api_key: {{ env: {KEY_VARIABLE} }}");
        self.profile = Some(format!("local:\n  base_url: {base}\n  async_url: {asynchronous}\n{key}\n"));
        self.top("gateway: local")
    }

    /// With another key in the profile, such as `trust_status: [429]`.
    pub(crate) fn profile(mut self, line: &str) -> Self {
        let profile = self.profile.as_mut().expect("a gateway first");
        writeln!(profile, "  {line}").expect("a string");
        self
    }

    /// On the asynchronous endpoint.
    pub(crate) fn asynchronous(self) -> Self {
        self.top("endpoint: async")
    }

    /// With these channels, as the lines under `channels:`.
    pub(crate) fn channels(mut self, lines: &str) -> Self {
        lines.clone_into(&mut self.channels);
        self
    }

    /// With envelopes of so many operations.
    pub(crate) fn batches_of(self, operations: usize) -> Self {
        self.delivery(&format!("batch: {operations}"))
    }

    /// With one envelope at a time.
    pub(crate) fn one_at_a_time(self) -> Self {
        self.delivery("in_flight: 1")
    }

    /// With this line under `delivery:`, in the place of one with the same key.
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

    /// With another key under `recipients:`.
    pub(crate) fn recipients(mut self, line: &str) -> Self {
        writeln!(self.recipients, "  {line}").expect("a string");
        self
    }

    /// With another key at the top of the file.
    pub(crate) fn top(mut self, line: &str) -> Self {
        writeln!(self.top, "{line}").expect("a string");
        self
    }

    /// The campaign file.
    fn text(&self) -> String {
        let Self { channels, top, recipients, delivery, .. } = self;
        format!(
            "name: sale\n{top}recipients:\n  file: sale.csv\n{recipients}channels:\n{channels}\ndelivery:\n{delivery}"
        )
    }

    /// Writes it into a folder of its own.
    pub(crate) fn write(self) -> Folder {
        let folder = Folder::new(self.profile.is_some());
        self.rewrite(&folder);
        folder
    }

    /// Writes it over the one in `folder`.
    pub(crate) fn rewrite(self, folder: &Folder) {
        let write = |name: &str, text: &str| fs::write(folder.path(name), text).expect("a file");
        write("sale.yaml", &self.text());
        write("sale.csv", &self.list);
        if let Some(profile) = &self.profile {
            write("gateways.yaml", profile);
        }
    }
}
