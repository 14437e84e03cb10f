//! Benchmarks of receipts: throughput and durability, the effect of forged receipts, and storage.
//!
//! `cargo bench --bench receipts` runs all three. `-- kept [RATE] [SECONDS]`, `-- forged [RATE] [SECONDS] [ROUNDS]` or
//! `-- weight [RECEIPTS]` runs one with other numbers. Everything runs on this machine: a gateway that sends webhooks,
//! `campaign serve`, which receives them, and `campaign run`. Linux only: the figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../common/arguments.rs"]
mod arguments;
mod client;
mod durability;
mod forged;
#[path = "../common/gateway.rs"]
mod gateway;
#[path = "../common/list.rs"]
mod list;
#[path = "../common/process.rs"]
mod process;
mod scene;
mod server;
mod weight;

use arguments::Arguments;

fn main() {
    let arguments = Arguments::from_env();
    let number = |index, default| arguments.number(index, default);
    match arguments.word(0) {
        None => {
            durability::run(10_000, 60);
            forged::run(10_000, 15, 3);
            weight::run(1_000_000);
        }
        Some("kept") => durability::run(number(1, 10_000), number(2, 60)),
        Some("forged") => forged::run(number(1, 10_000), number(2, 15), number(3, 3)),
        Some("weight") => weight::run(number(1, 1_000_000)),
        Some(other) => panic!("unknown benchmark `{other}`; use kept, forged or weight"),
    }
}
