//! Benchmark of a campaign during a flood of forged receipts.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::client::Connection;
use crate::process::Figures;
use crate::scene::Scene;
use crate::server::Server;

/// Messages per second of the campaign.
const SEND_RATE: u64 = 1_000;
/// Concurrent senders of forged receipts.
const FORGERS: u64 = 16;

/// The target of the forged receipts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flood {
    /// No forged receipts.
    None,
    /// A minimal server. It shows how much the flood itself slows a campaign on the same machine.
    MinimalServer,
    /// The server of the campaign.
    CampaignServer,
}

/// Sends a campaign without forged receipts, with forged receipts to a minimal server, and with forged receipts to the
/// campaign's own server. `rate` is the number of forged receipts per second, `seconds` the duration of each campaign.
pub(crate) fn run(rate: u64, seconds: u64, rounds: u64) {
    println!("a campaign at {SEND_RATE}/s for {seconds} s, with {rate} forged receipts/s:");
    let rounds: Vec<[Figures; 3]> = (0..rounds)
        .map(|_| {
            [Flood::None, Flood::MinimalServer, Flood::CampaignServer].map(|flood| {
                let (figures, summary) = send_during(rate, seconds, flood);
                println!("  {:.1}/s at {:.0} µs of CPU per message: {summary}", figures.rate(), figures.cpu_per_row());
                figures
            })
        })
        .collect();
    for (name, index) in [("minimal server", 1), ("campaign server", 2)] {
        let median = |value: fn(&Figures) -> f64| {
            let mut values: Vec<f64> = rounds.iter().map(|round| value(&round[index]) / value(&round[0])).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        println!(
            "  {name} flooded / no flood, median of the rounds: {:.3} × the rate, {:.2} × the CPU",
            median(Figures::rate),
            median(Figures::cpu_per_row)
        );
    }
}

/// Sends a campaign during a flood, and summarizes the flood.
fn send_during(rate: u64, seconds: u64, flood: Flood) -> (Figures, String) {
    let scene = Scene::new(SEND_RATE * seconds, Some(SEND_RATE));
    let server = Server::start(&scene);
    let target = if flood == Flood::MinimalServer { start_minimal_server() } else { scene.endpoint };
    let (campaign_ended, forged_count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    let forgers: Vec<_> = (0..if flood == Flood::None { 0 } else { FORGERS })
        .map(|first| {
            let (campaign_ended, forged_count) = (Arc::clone(&campaign_ended), Arc::clone(&forged_count));
            std::thread::spawn(move || {
                for index in (first..).step_by(FORGERS as usize) {
                    let due = began + Duration::from_micros(index * 1_000_000 / rate);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    if campaign_ended.load(Ordering::Relaxed) {
                        return;
                    }
                    let path = format!("/h/bench@1/{}/AAAAAAAAAAAAAAAAAAAAAA", 1_000_000 + index);
                    let post = |mut connection: Connection| connection.post_delivered(&path, "2026-01-01T00:00:00Z");
                    let answer = Connection::open(target).and_then(post);
                    // If the server closes a connection before it reads the body, there might be no answer.
                    assert!(answer.is_err() || answer.is_ok_and(|status| status == 404 || status == 429));
                    forged_count.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let figures = scene.send();
    campaign_ended.store(true, Ordering::Relaxed);
    let total = forged_count.load(Ordering::Relaxed) as f64;
    let cpu = if flood == Flood::CampaignServer { server.cpu().as_secs_f64() * 1e6 / total } else { 0.0 };
    let summary = match flood {
        Flood::None => "no flood".to_owned(),
        Flood::MinimalServer => format!("{:.0}/s to the minimal server", total / began.elapsed().as_secs_f64()),
        Flood::CampaignServer => format!(
            "{:.0}/s to the campaign server, {cpu:.0} µs of its CPU each",
            total / began.elapsed().as_secs_f64()
        ),
    };
    for forger in forgers {
        forger.join().expect("the thread ends");
    }
    server.stop();
    assert_eq!(scene.ids_in("accepted").len() as u64, SEND_RATE * seconds, "a forged receipt changed a message");
    (figures, summary)
}

/// Starts a server that answers every request with 404.
fn start_minimal_server() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a loopback port is free");
    let address = listener.local_addr().expect("a listener has an address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            // A client that has disconnected gets no answer.
            let _ = stream.read(&mut [0; 1_024]);
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
    });
    address
}
