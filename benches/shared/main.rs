//! Benchmarks of a ledger in a PostgreSQL database: sending speed compared with a file, the shared rate limit of
//! several processes, shard claims per second, and a run to millions of recipients.
//!
//! `cargo bench --bench shared` runs the first three. `-- send ROWS ROUNDS`, `-- pace RATE SECONDS` or `-- claims
//! SECONDS` runs one of them, and `-- whole ROWS` the last. The benchmark starts its own PostgreSQL server (Debian
//! package `postgresql`) with `fsync` on. Linux only: the figures come from /proc.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "../common/arguments.rs"]
mod arguments;
mod claims;
#[expect(dead_code, reason = "the end-to-end tests use more of it")]
#[path = "../../tests/support/cluster.rs"]
mod cluster;
mod database;
#[path = "../common/gateway.rs"]
mod gateway;
#[path = "../common/list.rs"]
mod list;
#[path = "../common/process.rs"]
mod process;
#[path = "../common/scene.rs"]
mod scene;
mod send;
mod shared_rate;
mod whole;

use arguments::Arguments;
use database::Database;

fn main() {
    let arguments = Arguments::from_env();
    let number = |index, default| arguments.number(index, default);
    let Some(database) = Database::start() else { return };
    match arguments.word(0) {
        Some("send") => send::compare(&database, number(1, 200_000), number(2, 3)),
        Some("pace") => shared_rate::measure_shared_rate(&database, number(1, 5_000), number(2, 20)),
        Some("claims") => claims::measure_claims(&database, number(1, 5)),
        Some("whole") => whole::run(&database, number(1, 10_000_000)),
        _ => {
            send::compare(&database, 200_000, 3);
            shared_rate::measure_shared_rate(&database, 5_000, 20);
            claims::measure_claims(&database, 5);
        }
    }
}
