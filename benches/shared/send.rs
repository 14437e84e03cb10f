//! Benchmark of one sending process with its ledger in a file, in a database, and in a database as a shared run.

use std::sync::Arc;

use crate::database::Database;
use crate::gateway;
use crate::process::{Figures, measure};
use crate::scene::Scene;

/// Name, whether the ledger is in a database, and further options of `run`.
const SETUPS: [(&str, bool, &[&str]); 3] =
    [("file", false, &[]), ("database", true, &[]), ("database, shared", true, &["--shared"])];

/// Sends with each setup in alternation, and prints the figures.
pub(crate) fn compare(database: &Database, rows: u64, rounds: u64) {
    let server = gateway::start(Arc::new(|_| {}));
    println!("{rows} recipients, envelopes of 100, 16 in flight, {rounds} rounds\n");
    println!("{:<18} {:>12} {:>14} {:>18} {:>10}", "ledger", "messages/s", "CPU µs/msg", "database µs/msg", "peak MiB");
    for _ in 0..rounds {
        for (name, in_database, options) in SETUPS {
            let scene = Scene::new(rows, server, "unlimited");
            let ledger = in_database.then(|| database.create_ledger());
            let mut command = scene.command(&["run", "bench.yaml", "--json"]);
            command.args(options).args(ledger.iter().flat_map(|ledger| ["--ledger", ledger]));
            let before = database.cpu();
            let figures = measure(command, rows);
            print_row(name, &figures, (database.cpu() - before).as_secs_f64() * 1e6 / rows as f64);
            scene.assert_all_accepted(rows);
            ledger.iter().for_each(|ledger| database.remove_ledger(ledger));
        }
    }
    println!();
}

fn print_row(name: &str, figures: &Figures, database_cpu: f64) {
    let mib = figures.peak_kib as f64 / 1024.0;
    println!("{name:<18} {:>12.0} {:>14.2} {database_cpu:>18.2} {mib:>10.1}", figures.rate(), figures.cpu_per_row());
}
