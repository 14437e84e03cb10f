//! Benchmark of the product against a hand-written script (`script.py`: Python with csv, jinja2 and aiohttp).
//!
//! `cargo bench --bench peers` runs both in alternation as separate processes, against the same loopback server that
//! answers immediately. It prints throughput, CPU per message and peak memory. `-- ROWS ROUNDS` sets the number of
//! recipients (default 200,000) and of rounds (default 3). The script needs `python3`, or the Python in `BENCH_PYTHON`,
//! with `jinja2` and `aiohttp`. If they are missing, the benchmark prints a message and ends. Linux only: the figures
//! come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "../common/arguments.rs"]
mod arguments;
#[path = "../common/gateway.rs"]
mod gateway;
#[path = "../common/list.rs"]
mod list;
#[path = "../common/pairs.rs"]
mod pairs;
#[path = "../common/process.rs"]
mod process;
#[path = "../common/scene.rs"]
mod scene;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use arguments::Arguments;
use process::{Figures, measure};
use scene::Scene;

fn main() {
    let arguments = Arguments::from_env();
    let (rows, rounds) = (arguments.number(0, 200_000), arguments.number(1, 3));
    let python = std::env::var("BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    if !has_packages(&python) {
        println!(
            "nothing is measured: `{python}` with the packages jinja2 and aiohttp was not found; set BENCH_PYTHON to another Python"
        );
        return;
    }
    let server = gateway::start(Arc::new(|_| {}));
    println!("{rows} recipients, SMS with five variables, envelopes of 100, 16 in flight, {rounds} rounds\n");
    pairs::compare(rounds, ("product", || run_product(rows, server)), ("script", || run_script(&python, rows, server)));
}

fn has_packages(python: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import jinja2, aiohttp"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn run_product(rows: u64, server: SocketAddr) -> Figures {
    let scene = Scene::new(rows, server, "unlimited");
    let figures = measure(scene.command(&["run", "bench.yaml", "--json"]), rows);
    scene.assert_all_accepted(rows);
    figures
}

fn run_script(python: &str, rows: u64, server: SocketAddr) -> Figures {
    let scene = Scene::new(rows, server, "unlimited");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers/script.py");
    fs::create_dir(scene.path().join("results")).expect("a folder for the results");
    let mut command = Command::new(python);
    command.current_dir(scene.path()).arg(script).args(["bench.csv", &format!("http://{server}"), "results/bench.csv"]);
    let figures = measure(command, rows);
    scene.assert_all_accepted(rows);
    figures
}
