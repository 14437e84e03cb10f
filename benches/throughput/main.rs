//! The whole way of a campaign, measured beside its floor.
//!
//! `cargo bench` runs the product (`campaign run`, a process of its own) and the floor (the bare
//! ingredients in one loop on one thread, also a process of its own) in turn against a loopback
//! server that answers at once, and prints throughput, CPU per message and peak memory of both.
//!
//! `cargo bench --bench throughput -- ROWS ROUNDS product` chooses the recipients (default 200,000), how often
//! (default 3), and leaves the floor out. Linux only: figures come from /proc.

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
    let arguments = Arguments::of_process();
    if let (Some("floor"), Some(list), Some(server)) = (arguments.word(0), arguments.word(1), arguments.word(2)) {
        return floor::run(list, server);
    }
    let (rows, rounds) = (arguments.number(0, 200_000), arguments.number(1, 3));
    let alone = arguments.word(2) == Some("product");
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
