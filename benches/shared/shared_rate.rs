//! Benchmark of a rate limit that several processes share.
//!
//! The rate is measured where requests arrive. Other work on the machine sometimes delays them by hundredths of a
//! second. So the limit is checked over windows of ten seconds with a tolerance. The peak within one second is only
//! printed.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::database::Database;
use crate::gateway;
use crate::scene::Scene;

/// The window in which the rate limit is checked.
const WINDOW: Duration = Duration::from_secs(10);
/// The maximum delay between sending a message and reading it.
const READ_DELAY: Duration = Duration::from_millis(50);
/// Operations per envelope.
const ENVELOPE: usize = 100;
const ID: &[u8] = b"\"id\":";

/// The time at which an envelope arrived, and the number of its operations.
type Arrival = (Instant, usize);

/// Sends `rate` messages per second with one, two and four processes. Prints the used share of the rate and the peaks.
pub(crate) fn measure_shared_rate(database: &Database, rate: u64, seconds: u64) {
    let arrivals: Arc<Mutex<Vec<Arrival>>> = Arc::default();
    let recorder = Arc::clone(&arrivals);
    let server = gateway::start(Arc::new(move |body: &[u8]| {
        let operations = body.windows(ID.len()).filter(|window| *window == ID).count();
        recorder.lock().expect("no panic while it is locked").push((Instant::now(), operations));
    }));
    println!("{rate} messages/s for {seconds} s, shared by all processes\n");
    println!("{:<10} {:>10} {:>18} {:>12} {:>18}", "processes", "used", "peak in 10 s", "limit", "peak in 1 s");
    for processes in [1, 2, 4] {
        arrivals.lock().expect("no panic while it is locked").clear();
        let rows = rate * seconds;
        let scene = Scene::new(rows, server, &format!("{rate}/s"));
        let ledger = database.create_ledger();
        let command = |arguments: &[&str]| {
            let mut command = scene.command(arguments);
            command.args(["--ledger", &ledger]).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let child = command(&["run", "bench.yaml", "--shared"]).spawn();
        let mut run = child.expect("the program starts");
        let mut workers: Vec<_> =
            (1..processes).map(|_| command(&["worker"]).spawn().expect("a worker starts")).collect();
        assert!(run.wait().expect("the exit status").success());
        for worker in &mut workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
        scene.assert_all_accepted(rows);
        database.remove_ledger(&ledger);
        let mut envelopes = std::mem::take(&mut *arrivals.lock().expect("no panic while it is locked"));
        envelopes.sort_by_key(|(at, _)| *at);
        let (peak, peak_per_second) =
            (peak_within(WINDOW, &envelopes), peak_within(Duration::from_secs(1), &envelopes));
        // Any window can contain the rate and one more envelope of each process.
        let limit = rate as usize * WINDOW.as_secs() as usize + processes * ENVELOPE;
        let used = 100.0 * used_share(&envelopes, rate, processes);
        println!("{processes:<10} {used:>9.1}% {peak:>18} {limit:>12} {peak_per_second:>18}");
        let tolerance = (rate as f64 * READ_DELAY.as_secs_f64()) as usize;
        assert!(peak <= limit + tolerance, "the rate limit was exceeded");
    }
    println!();
}

/// The used share of the rate in the middle of the run, while all processes were sending.
fn used_share(envelopes: &[Arrival], rate: u64, processes: usize) -> f64 {
    let (Some(first), Some(last)) = (envelopes.first(), envelopes.last()) else { return 0.0 };
    // The run starts with warm-up messages, and workers check for a run once a second.
    let margin = Duration::from_secs(if processes == 1 { 1 } else { 3 });
    let (from, until) = (first.0 + margin, last.0 - Duration::from_secs(1));
    let sent: usize = envelopes.iter().filter(|(at, _)| (from..until).contains(at)).map(|(_, count)| count).sum();
    sent as f64 / ((until - from).as_secs_f64() * rate as f64)
}

/// The largest number of operations that arrived within any period of length `window`.
fn peak_within(window: Duration, envelopes: &[Arrival]) -> usize {
    let (mut peak, mut current, mut oldest) = (0, 0, 0);
    for (at, count) in envelopes {
        current += count;
        while *at - envelopes[oldest].0 >= window {
            current -= envelopes[oldest].1;
            oldest += 1;
        }
        peak = peak.max(current);
    }
    peak
}
