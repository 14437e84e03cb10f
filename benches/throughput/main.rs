//! The whole way of a campaign, measured beside its floor.
//!
//! `cargo bench` runs the product (`campaign run`, a process of its own) and the floor (the bare
//! ingredients in one loop on one thread, also a process of its own) in turn against a loopback
//! server that answers at once, and prints throughput, CPU per message and peak memory of both.
//!
//! `cargo bench -- ROWS [ROUNDS] [product]` chooses the recipients (default 200,000), how often
//! (default 3), and leaves the floor out. Linux only: figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod floor;
#[path = "../common/gateway.rs"]
mod gateway;
#[path = "../common/list.rs"]
mod list;
#[path = "../common/process.rs"]
mod process;
#[path = "../common/scene.rs"]
mod scene;

use std::process::Command;
use std::sync::Arc;

use process::{Figures, measure};
use scene::Scene;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if arguments.first().is_some_and(|first| first == "floor") {
        return floor::run(&arguments[1], &arguments[2]);
    }
    let number = |index: usize| arguments.get(index).and_then(|text| text.parse().ok());
    let rows: u64 = number(0).unwrap_or(200_000);
    let rounds: u64 = number(1).unwrap_or(3);
    let alone = arguments.iter().any(|argument| argument == "product");
    let server = gateway::start(Arc::new(|_| {}));
    println!("{rows} recipients, SMS with five variables, envelopes of 100, {rounds} rounds\n");
    println!("{:<8} {:>12} {:>14} {:>12} {:>8}", "", "messages/s", "CPU µs each", "peak MiB", "cores");
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let product = product(rows, server);
        print("product", &product);
        if !alone {
            let floor = the_floor(rows, server);
            print("floor", &floor);
            pairs.push((product, floor));
        }
    }
    if !pairs.is_empty() {
        let throughput = median(pairs.iter().map(|(product, floor)| product.rate() / floor.rate()).collect());
        let cpu = median(pairs.iter().map(|(product, floor)| product.cpu_each() / floor.cpu_each()).collect());
        println!("\nproduct / floor, median of the pairs: {throughput:.2} × throughput, {cpu:.2} × CPU per message");
    }
}

fn product(rows: u64, server: std::net::SocketAddr) -> Figures {
    let scene = Scene::new(rows, server, "unlimited");
    let command = scene.command(&["run", "bench.yaml", "--json"]);
    let figures = measure(command, rows);
    scene.assert_all_accepted(rows);
    figures
}

fn the_floor(rows: u64, server: std::net::SocketAddr) -> Figures {
    let scene = Scene::new(rows, server, "unlimited");
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.current_dir(scene.path()).args(["floor", "bench.csv", &server.to_string()]);
    measure(command, rows)
}

/// Prints a line of the table.
fn print(name: &str, figures: &Figures) {
    let cores = figures.cpu.as_secs_f64() / figures.wall.as_secs_f64();
    let mib = figures.peak_kib as f64 / 1024.0;
    println!("{name:<8} {:>12.0} {:>14.2} {mib:>12.1} {cores:>8.2}", figures.rate(), figures.cpu_each());
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
