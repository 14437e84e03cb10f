//! A campaign without forged receipts, and with them beside it.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
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

/// Who gets the forged receipts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flood {
    /// Nobody: there are none.
    No,
    /// A server that only answers: what the flood itself takes from a campaign on the same machine.
    Bare,
    /// Ours.
    Ours,
}

/// Sends a campaign without forged receipts, with so many a second to a server that only answers, and with as many to
/// ours, for so many seconds each, in turn.
pub(crate) fn run(rate: u64, seconds: u64, rounds: u64) {
    println!("a campaign at {PACE}/s for {seconds} s, and {rate} forged receipts/s beside it:");
    let rounds: Vec<[Figures; 3]> = (0..rounds)
        .map(|_| {
            [Flood::No, Flood::Bare, Flood::Ours].map(|flood| {
                let (figures, told) = sent((rate, seconds), flood);
                println!("  {:.1}/s at {:.0} µs of CPU a message: {told}", figures.rate(), figures.cpu_each());
                figures
            })
        })
        .collect();
    for (name, flood) in [("a server that only answers", 1), ("ours", 2)] {
        let median = |of: fn(&Figures) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(|round| of(&round[flood]) / of(&round[0])).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        println!(
            "  {name} flooded / no flood, median of the rounds: {:.3} × the rate, {:.2} × the CPU",
            median(Figures::rate),
            median(Figures::cpu_each)
        );
    }
}

/// Sends a campaign beside a server, and tells what the forgers came to.
fn sent((rate, seconds): (u64, u64), flood: Flood) -> (Figures, String) {
    let scene = Scene::new(PACE * seconds, Some(PACE));
    let server = Server::start(&scene);
    let door = if flood == Flood::Bare { only_answers() } else { scene.door };
    let (ended, forged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    let forgers: Vec<_> = (0..if flood == Flood::No { 0 } else { FORGERS })
        .map(|first| {
            let (ended, forged) = (Arc::clone(&ended), Arc::clone(&forged));
            std::thread::spawn(move || {
                for index in (first..).step_by(FORGERS as usize) {
                    let due = began + Duration::from_micros(index * 1_000_000 / rate);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let path = format!("/h/bench@1/{}/AAAAAAAAAAAAAAAAAAAAAA", 1_000_000 + index);
                    let told = |mut door: Connection| door.delivered(&path, "2026-01-01T00:00:00Z");
                    let answer = Connection::open(door).and_then(told);
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
    let cpu = if flood == Flood::Ours { server.cpu().as_secs_f64() * 1e6 / each } else { 0.0 };
    let told = match flood {
        Flood::No => "no flood".to_owned(),
        Flood::Bare => format!("{:.0}/s to a server that only answers", each / began.elapsed().as_secs_f64()),
        Flood::Ours => format!("{:.0}/s to ours, {cpu:.0} µs of its CPU each", each / began.elapsed().as_secs_f64()),
    };
    for forger in forgers {
        forger.join().expect("a forger ends");
    }
    server.end();
    assert_eq!(scene.ids_in("accepted").len() as u64, PACE * seconds, "nobody believed a forged one");
    (figures, told)
}

/// A server that answers whoever comes and knows nothing.
fn only_answers() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port is free");
    let address = listener.local_addr().expect("a listener has an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // Who is gone already has no answer.
            let _ = stream.read(&mut [0; 1_024]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    address
}
