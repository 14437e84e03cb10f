//! Benchmark of a run to millions of recipients with a database ledger, from freezing the list to exporting results.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::gateway;
use crate::process::measure;
use crate::scene::Scene;

/// The tables that grow with the number of recipients.
const TABLES: [&str; 3] = ["envelopes", "copy_shards", "blocks"];

/// Sends to `rows` recipients, and prints the time of each stage and the size of the tables.
pub(crate) fn run(database: &Database, rows: u64) {
    let server = gateway::start(Arc::new(|_| {}));
    let (scene, ledger) = (Scene::new(rows, server, "unlimited"), database.create_ledger());
    let list = fs::metadata(scene.path().join("bench.csv")).expect("the list").len();
    let command = |arguments: &[&str]| {
        let mut command = scene.command(arguments);
        command.args(["--ledger", &ledger]);
        command
    };
    let time = |arguments: &[&str]| -> Duration {
        let began = Instant::now();
        let output = command(arguments).output().expect("the program starts");
        // `status` exits with code 5 while the run has planned rows.
        assert!(
            output.status.success() || output.status.code() == Some(5),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        began.elapsed()
    };
    // The first run freezes the list and sends one message.
    let freeze_time = time(&["run", "bench.yaml", "--limit", "1"]);
    let early_status = time(&["status", "bench"]);
    let before = database.cpu();
    let send_figures = measure(command(&["run", "bench.yaml", "--json"]), rows);
    let database_cpu = (database.cpu() - before).as_secs_f64() * 1e6 / rows as f64;
    scene.assert_all_accepted(rows);
    let status_times: Vec<Duration> = (0..5).map(|_| time(&["status", "bench"])).collect();
    let export_time = time(&["results", "bench", "--out", "again.csv"]);
    println!("{rows} recipients, a list of {} MiB\n", list >> 20);
    println!("list read and frozen, and one message sent, in {:.1} s", freeze_time.as_secs_f64());
    println!("status of the started run in {:.0} ms", early_status.as_secs_f64() * 1e3);
    println!(
        "sent at {:.0} messages/s, CPU per message {:.2} µs and {database_cpu:.2} µs in the database, peak {:.0} MiB",
        send_figures.rate(),
        send_figures.cpu_per_row(),
        send_figures.peak_kib as f64 / 1024.0
    );
    println!("status of the finished run in {:.0} ms (median of 5)", median(status_times).as_secs_f64() * 1e3);
    println!("results exported at {:.0} rows/s", rows as f64 / export_time.as_secs_f64());
    for table in TABLES {
        let size = format!("SELECT pg_total_relation_size('campaign.{table}')");
        let size: u64 = database.query(&ledger, &size).parse().expect("a size");
        println!("table {table}: {:.1} bytes per recipient", size as f64 / rows as f64);
    }
    println!();
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
