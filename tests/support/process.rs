//! A child process that is killed on drop, and its output.

use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::NamedTempFile;

use super::wait::{PATIENCE, until};

/// A child process; killed on drop.
pub(crate) struct Process {
    child: Child,
    line: String,
    stdout: NamedTempFile,
    stderr: NamedTempFile,
}

impl Process {
    /// Starts the command with its output redirected to files.
    pub(crate) fn start(mut command: Command) -> Self {
        let (stdout, stderr) = (NamedTempFile::new().expect("a file"), NamedTempFile::new().expect("a file"));
        command.stdin(Stdio::null()).stdout(stdout.reopen().expect("a file")).stderr(stderr.reopen().expect("a file"));
        let line = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        Self { child, line, stdout, stderr }
    }

    /// Starts the command with these files as standard input, output and error.
    pub(crate) fn start_on(mut command: Command, [stdin, stdout, stderr]: [File; 3]) -> Self {
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        let line = format!("{command:?}");
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        let (stdout, stderr) = (NamedTempFile::new().expect("a file"), NamedTempFile::new().expect("a file"));
        Self { child, line, stdout, stderr }
    }

    /// Starts the command with pipes for standard output and error that the reader has closed, as after `| head -1`.
    pub(crate) fn start_unread(mut command: Command) -> Self {
        let (stdout, stderr) = (NamedTempFile::new().expect("a file"), NamedTempFile::new().expect("a file"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = format!("{command:?}");
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {line}: {error}"));
        drop((child.stdout.take(), child.stderr.take()));
        Self { child, line, stdout, stderr }
    }

    /// Standard output so far.
    pub(crate) fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// Standard error so far.
    pub(crate) fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// The peak resident memory of the process, in KiB.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a status");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a figure");
        peak.trim().trim_end_matches(" kB").parse().expect("KiB")
    }

    /// Reads a file of the process in `/proc`, such as `cmdline`. `ID` stands for its process ID: `task/ID/children`.
    #[cfg(target_os = "linux")]
    pub(crate) fn read_proc_file(&self, name: &str) -> String {
        let id = self.child.id();
        let content = std::fs::read(format!("/proc/{id}/{}", name.replace("ID", &id.to_string())));
        String::from_utf8_lossy(&content.expect("a running process")).into_owned()
    }

    /// The user ID that owns `/proc/…/mem`: root if other processes of the same user cannot read the memory.
    #[cfg(target_os = "linux")]
    pub(crate) fn memory_owner(&self) -> u32 {
        let memory = std::fs::metadata(format!("/proc/{}/mem", self.child.id()));
        std::os::unix::fs::MetadataExt::uid(&memory.expect("a running process"))
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the child's status").is_none()
    }

    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal such as `TERM`.
    pub(crate) fn signal(&mut self, name: &str) {
        if self.is_running() {
            let status = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
            assert!(status.is_ok_and(|status| status.success()) || !self.is_running(), "cannot send SIG{name}");
        }
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(mut self) -> Finished {
        // The process might have ended a moment ago.
        let _ = self.child.kill();
        self.finish()
    }

    /// Waits until the process ends; fails after [`PATIENCE`].
    pub(crate) fn finish(self) -> Finished {
        self.finish_within(PATIENCE)
    }

    /// Waits until the process ends; also returns its peak resident memory in KiB, sampled while it runs.
    #[cfg(target_os = "linux")]
    pub(crate) fn finish_with_peak_memory(mut self) -> (Finished, u64) {
        let status = format!("/proc/{}/status", self.child.id());
        let mut peak = 0;
        until("the process ends", || {
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            let figure = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            peak = figure.and_then(|figure| figure.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0).max(peak);
            self.child.try_wait().expect("the child's status").is_some()
        });
        (self.finish(), peak)
    }

    /// Waits until the process ends; fails after `limit`.
    pub(crate) fn finish_within(mut self, limit: Duration) -> Finished {
        let deadline = Instant::now() + limit;
        let mut status = None;
        until("the process ends", || {
            status = self.child.try_wait().expect("the child's status");
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
        // An error means that the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(file: &NamedTempFile) -> String {
    String::from_utf8(std::fs::read(file.path()).expect("the output")).expect("UTF-8")
}

/// The exit status and the output of an ended process.
#[derive(Debug)]
pub(crate) struct Finished {
    status: ExitStatus,
    line: String,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// The exit code; `None` if a signal ended the process.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails unless the process exited with `code`.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{}", self.details());
        self
    }

    /// Fails unless standard output or standard error contains `text`.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stdout.contains(text) || self.stderr.contains(text), "no `{text}` in:\n{}", self.details());
        self
    }

    /// Standard output, which must be exactly one JSON object.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let object = self.json_list();
        assert!(object.is_object(), "{}", self.details());
        object
    }

    /// Standard output as any JSON value.
    pub(crate) fn json_list(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("invalid JSON ({error}):\n{}", self.details()))
    }

    /// The command, the status and both outputs, for assertion messages.
    pub(crate) fn details(&self) -> String {
        format!("{}\n{}\n--- stdout\n{}\n--- stderr\n{}", self.line, self.status, self.stdout, self.stderr)
    }
}
