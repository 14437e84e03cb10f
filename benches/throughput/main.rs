//! Throughput benchmark of a campaign, compared with a baseline.
//!
//! `cargo bench` runs the product (`campaign run`) and the floor in alternation, as separate processes. The floor uses
//! the same libraries in one loop on one thread. Both send to a loopback server that answers immediately. The benchmark
//! prints the throughput, CPU per message and peak memory of both.
//!
//! `cargo bench --bench throughput -- ROWS ROUNDS product` sets the number of recipients (default 200,000) and of
//! rounds (default 3), and omits the floor. Linux only: the figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "../common/arguments.rs"]
mod arguments;
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

use arguments::Arguments;
use process::{Figures, measure};
use scene::Scene;

fn main() {
    let arguments = Arguments::from_env();
    if let (Some("floor"), Some(list), Some(server)) = (arguments.word(0), arguments.word(1), arguments.word(2)) {
        return floor::run(list, server);
    }
    let (rows, rounds) = (arguments.number(0, 200_000), arguments.number(1, 3));
    let is_product_only = arguments.word(2) == Some("product");
    let server = gateway::start(Arc::new(|_| {}));
    println!("{rows} recipients, SMS with five variables, envelopes of 100, {rounds} rounds\n");
    if is_product_only {
        pairs::print_header();
        (0..rounds).for_each(|_| pairs::print_row("product", &run_product(rows, server)));
    } else {
        pairs::compare(rounds, ("product", || run_product(rows, server)), ("floor", || run_floor(rows, server)));
    }
}

fn run_product(rows: u64, server: std::net::SocketAddr) -> Figures {
    let scene = Scene::new(rows, server, "unlimited");
    let command = scene.command(&["run", "bench.yaml", "--json"]);
    let figures = measure(command, rows);
    scene.assert_all_accepted(rows);
    figures
}

fn run_floor(rows: u64, server: std::net::SocketAddr) -> Figures {
    let scene = Scene::new(rows, server, "unlimited");
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.current_dir(scene.path()).args(["floor", "bench.csv", &server.to_string()]);
    measure(command, rows)
}
