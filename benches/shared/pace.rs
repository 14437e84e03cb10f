//! One rate that several processes keep together: measured where the bytes arrive, which the machine's other work delays now
//! and then by some hundredths of a second. So what was promised is held against ten seconds, give or take as much, and a
//! second is only shown.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::gateway;
use crate::scene::Scene;

/// The window that is held against the promise.
const WINDOW: Duration = Duration::from_secs(10);
/// How late a message may be read that left in time.
const READ_LATE: Duration = Duration::from_millis(50);
/// Operations of an envelope.
const ENVELOPE: usize = 100;
const ID: &[u8] = b"\"id\":";

/// Sends for so many seconds at this rate by one, two and four processes, and prints how much of it they used, and the most
/// that arrived in any second.
pub(crate) fn keep(database: &Database, rate: u64, seconds: u64) {
    let arrived: Arc<Mutex<Vec<(Instant, usize)>>> = Arc::default();
    let noted = Arc::clone(&arrived);
    let server = gateway::start(Arc::new(move |body: &[u8]| {
        let operations = body.windows(ID.len()).filter(|window| *window == ID).count();
        noted.lock().expect("nobody panics with it").push((Instant::now(), operations));
    }));
    println!("{rate} messages/s for {seconds} s, kept by all processes together\n");
    println!("{:<10} {:>10} {:>18} {:>12} {:>18}", "processes", "used", "most in 10 s", "promise", "in a second");
    for processes in [1, 2, 4] {
        arrived.lock().expect("nobody panics with it").clear();
        let rows = rate * seconds;
        let scene = Scene::new(rows, server, &format!("{rate}/s"));
        let ledger = database.ledger();
        let command = |arguments: &[&str]| {
            let mut command = scene.command(arguments);
            command.args(["--ledger", &ledger]).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let begun = command(&["run", "bench.yaml", "--shared"]).spawn();
        let mut run = begun.expect("the program starts");
        let mut workers: Vec<_> = (1..processes).map(|_| command(&["worker"]).spawn().expect("it starts")).collect();
        assert!(run.wait().expect("it can be waited for").success());
        for worker in &mut workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
        scene.assert_all_accepted(rows);
        database.remove(&ledger);
        let mut envelopes = std::mem::take(&mut *arrived.lock().expect("nobody panics with it"));
        envelopes.sort_by_key(|(at, _)| *at);
        let (most, in_a_second) = (most_in(WINDOW, &envelopes), most_in(Duration::from_secs(1), &envelopes));
        // Any window: the rate, and an envelope of each process.
        let promise = rate as usize * WINDOW.as_secs() as usize + processes * ENVELOPE;
        let used = 100.0 * used(&envelopes, rate, processes);
        println!("{processes:<10} {used:>9.1}% {most:>18} {promise:>12} {in_a_second:>18}");
        let read_late = (rate as f64 * READ_LATE.as_secs_f64()) as usize;
        assert!(most <= promise + read_late, "more than was promised");
    }
    println!();
}

/// How much of the rate was used from when all processes had begun until the first ran out: the middle of the run.
fn used(envelopes: &[(Instant, usize)], rate: u64, processes: usize) -> f64 {
    let (Some(first), Some(last)) = (envelopes.first(), envelopes.last()) else { return 0.0 };
    // The first messages go alone, and workers look for a run each second.
    let margin = Duration::from_secs(if processes == 1 { 1 } else { 3 });
    let (from, until) = (first.0 + margin, last.0 - Duration::from_secs(1));
    let sent: usize = envelopes.iter().filter(|(at, _)| (from..until).contains(at)).map(|(_, count)| count).sum();
    sent as f64 / ((until - from).as_secs_f64() * rate as f64)
}

fn most_in(window: Duration, envelopes: &[(Instant, usize)]) -> usize {
    let (mut most, mut within, mut oldest) = (0, 0, 0);
    for (at, count) in envelopes {
        within += count;
        while *at - envelopes[oldest].0 >= window {
            within -= envelopes[oldest].1;
            oldest += 1;
        }
        most = most.max(within);
    }
    most
}
