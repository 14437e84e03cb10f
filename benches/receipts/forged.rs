//! A campaign with forged receipts beside it, and without.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::door::Connection;
use crate::process::Figures;
use crate::scene::Scene;
use crate::server::Server;

/// Messages that the campaign sends in a second.
const PACE: u64 = 1_000;
/// Forgers at the same time.
const FORGERS: u64 = 16;

/// Sends a campaign with so many forged receipts a second beside it and without any, for so many seconds, in turn.
pub(crate) fn run(rate: u64, seconds: u64, rounds: u64) {
    println!("a campaign at {PACE}/s for {seconds} s, and {rate} forged receipts/s beside it:");
    let pairs: Vec<(f64, f64)> = (0..rounds)
        .map(|_| {
            let (quiet, _) = sent(seconds, None);
            let (flooded, forged) = sent(seconds, Some(rate));
            println!(
                "  quiet {:.1}/s at {:.0} µs of CPU a message; flooded {:.1}/s at {:.0} µs, with {forged}",
                quiet.rate(),
                quiet.cpu_each(),
                flooded.rate(),
                flooded.cpu_each(),
            );
            (flooded.rate() / quiet.rate(), flooded.cpu_each() / quiet.cpu_each())
        })
        .collect();
    let median = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "  flooded / quiet, median of the pairs: {:.3} × the rate, {:.2} × the CPU",
        median(|pair| pair.0),
        median(|pair| pair.1)
    );
}

/// Sends a campaign beside a server, and tells what the forgers came to.
fn sent(seconds: u64, rate: Option<u64>) -> (Figures, String) {
    let scene = Scene::new(PACE * seconds, Some(PACE));
    let server = Server::start(&scene);
    let (ended, forged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    let forgers: Vec<_> = (0..rate.map_or(0, |_| FORGERS))
        .map(|first| {
            let (ended, forged, door, rate) = (Arc::clone(&ended), Arc::clone(&forged), scene.door, rate.unwrap_or(1));
            std::thread::spawn(move || {
                for index in (first..).step_by(FORGERS as usize) {
                    let due = began + Duration::from_micros(index * 1_000_000 / rate);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let path = format!("/h/bench@1/{}/AAAAAAAAAAAAAAAAAAAAAA", 1_000_000 + index);
                    let answer =
                        Connection::open(door).and_then(|mut door| door.delivered(&path, "2026-01-01T00:00:00Z"));
                    // A connection that is closed before its body was read may end without an answer.
                    assert!(answer.is_err() || answer.is_ok_and(|status| status == 404 || status == 429));
                    forged.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let figures = scene.send();
    ended.store(true, Ordering::Relaxed);
    let each = forged.load(Ordering::Relaxed) as f64;
    let told = format!(
        "{:.0} forged/s, {:.0} µs of the server's CPU each",
        each / began.elapsed().as_secs_f64(),
        server.cpu().as_secs_f64() * 1e6 / each.max(1.0)
    );
    for forger in forgers {
        forger.join().expect("a forger ends");
    }
    server.end();
    assert_eq!(scene.ids_in("accepted").len() as u64, PACE * seconds, "nobody believed a forged one");
    (figures, told)
}
