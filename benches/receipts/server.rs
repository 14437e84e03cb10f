//! `campaign serve` as a process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::process::{high_water, ticks};
use crate::scene::Scene;

/// A running server; dropped, it is killed.
pub(crate) struct Server(Child);

impl Server {
    /// Starts the server that takes the receipts of a scene, and waits until it listens.
    pub(crate) fn start(scene: &Scene) -> Self {
        let mut command =
            scene.command(&["serve", "--listen", "127.0.0.1:0", "--hooks", &scene.door.to_string(), "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        assert!(line.contains("hooks"), "the server does not listen: {line}");
        Self(child)
    }

    /// Its CPU time so far, user and system; the kernel counts in hundredths of a second.
    pub(crate) fn cpu(&self) -> Duration {
        ticks(&format!("/proc/{}/stat", self.0.id()), 11)
    }

    /// The peak of its resident memory so far, in MiB.
    pub(crate) fn peak(&self) -> u64 {
        high_water(&format!("/proc/{}/status", self.0.id())) / 1024
    }

    /// Kills it, as by SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }

    /// Ends it by SIGTERM.
    pub(crate) fn end(mut self) {
        let process = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("it runs");
        let status = self.0.wait().expect("it ends");
        assert!(status.success(), "the server ended with {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
