//! One process that sends, with its ledger in a file, in a database, and in a database where others may take shares.

use std::sync::Arc;

use crate::database::Database;
use crate::gateway;
use crate::process::{Figures, measure};
use crate::scene::Scene;

/// Where the ledger is, and what the program is told besides.
const WAYS: [(&str, bool, &[&str]); 3] =
    [("file", false, &[]), ("database", true, &[]), ("database, shared", true, &["--shared"])];

/// Sends as often with each, in turn, and prints what it took.
pub(crate) fn compare(database: &Database, rows: u64, rounds: u64) {
    let server = gateway::start(Arc::new(|_| {}));
    println!("{rows} recipients, envelopes of 100, 16 in flight, {rounds} rounds\n");
    println!(
        "{:<18} {:>12} {:>14} {:>18} {:>10}",
        "ledger", "messages/s", "CPU µs each", "of the database", "peak MiB"
    );
    for _ in 0..rounds {
        for (name, in_database, options) in WAYS {
            let scene = Scene::new(rows, server, "unlimited");
            let ledger = in_database.then(|| database.ledger());
            let mut command = scene.command(&["run", "bench.yaml", "--json"]);
            command.args(options).args(ledger.iter().flat_map(|ledger| ["--ledger", ledger]));
            let before = database.cpu();
            let figures = measure(command, rows);
            print(name, &figures, (database.cpu() - before).as_secs_f64() * 1e6 / rows as f64);
            scene.assert_all_accepted(rows);
            ledger.iter().for_each(|ledger| database.remove(ledger));
        }
    }
    println!();
}

fn print(name: &str, figures: &Figures, of_the_database: f64) {
    let mib = figures.peak_kib as f64 / 1024.0;
    println!("{name:<18} {:>12.0} {:>14.2} {of_the_database:>18.2} {mib:>10.1}", figures.rate(), figures.cpu_each());
}
