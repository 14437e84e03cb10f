//! A temporary folder with a campaign whose messages have webhook URLs.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use crate::gateway;
use crate::list;
use crate::process::{Figures, measure};

/// Receipts are shuffled within blocks of this size, because phones do not answer in order.
const SHUFFLE_BLOCK: usize = 4_096;
/// The start of a webhook URL in a request.
const HOOK: &[u8] = b"\"hook\":\"http://";

/// A campaign, its ledger, and the webhook paths of its messages.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
    rows: u64,
    /// The webhook endpoint.
    pub(crate) endpoint: SocketAddr,
    paths: Arc<Mutex<Vec<Box<str>>>>,
}

impl Scene {
    /// Creates a campaign to `rows` recipients, optionally with a rate limit in messages per second.
    pub(crate) fn new(rows: u64, rate: Option<u64>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let endpoint = find_free_port();
        let paths: Arc<Mutex<Vec<Box<str>>>> = Arc::default();
        let recorder = Arc::clone(&paths);
        let server = gateway::start(Arc::new(move |body: &[u8]| {
            recorder.lock().expect("no panic while it is locked").extend(find_hook_paths(body));
        }));
        let rate = rate.map_or("unlimited".to_owned(), |rate| format!("{rate}/s"));
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: String| fs::write(path(name), text).expect("the file is written");
        write(
            "bench.yaml",
            format!(
                "name: bench\ngateway: bench\nrecipients: {{ file: bench.csv }}\nchannels:\n  - sms: {{ signature: OlenaCo, message: \"Hello {{{{ first_name }}}}\" }}\ndelivery: {{ rate: {rate}, batch: 100, in_flight: 16 }}\n"
            ),
        );
        write(
            "gateways.yaml",
            format!(
                "bench:\n  base_url: http://{server}\n  async_url: http://{server}\n  api_key: {{ env: BENCH_KEY }}\n  rate: unlimited\n  hook: {{ public_url: \"http://{endpoint}\", secret: {{ file: hook.secret }} }}\n"
            ),
        );
        write("hook.secret", "s".repeat(40));
        fs::set_permissions(path("hook.secret"), fs::Permissions::from_mode(0o600)).expect("the permissions");
        list::write(&path("bench.csv"), rows).expect("the list is written");
        Self { folder, rows, endpoint, paths }
    }

    /// A `campaign` command in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_campaign"));
        command.current_dir(self.folder.path()).env("BENCH_KEY", "key").args(arguments).args(["--state-dir", "state"]);
        command
    }

    /// Sends the campaign.
    pub(crate) fn send(&self) -> Figures {
        measure(self.command(&["run", "bench.yaml", "--json"]), self.rows)
    }

    /// Takes the webhook paths of all messages, in sending order but shuffled within blocks.
    pub(crate) fn take_paths(&self) -> Vec<Box<str>> {
        let mut paths = std::mem::take(&mut *self.paths.lock().expect("no panic while it is locked"));
        assert_eq!(paths.len() as u64, self.rows, "every message has a webhook URL");
        paths.chunks_mut(SHUFFLE_BLOCK).for_each(shuffle);
        paths
    }

    /// The `id`s of the messages that the results show in `state`.
    pub(crate) fn ids_in(&self, state: &str) -> Vec<u64> {
        let out = self.path("selected.csv");
        let name = out.display().to_string();
        measure(self.command(&["results", "bench", "--state", state, "--out", &name]), self.rows);
        let mut results = csv::Reader::from_path(out).expect("the results");
        let id = results.headers().expect("a header").iter().position(|name| name == "id").expect("the column `id`");
        results.records().map(|row| row.expect("a row")[id].parse().expect("a number")).collect()
    }

    /// The path of a file or subfolder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The size of the ledger on disk, in bytes.
    pub(crate) fn ledger_bytes(&self) -> u64 {
        let size = |name: &str| fs::metadata(self.path("state").join(name)).map_or(0, |file| file.len());
        size("ledger.sqlite") + size("ledger.sqlite-wal")
    }
}

/// The `id` in the webhook path of a message.
pub(crate) fn message_id(path: &str) -> &str {
    path.rsplit('/').nth(1).expect("/h/RUN/ID/MAC")
}

/// The webhook paths in the body of a request.
fn find_hook_paths(body: &[u8]) -> Vec<Box<str>> {
    let mut paths = Vec::new();
    let mut rest = body;
    while let Some(at) = rest.windows(HOOK.len()).position(|window| window == HOOK) {
        rest = &rest[at + HOOK.len()..];
        let end = rest.iter().position(|byte| *byte == b'"').expect("JSON");
        let address = std::str::from_utf8(&rest[..end]).expect("an address");
        paths.push(address[address.find('/').expect("a path")..].into());
    }
    paths
}

fn find_free_port() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free loopback port");
    listener.local_addr().expect("the address of the listener")
}

/// Shuffles paths in the same way each time.
fn shuffle(paths: &mut [Box<str>]) {
    // A large prime, so that adjacent paths move far apart.
    const STRIDE: usize = 2_731;
    for index in 0..paths.len() {
        paths.swap(index, index * STRIDE % paths.len());
    }
}
