//! A ledger in a database beside one in a file: how fast one process sends with each, how several keep one rate together,
//! how many shares are drawn in a second, and what a run of millions takes.
//!
//! `cargo bench --bench shared` does the first three; `-- send ROWS ROUNDS`, `-- pace RATE SECONDS`, `-- claims SECONDS` one of
//! them, and `-- whole ROWS` the last. It starts a PostgreSQL server of its own (Debian's package `postgresql`), with
//! `fsync` on. Linux only: figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "../common/arguments.rs"]
mod arguments;
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

use arguments::Arguments;
use database::Database;

fn main() {
    let arguments = Arguments::of_process();
    let number = |index, usually| arguments.number(index, usually);
    let Some(database) = Database::start() else { return };
    match arguments.word(0) {
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
