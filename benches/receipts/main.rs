//! What receipts cost: how many are taken in a second and survive, what forged ones take from a campaign, what they weigh.
//!
//! `cargo bench --bench receipts` does the three parts; `-- kept [RATE] [SECONDS]`, `-- forged [RATE] [SECONDS] [ROUNDS]`
//! and `-- weight [RECEIPTS]` do one with other numbers. Everything runs on this machine: the gateway that sends the
//! webhooks, `campaign serve` that takes them, `campaign run` beside it. Linux only: figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

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

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number = |index: usize, otherwise: u64| match arguments.get(index) {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("`{text}` is no number")),
        None => otherwise,
    };
    match arguments.first().map(String::as_str) {
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
