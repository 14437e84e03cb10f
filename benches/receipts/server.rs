//! A `campaign serve` process.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::process::{read_cpu, read_peak_kib};
use crate::scene::Scene;

/// A running server, which is killed on drop.
pub(crate) struct Server(Child);

impl Server {
    /// Starts the server for the receipts of a scene, and waits until it listens.
    pub(crate) fn start(scene: &Scene) -> Self {
        let mut command =
            scene.command(&["serve", "--listen", "127.0.0.1:0", "--hooks", &scene.endpoint.to_string(), "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("the output")).read_line(&mut line).expect("a line");
        assert!(line.contains("hooks"), "the server does not listen: {line}");
        Self(child)
    }

    /// User and system CPU time so far. The kernel counts in hundredths of a second.
    pub(crate) fn cpu(&self) -> Duration {
        read_cpu(&format!("/proc/{}/stat", self.0.id()), 11)
    }

    /// Peak resident memory so far, in MiB.
    pub(crate) fn peak(&self) -> u64 {
        read_peak_kib(&format!("/proc/{}/status", self.0.id())) / 1024
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }

    /// Stops the server with SIGTERM.
    pub(crate) fn stop(mut self) {
        let process = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("the signal is sent");
        let status = self.0.wait().expect("the server exits");
        assert!(status.success(), "the server exited with {status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
