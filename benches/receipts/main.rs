//! What receipts cost: how many are taken in a second and survive, what forged ones take from a campaign, what they weigh.
//!
//! `cargo bench --bench receipts` does the three parts; `-- kept [RATE] [SECONDS]`, `-- forged [RATE] [SECONDS] [ROUNDS]`
//! and `-- weight [RECEIPTS]` do one with other numbers. Everything runs on this machine: the gateway that sends the
//! webhooks, `campaign serve` that takes them, `campaign run` beside it. Linux only: figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

#[path = "../common/arguments.rs"]
mod arguments;
mod door;
mod forged;
#[path = "../common/gateway.rs"]
mod gateway;
mod kept;
#[path = "../common/list.rs"]
mod list;
#[path = "../common/process.rs"]
mod process;
mod scene;
mod server;
mod weight;

use arguments::Arguments;

fn main() {
    let arguments = Arguments::of_process();
    let number = |index, usually| arguments.number(index, usually);
    match arguments.word(0) {
        None => {
            kept::run(10_000, 60);
            forged::run(10_000, 15, 3);
            weight::run(1_000_000);
        }
        Some("kept") => kept::run(number(1, 10_000), number(2, 60)),
        Some("forged") => forged::run(number(1, 10_000), number(2, 15), number(3, 3)),
        Some("weight") => weight::run(number(1, 1_000_000)),
        Some(other) => panic!("there is no part `{other}`: kept, forged, weight"),
    }
}
