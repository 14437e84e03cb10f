//! A campaign whose messages have addresses for webhooks, in a folder that goes away.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::gateway;
use crate::list;
use crate::process::{Figures, measure};

/// Messages that are told about in no order, as phones answer when they do.
const SCATTER: usize = 4_096;
const HOOK: &[u8] = b"\"hook\":\"http://";

/// A campaign, its ledger, and the paths that its messages have at the receipts' door.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    rows: u64,
    /// Where receipts come to.
    pub(crate) door: SocketAddr,
    paths: Arc<Mutex<Vec<Box<str>>>>,
}

impl Scene {
    /// A campaign to so many recipients, at so many messages a second if it is to be slow.
    pub(crate) fn new(rows: u64, rate: Option<u64>) -> Self {
        let folder = tempfile::tempdir().expect("there is room for a temporary folder");
        let door = free_port();
        let paths: Arc<Mutex<Vec<Box<str>>>> = Arc::default();
        let noted = Arc::clone(&paths);
        let server = gateway::start(Arc::new(move |body: &[u8]| {
            noted.lock().expect("nobody panics with it").extend(hooks(body));
        }));
        let rate = rate.map_or("unlimited".to_owned(), |rate| format!("{rate}/s"));
        let at = |name: &str| folder.path().join(name);
        let write = |name: &str, text: String| fs::write(at(name), text).expect("there is room");
        write(
            "bench.yaml",
            format!(
                "name: bench\ngateway: bench\nrecipients: {{ file: bench.csv }}\nchannels:\n  - sms: {{ signature: OlenaCo, message: \"Hello {{{{ first_name }}}}\" }}\ndelivery: {{ rate: {rate}, batch: 100, in_flight: 16 }}\n"
            ),
        );
        write(
            "gateways.yaml",
            format!(
                "bench:\n  base_url: http://{server}\n  async_url: http://{server}\n  api_key: {{ env: BENCH_KEY }}\n  rate: unlimited\n  hook: {{ public_url: \"http://{door}\", secret: {{ file: hook.secret }} }}\n"
            ),
        );
        write("hook.secret", "s".repeat(40));
        fs::set_permissions(at("hook.secret"), fs::Permissions::from_mode(0o600)).expect("a mode");
        list::write(&at("bench.csv"), rows).expect("the list is written");
        Self { folder, rows, door, paths }
    }

    /// The program, told where everything is.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_campaign"));
        command.current_dir(self.folder.path()).env("BENCH_KEY", "key").args(arguments).args(["--state-dir", "state"]);
        command
    }

    /// Sends the campaign.
    pub(crate) fn send(&self) -> Figures {
        measure(self.command(&["run", "bench.yaml", "--json"]), self.rows)
    }

    /// The paths of the addresses of all messages, from the first sent to the last, but mixed among neighbours.
    pub(crate) fn paths(&self) -> Vec<Box<str>> {
        let mut paths = std::mem::take(&mut *self.paths.lock().expect("nobody panics with it"));
        assert_eq!(paths.len() as u64, self.rows, "every message has an address");
        paths.chunks_mut(SCATTER).for_each(scatter);
        paths
    }

    /// Our identifiers of the messages whose results are in this state.
    pub(crate) fn ids_in(&self, state: &str) -> Vec<u64> {
        let out = self.path("of-state.csv");
        let name = out.display().to_string();
        measure(self.command(&["results", "bench", "--state", state, "--out", &name]), self.rows);
        let mut results = csv::Reader::from_path(out).expect("there are results");
        let id = results.headers().expect("a head").iter().position(|name| name == "id").expect("identifiers");
        results.records().map(|row| row.expect("a row")[id].parse().expect("a number")).collect()
    }

    /// A file or folder of it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the ledger takes on the disk, in bytes.
    pub(crate) fn ledger_bytes(&self) -> u64 {
        let size = |name: &str| fs::metadata(self.path("state").join(name)).map_or(0, |file| file.len());
        size("ledger.sqlite") + size("ledger.sqlite-wal")
    }
}

/// The identifier in the path of a message's address.
pub(crate) fn id_of(path: &str) -> &str {
    path.rsplit('/').nth(1).expect("/h/RUN/ID/MAC")
}

/// The paths of the hooks in the body of a request.
fn hooks(body: &[u8]) -> Vec<Box<str>> {
    let mut found = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(HOOK.len()).position(|window| window == HOOK) {
        rest = &rest[at + HOOK.len()..];
        let end = rest.iter().position(|byte| *byte == b'"').expect("JSON");
        let address = std::str::from_utf8(&rest[..end]).expect("an address");
        found.push(address[address.find('/').expect("a path")..].into());
    }
    found
}

fn free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port is free");
    listener.local_addr().expect("a listener has an address")
}

/// Mixes the paths of a stretch, the same way each time.
fn scatter(paths: &mut [Box<str>]) {
    for index in 0..paths.len() {
        paths.swap(index, index * 2_731 % paths.len());
    }
}
