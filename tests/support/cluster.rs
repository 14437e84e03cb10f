//! A PostgreSQL server of one's own: in a temporary folder, on a socket there, for as long as the process that started it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// The file that has the shell remove the folder, too.
const LEFT_TO_THE_SHELL: &str = "left";

/// How long a server may take to start.
const STARTING: Duration = Duration::from_secs(60);

/// A server that ends with this process, however it ends.
pub(crate) struct Cluster {
    folder: TempDir,
    bin: PathBuf,
    settings: Vec<String>,
    databases: AtomicU32,
    server: Mutex<Option<Server>>,
    replica: Mutex<Option<Server>>,
    /// Whether the replica's data are those that are served.
    failed_over: AtomicBool,
}

/// The shell that has the server, and ends with it; it ends it once nobody holds the other end of its input any more.
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
    /// One for all tests of this process; nothing where none is installed, which is said.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Cluster>> = OnceLock::new();
        let start = || {
            let cluster = Self::start(&["fsync=off", "wal_level=minimal", "max_wal_senders=0", "max_connections=400"])?;
            // Nothing of a process is dropped at its end but what holds nothing static.
            std::fs::write(cluster.folder.path().join(LEFT_TO_THE_SHELL), "").expect("a file");
            Some(cluster)
        };
        SHARED.get_or_init(start).as_ref()
    }

    /// Starts one with these settings; nothing where none is installed, which is said.
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        let started = Self::attempt(settings);
        if started.is_none() {
            // `.ci/run` installs one, and has the tests fail where there is none.
            assert!(std::env::var_os("CAMPAIGN_NEEDS_POSTGRES").is_none(), "no PostgreSQL server can be started here");
            let _ = writeln!(std::io::stderr(), "skipped: this needs a PostgreSQL server that can be started here");
        }
        started
    }

    fn attempt(settings: &[&str]) -> Option<Self> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
        let bin = versions.map(|version| version.path().join("bin")).max()?;
        let folder = tempfile::tempdir().expect("a folder");
        if is_root() {
            // The server refuses the superuser, and Debian made it a user of its own.
            Command::new("chown").arg("postgres").arg(folder.path()).status().ok()?.success().then_some(())?;
        }
        let data = folder.path().join("data");
        let mut made = as_user(&bin.join("initdb"));
        made.args(["-N", "-A", "trust", "-U", "story", "-E", "UTF8", "--locale=C", "-D"]).arg(&data);
        quietly(made.current_dir(folder.path())).status().ok()?.success().then_some(())?;
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let (databases, server, replica, failed_over) = Default::default();
        let cluster = Self { folder, bin, settings, databases, server, replica, failed_over };
        cluster.begin().then_some(cluster)
    }

    /// Starts the server again; tells whether it is there.
    pub(crate) fn begin(&self) -> bool {
        let since = Instant::now();
        let mut server = self.server.lock().expect("the server");
        while since.elapsed() < STARTING {
            if server.as_mut().is_none_or(|server| server.shell.try_wait().is_ok_and(|ended| ended.is_some())) {
                // What one that was killed left behind can be in the way for a moment.
                *server = serve((&self.bin, self.folder.path()), (self.data(), self.folder.path()), &self.settings);
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

    /// Starts a replica, which has all that was committed so far.
    pub(crate) fn replicate(&self) {
        let copy = self.folder.path().join("replica");
        let mut copied = as_user(&self.bin.join("pg_basebackup"));
        copied
            .args(["-U", "story", "-R", "-X", "stream", "-c", "fast", "-h"])
            .arg(self.folder.path())
            .arg("-D")
            .arg(copy);
        assert!(quietly(copied.current_dir(self.folder.path())).status().is_ok_and(|status| status.success()));
        let socket = self.folder.path().join("socket");
        let mut made = as_user(Path::new("mkdir"));
        assert!(made.arg(&socket).status().is_ok_and(|status| status.success()));
        let replica = serve((&self.bin, self.folder.path()), ("replica", &socket), &self.settings);
        *self.replica.lock().expect("the replica") = replica;
        let since = Instant::now();
        while self.replicas() == 0 {
            assert!(since.elapsed() < STARTING, "the replica does not follow");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn replicas(&self) -> usize {
        self.say("postgres", "SELECT count(*) FROM pg_stat_replication").parse().expect("a number")
    }

    /// Has the replica hear of nothing any more.
    pub(crate) fn cut_off(&self) {
        drop(self.replica.lock().expect("the replica").take());
    }

    /// Kills the server, and has the replica take its place with what it knows.
    pub(crate) fn fail_over(&self) {
        self.kill();
        self.cut_off();
        self.failed_over.store(true, Ordering::Relaxed);
        assert!(self.begin());
        let mut promoted = as_user(&self.bin.join("pg_ctl"));
        promoted.args(["promote", "-w", "-D"]).arg(self.folder.path().join("replica"));
        assert!(quietly(promoted.current_dir(self.folder.path())).status().is_ok_and(|status| status.success()));
    }

    /// Kills the replica that took the server's place, and has the server be back with what it knew.
    pub(crate) fn fail_back(&self) {
        self.kill();
        self.failed_over.store(false, Ordering::Relaxed);
        assert!(self.begin());
    }

    /// Ends the server, and whatever it is about to do: connections are cut, and what was not committed is taken back.
    pub(crate) fn end(&self) {
        drop(self.server.lock().expect("the server").take());
    }

    /// Kills the server at whatever point it is.
    pub(crate) fn kill(&self) {
        let known =
            std::fs::read_to_string(self.folder.path().join(self.data()).join("postmaster.pid")).expect("a server");
        let pid = known.lines().next().expect("its number").to_owned();
        assert!(Command::new("kill").args(["-KILL", &pid]).status().is_ok_and(|status| status.success()));
        self.end();
    }

    /// Keeps the data as it is now, while the server is not there.
    pub(crate) fn copy(&self, to: &str) {
        self.copied("data", to);
    }

    /// Puts back what was kept, while the server is not there.
    pub(crate) fn put_back(&self, from: &str) {
        std::fs::remove_dir_all(self.folder.path().join("data")).expect("no data");
        self.copied(from, "data");
    }

    fn copied(&self, from: &str, to: &str) {
        let (from, to) = (self.folder.path().join(from), self.folder.path().join(to));
        assert!(Command::new("cp").arg("-a").arg(from).arg(to).status().is_ok_and(|status| status.success()));
    }

    /// The folder with its socket.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Removes a database, whoever is connected to it.
    pub(crate) fn remove(&self, database: &str) {
        let name = database.rsplit('/').next().expect("a name");
        let mut removed = Command::new(self.bin.join("dropdb"));
        removed.args(["-U", "story", "-f", "-h"]).arg(self.folder.path()).arg(name);
        let _ = quietly(&mut removed).status();
    }

    /// Has a database do something.
    pub(crate) fn say(&self, database: &str, statements: &str) -> String {
        let name = database.rsplit('/').next().expect("a name");
        let mut asked = Command::new(self.bin.join("psql"));
        asked.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-U", "story", "-h"]).arg(self.folder.path());
        let told = asked.args(["-d", name, "-c", statements]).stdin(Stdio::null()).output().expect("psql");
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        String::from_utf8(told.stdout).expect("UTF-8").trim_end().to_owned()
    }

    fn is_ready(&self) -> bool {
        let mut asked = Command::new(self.bin.join("pg_isready"));
        asked.arg("-h").arg(self.folder.path());
        quietly(&mut asked).status().is_ok_and(|status| status.success())
    }

    /// The address of a new database.
    pub(crate) fn database(&self) -> String {
        let name = format!("story{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut made = Command::new(self.bin.join("createdb"));
        made.args(["-U", "story", "-S", "file_copy", "-h"]).arg(self.folder.path()).arg(&name);
        assert!(quietly(&mut made).status().is_ok_and(|status| status.success()), "no database");
        let folder = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://story@{folder}/{name}")
    }
}

/// Starts a server in a shell that ends it: of these data, on a socket in this folder.
fn serve((bin, folder): (&Path, &Path), (data, socket): (&str, &Path), settings: &[String]) -> Option<Server> {
    let mut command = as_user(Path::new("sh"));
    let script = "folder=$1; shift; \"$@\" & server=$!; exec 3<&0; (cat <&3 > /dev/null; kill -INT $server) & \
                  wait $server; [ ! -e $folder/left ] || rm -rf $folder";
    command.args(["-c", script, "sh"]).arg(folder).arg(bin.join("postgres")).arg("-D").arg(folder.join(data));
    command.arg("-k").arg(socket).args(["-c", "listen_addresses="]);
    for setting in settings {
        command.args(["-c", setting]);
    }
    let log = std::fs::File::create(folder.join(format!("{data}.log"))).ok()?;
    command.current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
    let mut shell = command.spawn().ok()?;
    let input = shell.stdin.take();
    Some(Server { shell, input })
}

/// A program as somebody whom the server is content with.
pub(super) fn as_user(program: &Path) -> Command {
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

pub(super) fn quietly(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}
