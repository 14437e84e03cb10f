//! Benchmark of the commands `check`, `run`, `status`, `results` and `report` on a list of any size.
//!
//! `cargo bench --bench commands -- ROWS ROUNDS` checks a campaign to ROWS recipients (default 1,000,000) and sends it
//! to a loopback server that answers immediately. Then it reads the run's status, results and report. Every command
//! except `run` is repeated ROUNDS times (default 3) in a new process. The table shows the median time, CPU time and
//! peak memory of each command. Linux only: the figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "common/arguments.rs"]
mod arguments;
#[path = "common/gateway.rs"]
mod gateway;
#[path = "common/list.rs"]
mod list;
#[path = "common/process.rs"]
mod process;
#[path = "common/scene.rs"]
mod scene;

use std::sync::Arc;

use arguments::Arguments;
use process::{Figures, measure};
use scene::Scene;

/// Commands on a finished run.
const RUN_COMMANDS: [&[&str]; 3] =
    [&["status", "bench@1"], &["results", "bench@1", "--out", "-"], &["report", "bench@1", "--out", "report.html"]];

fn main() {
    let arguments = Arguments::from_env();
    let (rows, rounds) = (arguments.number(0, 1_000_000), arguments.number(1, 3).max(1));
    let server = gateway::start(Arc::new(|_| {}));
    let scene = Scene::new(rows, server, "unlimited");
    println!("{rows} recipients, SMS with five variables, medians of {rounds}\n");
    println!("{:<8} {:>10} {:>12} {:>10} {:>12} {:>10}", "", "time s", "rows/s", "CPU s", "CPU µs/row", "peak MiB");
    measure_command(&scene, rows, rounds, &["check", "bench.yaml"]);
    print_medians("run", &[measure(scene.command(&["run", "bench.yaml", "--json"]), rows)]);
    scene.assert_all_accepted(rows);
    for command in RUN_COMMANDS {
        measure_command(&scene, rows, rounds, command);
    }
}

/// Runs a command once in each round, and prints the median figures.
fn measure_command(scene: &Scene, rows: u64, rounds: u64, command: &[&str]) {
    let figures: Vec<Figures> = (0..rounds).map(|_| measure(scene.command(command), rows)).collect();
    print_medians(command[0], &figures);
}

/// Prints the median figures of a command.
fn print_medians(name: &str, figures: &[Figures]) {
    let median = |value: fn(&Figures) -> f64| {
        let mut values: Vec<f64> = figures.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (time, cpu) = (median(|figures| figures.wall.as_secs_f64()), median(|figures| figures.cpu.as_secs_f64()));
    let (rate, cpu_per_row) = (median(Figures::rate), median(Figures::cpu_per_row));
    let peak = median(|figures| figures.peak_kib as f64 / 1024.0);
    println!("{name:<8} {time:>10.2} {rate:>12.0} {cpu:>10.2} {cpu_per_row:>12.2} {peak:>10.1}");
}
