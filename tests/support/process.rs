//! The binary as a process that always ends, and what it left.

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::NamedTempFile;

use super::wait::{PATIENCE, until};

/// A process that was started here; dropped, it is killed.
pub(crate) struct Process {
    child: Child,
    line: String,
    stdout: NamedTempFile,
    stderr: NamedTempFile,
}

impl Process {
    /// Starts the binary as `command` says, its output going to files.
    pub(crate) fn start(mut command: Command) -> Self {
        let (stdout, stderr) = (NamedTempFile::new().expect("a file"), NamedTempFile::new().expect("a file"));
        command.stdin(Stdio::null()).stdout(stdout.reopen().expect("a file")).stderr(stderr.reopen().expect("a file"));
        let line = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        Self { child, line, stdout, stderr }
    }

    /// Starts it with these as its standard input, output and error.
    pub(crate) fn start_on(mut command: Command, [stdin, stdout, stderr]: [File; 3]) -> Self {
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        let line = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        let (stdout, stderr) = (NamedTempFile::new().expect("a file"), NamedTempFile::new().expect("a file"));
        Self { child, line, stdout, stderr }
    }

    /// Starts it with both outputs closed at their other end, as `| head -1` does.
    pub(crate) fn start_unread(mut command: Command) -> Self {
        let (stdout, stderr) = (NamedTempFile::new().expect("a file"), NamedTempFile::new().expect("a file"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        drop((child.stdout.take(), child.stderr.take()));
        Self { child, line, stdout, stderr }
    }

    /// What it wrote to standard output so far.
    pub(crate) fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// What it wrote to standard error so far.
    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// The most memory that it ever had, in KiB.
    #[cfg(target_os = "linux")]
    pub(crate) fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a status");
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a figure");
        most.trim().trim_end_matches(" kB").parse().expect("KiB")
    }

    /// What the system tells of it, such as `cmdline`; its children are in `task/ID/children`, with its own ID.
    #[cfg(target_os = "linux")]
    pub(crate) fn told_by_the_system(&self, name: &str) -> String {
        let id = self.child.id();
        let told = std::fs::read(format!("/proc/{id}/{}", name.replace("ID", &id.to_string())));
        String::from_utf8_lossy(&told.expect("a running process")).into_owned()
    }

    /// Who owns its memory, as the system tells: the superuser if other processes of its user are kept from it.
    #[cfg(target_os = "linux")]
    pub(crate) fn owner_of_its_memory(&self) -> u32 {
        let memory = std::fs::metadata(format!("/proc/{}/mem", self.child.id()));
        std::os::unix::fs::MetadataExt::uid(&memory.expect("a running process"))
    }

    /// Whether it has not ended yet.
    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child can be asked").is_none()
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal such as `TERM`.
    pub(crate) fn signal(&mut self, name: &str) {
        if self.is_running() {
            let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
            assert!(status.is_ok_and(|status| status.success()) || !self.is_running(), "cannot send SIG{name}");
        }
    }

    /// Ends it with SIGKILL, at whatever point it is.
    pub(crate) fn kill(mut self) -> Finished {
        // It may have ended by itself a moment ago.
        let _ = self.child.kill();
        self.finish()
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Finished {
        self.finish_within(PATIENCE)
    }

    /// Waits for its end; tells the most memory that it ever had, in KiB, as far as a look each millisecond shows it.
    #[cfg(target_os = "linux")]
    pub(crate) fn finish_measured(mut self) -> (Finished, u64) {
        let status = format!("/proc/{}/status", self.child.id());
        let mut most = 0;
        until("the process ends", || {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let figure = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            most = figure.and_then(|figure| figure.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0).max(most);
            self.child.try_wait().expect("a child can be asked").is_some()
        });
        (self.finish(), most)
    }

    /// Waits for its end, which comes before `limit` is over.
    pub(crate) fn finish_within(mut self, limit: Duration) -> Finished {
        let deadline = Instant::now() + limit;
        let mut status = None;
        until("the process ends", || {
            status = self.child.try_wait().expect("a child can be asked");
            status.is_some() || Instant::now() > deadline
        });
        let Some(status) = status else {
            panic!("{} still runs after {limit:?}\n{}\n{}", self.line, self.stdout(), self.stderr());
        };
        Finished { status, line: self.line.clone(), stdout: self.stdout(), stderr: self.stderr() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(file: &NamedTempFile) -> String {
    String::from_utf8(std::fs::read(file.path()).expect("the output")).expect("UTF-8")
}

/// What a process left.
#[derive(Debug)]
pub(crate) struct Finished {
    status: ExitStatus,
    line: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// The exit code; nothing when a signal ended it.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails unless it exited with `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{}", self.told());
        self
    }

    /// Fails unless its output contains `text`.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text) || self.stderr.contains(text), "no `{text}` in:\n{}", self.told());
        self
    }

    /// The one JSON object that it printed, and nothing else.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let object = self.json_list();
        assert!(object.is_object(), "{}", self.told());
        object
    }

    /// Standard output as JSON, which may be a list.
    pub(crate) fn json_list(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}):\n{}", self.told()))
    }

    /// All of it, for the message of a failed story.
    pub(crate) fn told(&self) -> String {
        format!("{}\n{}\n--- stdout\n{}\n--- stderr\n{}", self.line, self.status, self.stdout, self.stderr)
    }
}
