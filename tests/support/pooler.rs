//! A PgBouncer in front of a server, in transaction mode: each transaction may go to another connection of the server.

use std::io::Write as _;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::cluster::{Cluster, as_user, is_root, quietly};

/// Where Debian's package puts it.
const PROGRAM: &str = "/usr/sbin/pgbouncer";
/// Its port, which is part of the name of its socket.
const PORT: u16 = 6432;
/// How long it may take to start.
const STARTING: Duration = Duration::from_secs(30);

/// A pooler that ends with this.
pub(crate) struct Pooler {
    folder: TempDir,
    process: Child,
}

impl Pooler {
    /// Starts one in front of a server; nothing where none is installed, which is said.
    pub(crate) fn start(cluster: &Cluster) -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            assert!(std::env::var_os("CAMPAIGN_NEEDS_POSTGRES").is_none(), "there is no PgBouncer here");
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
            let given = std::process::Command::new("chown").args(["-R", "postgres"]).arg(folder.path()).status();
            assert!(given.is_ok_and(|status| status.success()));
        }
        let process = Self::serve(folder.path());
        let pooler = Self { folder, process };
        pooler.is_there();
        Some(pooler)
    }

    fn serve(folder: &Path) -> Child {
        let mut command = as_user(Path::new(PROGRAM));
        quietly(command.arg(folder.join("pgbouncer.ini")).current_dir(folder)).spawn().expect("a pooler")
    }

    fn is_there(&self) {
        let (socket, since) = (self.folder.path().join(format!(".s.PGSQL.{PORT}")), Instant::now());
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(since.elapsed() < STARTING, "the pooler does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Ends it, with all connections through it, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.process = Self::serve(self.folder.path());
        self.is_there();
    }

    /// The address of a database of the server, through it.
    pub(crate) fn address(&self, database: &str) -> String {
        let name = database.rsplit('/').next().expect("a name");
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://story@{folder}:{PORT}/{name}")
    }

    fn end(&mut self) {
        // `runuser` hands on what ends a process, but not what kills it.
        let _ = std::process::Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.end();
    }
}
