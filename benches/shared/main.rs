//! A ledger in a database beside one in a file: how fast one process sends with each, how several keep one rate together,
//! how many shares are drawn in a second, and what a run of millions takes.
//!
//! `cargo bench --bench shared` does the first three; `-- send ROWS ROUNDS`, `-- pace RATE SECONDS`, `-- claims SECONDS` one of
//! them, and `-- whole ROWS` the last. It starts a PostgreSQL server of its own (Debian's package `postgresql`), with
//! `fsync` on. Linux only: figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod claims;
#[expect(dead_code, reason = "the stories do more with it")]
#[path = "../../tests/support/cluster.rs"]
mod cluster;
mod database;
#[path = "../common/gateway.rs"]
mod gateway;
#[path = "../common/list.rs"]
mod list;
mod pace;
#[path = "../common/process.rs"]
mod process;
#[path = "../common/scene.rs"]
mod scene;
mod send;
mod whole;

use database::Database;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let number =
        |index: usize, usually: u64| arguments.get(index).map_or(usually, |text| text.parse().expect("a number"));
    let Some(database) = Database::start() else { return };
    match arguments.first().map(String::as_str) {
        Some("send") => send::compare(&database, number(1, 200_000), number(2, 3)),
        Some("pace") => pace::keep(&database, number(1, 5_000), number(2, 20)),
        Some("claims") => claims::draw(&database, number(1, 5)),
        Some("whole") => whole::run(&database, number(1, 10_000_000)),
        _ => {
            send::compare(&database, 200_000, 3);
            pace::keep(&database, 5_000, 20);
            claims::draw(&database, 5);
        }
    }
}
