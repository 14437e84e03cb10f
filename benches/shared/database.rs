//! A database server of one's own, and what it costs.

use std::fs;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::process::ticks;

/// A server that ends with this.
pub(crate) struct Database(Cluster);

impl Database {
    /// Starts one whose commits survive whatever becomes of it; nothing where none is installed, which is said.
    pub(crate) fn start() -> Option<Self> {
        let settings = ["fsync=on", "full_page_writes=on", "max_connections=100", "max_wal_size=4GB"];
        Cluster::start(&settings).map(Self)
    }

    /// The address of a new ledger.
    pub(crate) fn ledger(&self) -> String {
        self.0.database()
    }

    /// What a statement comes to.
    pub(crate) fn say(&self, ledger: &str, statement: &str) -> String {
        self.0.say(ledger, statement)
    }

    /// Removes a ledger.
    pub(crate) fn remove(&self, ledger: &str) {
        self.0.remove(ledger);
    }

    /// CPU of all of its processes so far, user and system.
    pub(crate) fn cpu(&self) -> Duration {
        let known = fs::read_to_string(self.0.folder().join("data/postmaster.pid")).expect("the server is there");
        let server = known.lines().next().expect("its number");
        // Its own with that of its processes which ended, and of those that are there.
        let of = |process: &str, field| ticks(&format!("/proc/{process}/stat"), field);
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
        of(server, 11) + of(server, 13) + children.split_whitespace().map(|child| of(child, 11)).sum::<Duration>()
    }
}
