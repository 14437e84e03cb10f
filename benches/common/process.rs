//! A process's time, CPU and memory, from /proc.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What a run cost.
pub(crate) struct Figures {
    rows: u64,
    /// From its start to its end.
    pub(crate) wall: Duration,
    /// CPU time, user and system.
    pub(crate) cpu: Duration,
    /// The most resident memory, in KiB.
    pub(crate) peak_kib: u64,
}

impl Figures {
    /// Messages per second.
    pub(crate) fn rate(&self) -> f64 {
        self.rows as f64 / self.wall.as_secs_f64()
    }

    /// Microseconds of CPU per message.
    pub(crate) fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.rows as f64
    }
}

/// Runs a command to its end and measures it.
pub(crate) fn measure(mut command: Command, rows: u64) -> Figures {
    let before = children_cpu();
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn().expect("the command starts");
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let status = loop {
        peak_kib = peak_kib.max(high_water(&status_file));
        if let Some(status) = child.try_wait().expect("the child can be waited for") {
            break status;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let wall = start.elapsed();
    assert!(status.success(), "{command:?} ended with {status}");
    Figures { rows, wall, cpu: children_cpu().saturating_sub(before), peak_kib }
}

/// The peak of a process's resident memory so far, in KiB.
pub(crate) fn high_water(status_file: &str) -> u64 {
    let status = fs::read_to_string(status_file).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}

/// CPU of all children that ended, user and system; the kernel counts in hundredths of a second.
fn children_cpu() -> Duration {
    ticks("/proc/self/stat", 13)
}

/// The sum of a field of a process's statistics, counted from behind its name, and of the one after it, which are times.
pub(crate) fn ticks(stat_file: &str, field: usize) -> Duration {
    // One that ended since it was listed took nothing more; its parent has what it took.
    let Ok(stat) = fs::read_to_string(stat_file) else { return Duration::ZERO };
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<u64>().expect("a count of ticks");
    Duration::from_millis((ticks(field) + ticks(field + 1)) * 10)
}
