//! PgBouncer in transaction mode: consecutive transactions can use different server connections.

use std::io::Write as _;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::cluster::{Cluster, is_root, unprivileged_command, without_output};

/// The path that Debian's package installs.
const PROGRAM: &str = "/usr/sbin/pgbouncer";
/// The port, which is part of the socket's name.
const PORT: u16 = 6432;
/// The maximum time that the pooler takes to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running pooler; stopped on drop.
pub(crate) struct Pooler {
    folder: TempDir,
    process: Child,
}

impl Pooler {
    /// Starts a pooler for this server; `None`, with a notice, if PgBouncer is not installed.
    pub(crate) fn start(cluster: &Cluster) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            assert!(std::env::var_os("CAMPAIGN_NEEDS_POSTGRES").is_none(), "PgBouncer is not installed");
            let _ = writeln!(std::io::stderr(), "skipped: this needs PgBouncer");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (own, server) = (folder.path().display(), cluster.folder().display());
        let settings = format!(
            "[databases]\n* = host={server} user=story\n[pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\n\
             unix_socket_dir = {own}\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 2\n"
        );
        std::fs::write(folder.path().join("pgbouncer.ini"), settings).expect("its settings");
        if is_root() {
            let chown = std::process::Command::new("chown").args(["-R", "postgres"]).arg(folder.path()).status();
            assert!(chown.is_ok_and(|status| status.success()));
        }
        let process = Self::serve(folder.path());
        let pooler = Self { folder, process };
        pooler.wait_until_ready();
        Some(pooler)
    }

    fn serve(folder: &Path) -> Child {
        let mut command = unprivileged_command(Path::new(PROGRAM));
        without_output(command.arg(folder.join("pgbouncer.ini")).current_dir(folder)).spawn().expect("a pooler")
    }

    fn wait_until_ready(&self) {
        let (socket, since) = (self.folder.path().join(format!(".s.PGSQL.{PORT}")), Instant::now());
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(since.elapsed() < START_TIMEOUT, "the pooler does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Restarts the pooler, which closes all connections through it.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.process = Self::serve(self.folder.path());
        self.wait_until_ready();
    }

    /// The address of a database through the pooler.
    pub(crate) fn address(&self, database: &str) -> String {
        let name = database.rsplit('/').next().expect("a name");
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://story@{folder}:{PORT}/{name}")
    }

    fn end(&mut self) {
        // `runuser` forwards SIGTERM, but cannot forward SIGKILL.
        let _ = std::process::Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.end();
    }
}
