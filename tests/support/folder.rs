//! The temporary folder of a story (campaign, list, profiles, ledger, results), and functions that run the program in
//! it.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use super::cluster::Cluster;
use super::process::{Finished, Process};
use super::results::Results;
use super::{KEY, KEY_VARIABLE};

thread_local! {
    static IN_FILES: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the ledger of this story in a file while this value exists; overrides `STORIES_OVER`.
#[must_use]
pub(crate) struct FileLedger;

/// Uses a ledger file: for stories that read the file, or that move the clock of processes, which databases ignore.
pub(crate) fn in_files() -> FileLedger {
    IN_FILES.set(true);
    FileLedger
}

impl Drop for FileLedger {
    fn drop(&mut self) {
        IN_FILES.set(false);
    }
}

/// The folder that contains all files of one story.
pub(crate) struct Folder {
    folder: TempDir,
    is_live: bool,
    /// The address of the story's ledger database; `None` for a file.
    ledger: OnceLock<Option<String>>,
    /// Whether to drop the database together with this folder.
    owns_database: AtomicBool,
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Some(Some(ledger)) = self.ledger.get()
            && self.owns_database.load(Ordering::Relaxed)
            && let Some(cluster) = Cluster::shared()
        {
            cluster.drop_database(ledger);
        }
    }
}

/// Creates a temporary folder, in shared memory if `TMPDIR` is unset and the memory has enough space for all stories.
/// No story needs its files after a power failure, so stories do not have to wait for a disk.
fn create_temporary_folder() -> TempDir {
    const SHARED_MEMORY: &str = "/dev/shm";
    const REQUIRED_SPACE: u64 = 8 << 30;
    let has_space =
        || rustix::fs::statvfs(SHARED_MEMORY).is_ok_and(|disk| disk.f_bavail * disk.f_frsize >= REQUIRED_SPACE);
    let folder = match std::env::var_os("TMPDIR") {
        // The path is as long as that of a folder in `/tmp`, because snapshots contain wrapped paths.
        None if has_space() => tempfile::Builder::new().prefix("").tempdir_in(SHARED_MEMORY),
        _ => tempfile::tempdir(),
    };
    folder.expect("a folder")
}

/// The environment variable that selects the ledger of all stories without [`in_files`]: `postgres`, or files if unset.
const STORIES_OVER: &str = "STORIES_OVER";

impl Folder {
    /// Creates an empty folder; `is_live` means that its campaign uses a gateway other than the built-in one.
    pub(crate) fn new(is_live: bool) -> Self {
        Self {
            folder: create_temporary_folder(),
            is_live,
            ledger: OnceLock::new(),
            owns_database: AtomicBool::new(false),
        }
    }

    /// Uses this database as the ledger.
    pub(crate) fn with_database(mut self, ledger: &str) -> Self {
        self.ledger = OnceLock::from(Some(ledger.to_owned()));
        self
    }

    /// The address of the story's ledger database; `None` for a file. If `STORIES_OVER` requires a database, the first
    /// call creates it.
    pub(crate) fn ledger(&self) -> Option<&str> {
        let choose = || {
            let over = std::env::var_os(STORIES_OVER).filter(|_| !IN_FILES.get())?;
            assert_eq!(over, "postgres", "STORIES_OVER is unset or `postgres`");
            self.owns_database.store(true, Ordering::Relaxed);
            Some(Cluster::shared().expect("a server").create_database())
        };
        self.ledger.get_or_init(choose).as_deref()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, and creates its parent folders.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Writes a file that only its owner can read (mode 0600).
    pub(crate) fn write_secret(&self, name: &str, text: &str) {
        self.write(name, text);
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o600)).expect("a mode");
    }

    /// Replaces part of a file.
    pub(crate) fn replace(&self, name: &str, old: &str, new: &str) {
        let text = std::fs::read_to_string(self.path(name)).expect("a file");
        assert!(text.contains(old), "no `{old}` in {name}:\n{text}");
        self.write(name, &text.replace(old, new));
    }

    /// The command that runs the binary in this folder, without the tester's own environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_campaign-with-failpoints"));
        command.current_dir(self.folder.path()).env_clear().env("HOME", self.path("home")).env(KEY_VARIABLE, KEY);
        command.env("CAMPAIGN_STATE_DIR", self.path("state")).args(arguments);
        if let Some(ledger) = self.ledger() {
            command.env("CAMPAIGN_LEDGER", ledger);
        }
        command
    }

    /// The command of [`Self::command`], run by a shell after `prepare`.
    pub(crate) fn command_after(&self, prepare: &str, arguments: &[&str]) -> Command {
        let command = self.command(arguments);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{prepare}; exec \"$0\" \"$@\"")]).arg(command.get_program());
        shell.args(command.get_args()).current_dir(self.folder.path()).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell
    }

    /// Runs the binary and waits until it ends.
    pub(crate) fn campaign(&self, arguments: &[&str]) -> Finished {
        Process::start(self.command(arguments)).finish()
    }

    /// Starts `campaign run`, without waiting for rows in doubt to be reconciled.
    pub(crate) fn start(&self, arguments: &[&str]) -> Process {
        Process::start(self.command(&[&["run", "sale.yaml", "--no-wait"], arguments].concat()))
    }

    /// Runs `campaign run` and waits until it ends.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        self.start(arguments).finish()
    }

    /// The path of the results file.
    pub(crate) fn results_file(&self) -> PathBuf {
        self.path(if self.is_live { "results/sale.csv" } else { "results/sale.sandbox.csv" })
    }

    /// The results of the last run.
    pub(crate) fn results(&self) -> Results {
        Results::read(&self.results_file())
    }
}
