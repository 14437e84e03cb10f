//! A temporary PostgreSQL server on a Unix socket, which ends together with the test process.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The file that makes the shell remove the server's folder when the server has ended.
const REMOVAL_MARKER: &str = "left";

/// The maximum time that a server takes to start.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A server that ends when this process ends, for any reason.
pub(crate) struct Cluster {
    folder: TempDir,
    bin: PathBuf,
    settings: Vec<String>,
    databases: AtomicU32,
    server: Mutex<Option<Server>>,
    replica: Mutex<Option<Server>>,
    /// Whether the server uses the replica's data.
    failed_over: AtomicBool,
}

/// The shell that runs the server. It stops the server when its standard input is closed.
struct Server {
    shell: Child,
    input: Option<ChildStdin>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.shell.wait();
    }
}

impl Cluster {
    /// The server that all tests of this process share; `None`, with a notice, if no server can be started.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        let start = || {
            let cluster = Self::start(&["fsync=off", "wal_level=minimal", "max_wal_senders=0", "max_connections=400"])?;
            // Statics are never dropped, so the shell removes the folder.
            std::fs::write(cluster.folder.path().join(REMOVAL_MARKER), "").expect("a file");
            Some(cluster)
        };
        SHARED.get_or_init(start).as_ref()
    }

    /// Starts a server with these settings; `None`, with a notice, if no server can be started.
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        let started = Self::try_start(settings);
        if started.is_none() {
            // `.ci/run` installs PostgreSQL and sets the variable.
            assert!(std::env::var_os("CAMPAIGN_NEEDS_POSTGRES").is_none(), "cannot start a PostgreSQL server");
            let _ = writeln!(std::io::stderr(), "skipped: cannot start a PostgreSQL server");
        }
        started
    }

    fn try_start(settings: &[&str]) -> Option<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
        let bin = versions.map(|version| version.path().join("bin")).max()?;
        let folder = tempfile::tempdir().expect("a folder");
        if is_root() {
            // The server refuses to run as root; Debian's package creates the user `postgres`.
            Command::new("chown").arg("postgres").arg(folder.path()).status().ok()?.success().then_some(())?;
        }
        let data = folder.path().join("data");
        let mut command = unprivileged_command(&bin.join("initdb"));
        command.args(["-N", "-A", "trust", "-U", "story", "-E", "UTF8", "--locale=C", "-D"]).arg(&data);
        without_output(command.current_dir(folder.path())).status().ok()?.success().then_some(())?;
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let (databases, server, replica, failed_over) = Default::default();
        let cluster = Self { folder, bin, settings, databases, server, replica, failed_over };
        cluster.start_server().then_some(cluster)
    }

    /// Starts the server; returns whether it accepts connections.
    pub(crate) fn start_server(&self) -> bool {
        let since = Instant::now();
        let mut server = self.server.lock().expect("the server");
        while since.elapsed() < START_TIMEOUT {
            if server.as_mut().is_none_or(|server| server.shell.try_wait().is_ok_and(|ended| ended.is_some())) {
                // Files left by a killed server can briefly prevent a new start.
                *server = serve(&self.bin, self.folder.path(), self.data(), self.folder.path(), &self.settings);
            }
            if self.is_ready() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    fn data(&self) -> &'static str {
        if self.failed_over.load(Ordering::Relaxed) { "replica" } else { "data" }
    }

    /// Starts a replica with all commits so far.
    pub(crate) fn start_replica(&self) {
        let copy = self.folder.path().join("replica");
        let mut command = unprivileged_command(&self.bin.join("pg_basebackup"));
        command
            .args(["-U", "story", "-R", "-X", "stream", "-c", "fast", "-h"])
            .arg(self.folder.path())
            .arg("-D")
            .arg(copy);
        assert!(without_output(command.current_dir(self.folder.path())).status().is_ok_and(|status| status.success()));
        let socket = self.folder.path().join("socket");
        let mut command = unprivileged_command(Path::new("mkdir"));
        assert!(command.arg(&socket).status().is_ok_and(|status| status.success()));
        let replica = serve(&self.bin, self.folder.path(), "replica", &socket, &self.settings);
        *self.replica.lock().expect("the replica") = replica;
        let since = Instant::now();
        while self.replica_count() == 0 {
            assert!(since.elapsed() < START_TIMEOUT, "the replica does not connect");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn replica_count(&self) -> usize {
        self.run_sql("postgres", "SELECT count(*) FROM pg_stat_replication").parse().expect("a number")
    }

    /// Stops the replica, so that it misses later commits.
    pub(crate) fn stop_replica(&self) {
        drop(self.replica.lock().expect("the replica").take());
    }

    /// Kills the server and continues with the replica's data.
    pub(crate) fn fail_over(&self) {
        self.kill();
        self.stop_replica();
        self.failed_over.store(true, Ordering::Relaxed);
        assert!(self.start_server());
        let mut command = unprivileged_command(&self.bin.join("pg_ctl"));
        command.args(["promote", "-w", "-D"]).arg(self.folder.path().join("replica"));
        assert!(without_output(command.current_dir(self.folder.path())).status().is_ok_and(|status| status.success()));
    }

    /// Kills the server and returns to the original data.
    pub(crate) fn fail_back(&self) {
        self.kill();
        self.failed_over.store(false, Ordering::Relaxed);
        assert!(self.start_server());
    }

    /// Shuts the server down at once: connections are cut and open transactions are rolled back.
    pub(crate) fn stop_server(&self) {
        drop(self.server.lock().expect("the server").take());
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&self) {
        let pid_file =
            std::fs::read_to_string(self.folder.path().join(self.data()).join("postmaster.pid")).expect("a server");
        let pid = pid_file.lines().next().expect("its number").to_owned();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().is_ok_and(|status| status.success()));
        self.stop_server();
    }

    /// Copies the data; the server must be down.
    pub(crate) fn copy_data(&self, to: &str) {
        self.copy_folder("data", to);
    }

    /// Restores a copy of the data; the server must be down.
    pub(crate) fn restore_data(&self, from: &str) {
        std::fs::remove_dir_all(self.folder.path().join("data")).expect("no data");
        self.copy_folder(from, "data");
    }

    fn copy_folder(&self, from: &str, to: &str) {
        let (from, to) = (self.folder.path().join(from), self.folder.path().join(to));
        assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().is_ok_and(|status| status.success()));
    }

    /// The folder with the sockets of the server.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Drops a database and closes its connections.
    pub(crate) fn drop_database(&self, database: &str) {
        let name = database.rsplit('/').next().expect("a name");
        let mut command = Command::new(self.bin.join("dropdb"));
        command.args(["-U", "story", "-f", "-h"]).arg(self.folder.path()).arg(name);
        let _ = without_output(&mut command).status();
    }

    /// Runs statements in a database and returns their output.
    pub(crate) fn run_sql(&self, database: &str, statements: &str) -> String {
        let name = database.rsplit('/').next().expect("a name");
        let mut command = Command::new(self.bin.join("psql"));
        command.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-U", "story", "-h"]).arg(self.folder.path());
        let output = command.args(["-d", name, "-c", statements]).stdin(Stdio::null()).output().expect("psql");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").trim_end().to_owned()
    }

    fn is_ready(&self) -> bool {
        let mut command = Command::new(self.bin.join("pg_isready"));
        command.arg("-h").arg(self.folder.path());
        without_output(&mut command).status().is_ok_and(|status| status.success())
    }

    /// Creates a database and returns its address.
    pub(crate) fn create_database(&self) -> String {
        let name = format!("story{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new(self.bin.join("createdb"));
        command.args(["-U", "story", "-S", "file_copy", "-h"]).arg(self.folder.path()).arg(&name);
        assert!(without_output(&mut command).status().is_ok_and(|status| status.success()), "no database");
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://story@{folder}/{name}")
    }
}

/// Starts a server inside a shell that stops it. Its data is the subfolder `data` of `folder`; its socket is in
/// `socket_folder`.
fn serve(bin: &Path, folder: &Path, data: &str, socket_folder: &Path, settings: &[String]) -> Option<Server> {
    let mut command = unprivileged_command(Path::new("sh"));
    let script = "folder=$1; shift; \"$@\" & server=$!; exec 3<&0; (cat <&3 > /dev/null; kill -INT $server) & \
                  wait $server; [ ! -e $folder/left ] || rm -rf $folder";
    command.args(["-c", script, "sh"]).arg(folder).arg(bin.join("postgres")).arg("-D").arg(folder.join(data));
    command.arg("-k").arg(socket_folder).args(["-c", "listen_addresses="]);
    for setting in settings {
        command.args(["-c", setting]);
    }
    let log = std::fs::File::create(folder.join(format!("{data}.log"))).ok()?;
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
    let mut shell = command.spawn().ok()?;
    let input = shell.stdin.take();
    Some(Server { shell, input })
}

/// A command that the server accepts: as the user `postgres` if the tests run as root.
pub(super) fn unprivileged_command(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

pub(super) fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

pub(super) fn without_output(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
