//! Durability benchmark of receipts: a constant rate, then SIGKILL.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::Connection;
use crate::scene::{Scene, message_id};
use crate::server::Server;

/// Open connections of the gateway.
const CONNECTIONS: u64 = 64;
/// Seconds of receipts after the measurement, so that the server is killed while receipts arrive.
const EXTRA_SECONDS: u64 = 5;

/// Sends `rate` receipts per second for `seconds` seconds, kills the server, and checks that every acknowledged receipt
/// is in the ledger.
pub(crate) fn run(rate: u64, seconds: u64) {
    let scene = Scene::new(rate * (seconds + EXTRA_SECONDS), None);
    scene.send();
    let paths: Arc<[Box<str>]> = scene.take_paths().into();
    let mut server = Server::start(&scene);
    let began = Instant::now() + Duration::from_millis(100);
    let senders: Vec<_> = (0..CONNECTIONS)
        .map(|first| {
            let (paths, endpoint) = (Arc::clone(&paths), scene.endpoint);
            std::thread::spawn(move || {
                let connection = Connection::open(endpoint).expect("a connection");
                post_receipts(connection, &paths, first, |index| {
                    began + Duration::from_micros(index * 1_000_000 / rate)
                })
            })
        })
        .collect();
    std::thread::sleep((began + Duration::from_secs(seconds)).saturating_duration_since(Instant::now()));
    let (cpu, peak) = (server.cpu(), server.peak());
    server.kill();
    let acknowledged: Vec<Acknowledged> =
        senders.into_iter().flat_map(|sender| sender.join().expect("the thread ends")).collect();
    let delivered: HashSet<u64> = scene.ids_in("delivered").into_iter().collect();
    let id = |receipt: &Acknowledged| message_id(&paths[receipt.index as usize]).parse::<u64>().expect("a number");
    let lost = acknowledged.iter().filter(|receipt| !delivered.contains(&id(receipt))).count();
    let is_measured = |receipt: &&Acknowledged| receipt.index < rate * seconds;
    let mut latencies: Vec<Duration> = acknowledged.iter().filter(is_measured).map(|receipt| receipt.latency).collect();
    latencies.sort();
    let quantile = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("receipts at {rate}/s for {seconds} s over {CONNECTIONS} connections:");
    println!("  acknowledged in this time: {:.0}/s", latencies.len() as f64 / seconds as f64);
    println!(
        "  latency from the due time: median {:.1} ms, p99 {:.1} ms, maximum {:.1} ms",
        quantile(0.5),
        quantile(0.99),
        quantile(1.0)
    );
    println!(
        "  server: {:.1} µs of CPU per receipt, peak memory {} MiB",
        cpu.as_secs_f64() * 1e6 / acknowledged.len() as f64,
        peak
    );
    println!("  of {} acknowledged before SIGKILL, missing in the ledger: {lost}", acknowledged.len());
    assert_eq!(lost, 0, "every acknowledged receipt is in the ledger");
}

/// An acknowledged receipt.
struct Acknowledged {
    index: u64,
    /// The time from the due time of the receipt to the acknowledgement.
    latency: Duration,
}

/// Posts the receipts of this connection at their due times until the server stops answering. `first` is the index of
/// the connection's first receipt.
fn post_receipts(
    mut connection: Connection,
    paths: &[Box<str>],
    first: u64,
    due: impl Fn(u64) -> Instant,
) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    let updated = jiff::Timestamp::now().to_string();
    for index in (first..paths.len() as u64).step_by(CONNECTIONS as usize) {
        let due = due(index);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        match connection.post_delivered(&paths[index as usize], &updated) {
            Ok(status) => assert_eq!(status, 200, "a receipt is rejected"),
            Err(_) => break,
        }
        acknowledged.push(Acknowledged { index, latency: due.elapsed() });
    }
    acknowledged
}
