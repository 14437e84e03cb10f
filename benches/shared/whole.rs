//! A run of millions in a database, from freezing its list to exporting its results: time, disk and what a look at it takes.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::gateway;
use crate::process::measure;
use crate::scene::Scene;

/// The tables that grow with recipients.
const TABLES: [&str; 3] = ["envelopes", "copy_shards", "blocks"];

/// Sends to so many recipients by one process that shares the run, and prints what each stage took.
pub(crate) fn run(database: &Database, rows: u64) {
    let server = gateway::start(Arc::new(|_| {}));
    let (scene, ledger) = (Scene::new(rows, server, "unlimited"), database.ledger());
    let list = fs::metadata(scene.path().join("bench.csv")).expect("the list").len();
    let command = |arguments: &[&str]| {
        let mut command = scene.command(arguments);
        command.args(["--ledger", &ledger]);
        command
    };
    let timed = |arguments: &[&str]| -> Duration {
        let began = Instant::now();
        let ended = command(arguments).output().expect("the program starts");
        assert!(ended.status.success() || ended.status.code() == Some(5), "{}", String::from_utf8_lossy(&ended.stderr));
        began.elapsed()
    };
    // The list is frozen, and the first message sent.
    let frozen = timed(&["run", "bench.yaml", "--limit", "1"]);
    let begun = timed(&["status", "bench"]);
    let before = database.cpu();
    let sent = measure(command(&["run", "bench.yaml", "--json"]), rows);
    let of_the_database = (database.cpu() - before).as_secs_f64() * 1e6 / rows as f64;
    scene.assert_all_accepted(rows);
    let looks: Vec<Duration> = (0..5).map(|_| timed(&["status", "bench"])).collect();
    let exported = timed(&["results", "bench", "--out", "again.csv"]);
    println!("{rows} recipients, a list of {} MiB\n", list >> 20);
    println!("surveyed, frozen and one message sent in {:.1} s", frozen.as_secs_f64());
    println!("status before the rest was sent in {:.0} ms", begun.as_secs_f64() * 1e3);
    println!(
        "sent at {:.0} messages/s, CPU {:.2} µs each and {of_the_database:.2} of the database, peak {:.0} MiB",
        sent.rate(),
        sent.cpu_each(),
        sent.peak_kib as f64 / 1024.0
    );
    println!("status afterwards in {:.0} ms (median of 5)", median(looks).as_secs_f64() * 1e3);
    println!("results exported at {:.0} rows/s", rows as f64 / exported.as_secs_f64());
    for table in TABLES {
        let size = format!("SELECT pg_total_relation_size('campaign.{table}')");
        let size: u64 = database.say(&ledger, &size).parse().expect("a size");
        println!("table {table}: {:.1} bytes a recipient", size as f64 / rows as f64);
    }
    println!();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
