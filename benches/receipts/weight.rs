//! Storage benchmark of receipts: disk space in the ledger, and memory for the results.

use std::sync::Arc;
use std::time::Instant;

use crate::client::Connection;
use crate::process::measure;
use crate::scene::{Scene, message_id};
use crate::server::Server;

/// The number of connections through which the receipts are sent.
const CONNECTIONS: usize = 128;

/// Sends receipts at full speed, and measures the size of the ledger and the memory for the results.
pub(crate) fn run(receipts: u64) {
    let scene = Scene::new(receipts, None);
    scene.send();
    let paths = scene.take_paths();
    // The `msg_id` of the loopback gateway is a 1 and the last nine digits of the id.
    let id_bytes: usize = paths.iter().map(|path| message_id(path).len().min(9) + 1).sum();
    let paths: Arc<[Box<str>]> = paths.into();
    let before = scene.ledger_bytes();
    let server = Server::start(&scene);
    let began = Instant::now();
    let updated = jiff::Timestamp::now().to_string();
    std::thread::scope(|scope| {
        for first in 0..CONNECTIONS {
            let (paths, updated, endpoint) = (&paths, &updated, scene.endpoint);
            scope.spawn(move || {
                let mut connection = Connection::open(endpoint).expect("a connection");
                for path in paths.iter().skip(first).step_by(CONNECTIONS) {
                    let status = connection.post_delivered(path, updated).expect("an answer");
                    assert_eq!(status, 200, "a receipt is rejected");
                }
            });
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    let peak = server.peak();
    server.stop();
    let bytes_each = (scene.ledger_bytes() - before) as f64 / receipts as f64;
    let id_bytes_each = id_bytes as f64 / receipts as f64;
    println!("{receipts} receipts at full speed over {CONNECTIONS} connections:");
    println!("  {:.0}/s, peak memory of the server {} MiB", receipts as f64 / seconds, peak);
    println!("  {bytes_each:.1} bytes each on disk, {:.1} without the gateway's `msg_id`", bytes_each - id_bytes_each);
    let results = measure(scene.command(&["results", "bench"]), receipts);
    println!("  exporting the results: {:.0} rows/s, peak memory {} MiB", results.rate(), results.peak_kib / 1024);
    assert_eq!(scene.ids_in("delivered").len() as u64, receipts, "every receipt is in the results");
}
