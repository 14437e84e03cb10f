//! Receipts at a steady rate, and what is left of them when the server is killed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::door::Connection;
use crate::scene::{Scene, id_of};
use crate::server::Server;

/// Connections that the gateway has open.
const CONNECTIONS: u64 = 64;
/// How long the gateway goes on telling after the figures are taken, so that the server dies while it is told.
const BEYOND: u64 = 5;

/// Sends so many receipts a second for so many seconds, kills the server, and looks for every acknowledged one.
pub(crate) fn run(rate: u64, seconds: u64) {
    let scene = Scene::new(rate * (seconds + BEYOND), None);
    scene.send();
    let paths: Arc<[Box<str>]> = scene.paths().into();
    let mut server = Server::start(&scene);
    let began = Instant::now() + Duration::from_millis(100);
    let tellers: Vec<_> = (0..CONNECTIONS)
        .map(|first| {
            let (paths, door) = (Arc::clone(&paths), scene.door);
            std::thread::spawn(move || {
                let connection = Connection::open(door).expect("the door is open");
                tell(connection, &paths, first, |index| began + Duration::from_micros(index * 1_000_000 / rate))
            })
        })
        .collect();
    std::thread::sleep((began + Duration::from_secs(seconds)).saturating_duration_since(Instant::now()));
    let (cpu, peak) = (server.cpu(), server.peak());
    server.kill();
    let told: Vec<Told> = tellers.into_iter().flat_map(|teller| teller.join().expect("it ends")).collect();
    let delivered: HashSet<u64> = scene.ids_in("delivered").into_iter().collect();
    let id = |told: &Told| id_of(&paths[told.index as usize]).parse::<u64>().expect("a number");
    let lost = told.iter().filter(|told| !delivered.contains(&id(told))).count();
    let within = |told: &&Told| told.index < rate * seconds;
    let mut waits: Vec<Duration> = told.iter().filter(within).map(|told| told.waited).collect();
    waits.sort();
    let of = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    println!("receipts at {rate}/s for {seconds} s over {CONNECTIONS} connections:");
    println!("  acknowledged within that time: {:.0}/s", waits.len() as f64 / seconds as f64);
    println!("  from due to acknowledged: median {:.1} ms, p99 {:.1} ms, at most {:.1} ms", of(0.5), of(0.99), of(1.0));
    println!(
        "  CPU of the server: {:.1} µs a receipt; {} MiB at most",
        cpu.as_secs_f64() * 1e6 / told.len() as f64,
        peak
    );
    println!("  of {} acknowledged before SIGKILL, not in the ledger: {lost}", told.len());
    assert_eq!(lost, 0, "what was acknowledged is in the ledger");
}

/// A receipt that was acknowledged.
struct Told {
    index: u64,
    /// From when it was due.
    waited: Duration,
}

/// Tells each message that is this connection's when it is due, until nobody answers any more.
fn tell(mut connection: Connection, paths: &[Box<str>], first: u64, due: impl Fn(u64) -> Instant) -> Vec<Told> {
    let mut told = Vec::new();
    let at = jiff::Timestamp::now().to_string();
    for index in (first..paths.len() as u64).step_by(CONNECTIONS as usize) {
        let due = due(index);
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        match connection.delivered(&paths[index as usize], &at) {
            Ok(status) => assert_eq!(status, 200, "a receipt is not taken"),
            Err(_) => break,
        }
        told.push(Told { index, waited: due.elapsed() });
    }
    told
}
