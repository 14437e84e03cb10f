//! Wall time, CPU time and peak memory of a process, from /proc.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The resources that a process used.
pub(crate) struct Figures {
    rows: u64,
    /// Wall time.
    pub(crate) wall: Duration,
    /// CPU time, user and system.
    pub(crate) cpu: Duration,
    /// Peak resident memory in KiB.
    pub(crate) peak_kib: u64,
}

impl Figures {
    /// Messages per second.
    pub(crate) fn rate(&self) -> f64 {
        self.rows as f64 / self.wall.as_secs_f64()
    }

    /// Microseconds of CPU time per message.
    pub(crate) fn cpu_per_row(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.rows as f64
    }
}

/// Runs a command until it exits, and measures it. `rows` is the number of messages that it processes.
pub(crate) fn measure(mut command: Command, rows: u64) -> Figures {
    let before = read_children_cpu();
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().expect("the command starts");
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let status = loop {
        peak_kib = peak_kib.max(read_peak_kib(&status_file));
        if let Some(status) = child.try_wait().expect("the status of the child") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let wall = start.elapsed();
    assert!(status.success(), "{command:?} exited with {status}");
    Figures { rows, wall, cpu: read_children_cpu().saturating_sub(before), peak_kib }
}

/// Peak resident memory of a process so far, in KiB.
pub(crate) fn read_peak_kib(status_file: &str) -> u64 {
    let status = fs::read_to_string(status_file).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}

/// User and system CPU time of all exited children. The kernel counts in hundredths of a second.
fn read_children_cpu() -> Duration {
    read_cpu("/proc/self/stat", 13)
}

/// The sum of two adjacent times in a process's stat file. `field` is the index of the first, counted after the process
/// name: 11 for the process itself, 13 for its exited children.
pub(crate) fn read_cpu(stat_file: &str, field: usize) -> Duration {
    // If the process has exited since it was listed, its time is included in that of its parent.
    let Ok(stat) = fs::read_to_string(stat_file) else { return Duration::ZERO };
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<u64>().expect("a number of ticks");
    Duration::from_millis((ticks(field) + ticks(field + 1)) * 10)
}
