//! What receipts weigh on the disk, and what their results cost in memory.

use std::sync::Arc;
use std::time::Instant;

use crate::door::Connection;
use crate::process::measure;
use crate::scene::{Scene, id_of};
use crate::server::Server;

/// Connections that the gateway has open.
const CONNECTIONS: usize = 128;
/// Sends so many receipts as fast as they are taken, and weighs the ledger.
pub(crate) fn run(receipts: u64) {
    let scene = Scene::new(receipts, None);
    scene.send();
    let paths = scene.paths();
    let identifiers: usize = paths.iter().map(|path| id_of(path).len().min(9) + 1).sum();
    let paths: Arc<[Box<str>]> = paths.into();
    let before = scene.ledger_bytes();
    let server = Server::start(&scene);
    let began = Instant::now();
    let at = jiff::Timestamp::now().to_string();
    std::thread::scope(|scope| {
        for first in 0..CONNECTIONS {
            let (paths, at, door) = (&paths, &at, scene.door);
            scope.spawn(move || {
                let mut connection = Connection::open(door).expect("the door is open");
                for path in paths.iter().skip(first).step_by(CONNECTIONS) {
                    assert_eq!(connection.delivered(path, at).expect("an answer"), 200, "a receipt is not taken");
                }
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let peak = server.peak();
    server.end();
    let each = (scene.ledger_bytes() - before) as f64 / receipts as f64;
    let identifier = identifiers as f64 / receipts as f64;
    println!("{receipts} receipts, as fast as they are taken over {CONNECTIONS} connections:");
    println!("  {:.0}/s, the server with {} MiB at most", receipts as f64 / seconds, peak);
    println!("  {:.1} bytes each on the disk, {:.1} besides the gateway's identifier", each, each - identifier);
    let results = measure(scene.command(&["results", "bench"]), receipts);
    println!("  results of them: {:.0} rows/s, {} MiB at most", results.rate(), results.peak_kib / 1024);
    assert_eq!(scene.ids_in("delivered").len() as u64, receipts, "every receipt is in the results");
}
