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
#[path = "../common/pairs.rs"]
mod pairs;
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
    if alone {
        pairs::head();
        (0..rounds).for_each(|_| pairs::print("product", &product(rows, server)));
    } else {
        pairs::compare(rounds, ("product", || product(rows, server)), ("floor", || the_floor(rows, server)));
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
