//! A temporary PostgreSQL server and its CPU time.

use std::fs;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::process::read_cpu;

/// A PostgreSQL server, which is stopped on drop.
pub(crate) struct Database(Cluster);

impl Database {
    /// Starts a server with durable commits. If PostgreSQL is not installed, prints a message and returns `None`.
    pub(crate) fn start() -> Option<Self> {
        let settings = ["fsync=on", "full_page_writes=on", "max_connections=100", "max_wal_size=4GB"];
        Cluster::start(&settings).map(Self)
    }

    /// Creates a database for a ledger and returns its address.
    pub(crate) fn create_ledger(&self) -> String {
        self.0.create_database()
    }

    /// Executes a statement and returns its result.
    pub(crate) fn query(&self, ledger: &str, statement: &str) -> String {
        self.0.run_sql(ledger, statement)
    }

    /// Removes a ledger.
    pub(crate) fn remove_ledger(&self, ledger: &str) {
        self.0.drop_database(ledger);
    }

    /// User and system CPU time of all server processes so far.
    pub(crate) fn cpu(&self) -> Duration {
        let pid_file = fs::read_to_string(self.0.folder().join("data/postmaster.pid")).expect("the server runs");
        let server = pid_file.lines().next().expect("a process id");
        // The time of the server includes its exited children; the running children are added.
        let cpu = |process: &str, field| read_cpu(&format!("/proc/{process}/stat"), field);
        let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
        cpu(server, 11) + cpu(server, 13) + children.split_whitespace().map(|child| cpu(child, 11)).sum::<Duration>()
    }
}
