//! Benchmark of request timing.
//!
//! `cargo bench --bench timing -- ROWS ROUNDS` measures, as medians of ROUNDS runs (default 5):
//!
//! - the time from the start of `campaign run` to the first request, for 10 recipients and for ROWS (default 1,000,000);
//! - the delay of 1,000 requests against an even schedule, at a rate limit of 100 messages/s and one message per
//!   request, and the rate that was reached (the schedule has 98 messages/s, the share of the limit that a run uses);
//! - the time from the start of `campaign run` to the first new request, after a run to ROWS recipients was killed
//!   halfway.
//!
//! `BENCH_PROGRAM` names another program to measure. Linux only.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

#[path = "common/arguments.rs"]
mod arguments;
#[path = "common/gateway.rs"]
mod gateway;
#[path = "common/list.rs"]
mod list;
#[path = "common/scene.rs"]
mod scene;

use std::fs;
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arguments::Arguments;
use scene::Scene;

/// Recipients of a small campaign.
const FEW: u64 = 10;
/// The rate limit, in messages per second.
const LIMIT: u64 = 100;
/// The share of the limit that a run uses, as docs/sending.md says.
const TARGET_SHARE: f64 = 0.98;
/// Requests that are compared with the schedule.
const REQUESTS: u64 = 1_000;
/// The maximum wait for a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);

/// A gateway that records when each request arrives.
struct Arrivals {
    times: Arc<Mutex<Vec<Instant>>>,
    server: SocketAddr,
}

impl Arrivals {
    fn start() -> Self {
        let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
        let recorder = Arc::clone(&times);
        let server = gateway::start(Arc::new(move |_| {
            recorder.lock().expect("no panic while it is locked").push(Instant::now());
        }));
        Self { times, server }
    }

    fn take(&self) -> Vec<Instant> {
        std::mem::take(&mut *self.times.lock().expect("no panic while it is locked"))
    }

    fn count(&self) -> usize {
        self.times.lock().expect("no panic while it is locked").len()
    }

    /// Waits until `requests` requests have arrived.
    fn wait_for(&self, requests: usize) {
        let start = Instant::now();
        while self.count() < requests {
            assert!(start.elapsed() < REQUEST_TIMEOUT, "{requests} requests did not arrive within {REQUEST_TIMEOUT:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn main() {
    let arguments = Arguments::from_env();
    let (rows, rounds) = (arguments.number(0, 1_000_000), arguments.number(1, 5).max(1));
    let arrivals = Arrivals::start();
    println!("medians of {rounds} runs\n");
    for rows in [FEW, rows] {
        let times: Vec<Duration> = (0..rounds).map(|_| time_first_request(&arrivals, rows)).collect();
        print_time(&format!("first request, {rows} recipients"), median(times));
    }
    let timings: Vec<RequestTiming> = (0..rounds).map(|_| measure_timing(&arrivals)).collect();
    print_time(&format!("delay at {LIMIT}/s, median"), median(timings.iter().map(|timing| timing.median).collect()));
    print_time(&format!("delay at {LIMIT}/s, p99"), median(timings.iter().map(|timing| timing.p99).collect()));
    let slowest = timings.iter().map(|timing| timing.rate).fold(f64::INFINITY, f64::min);
    println!("{:<50} {slowest:>10.1} messages/s", format!("lowest rate at {LIMIT}/s"));
    let times: Vec<Duration> = (0..rounds).map(|_| time_resumed_request(&arrivals, rows)).collect();
    print_time(&format!("first request after SIGKILL, {rows} recipients"), median(times));
}

fn print_time(name: &str, time: Duration) {
    println!("{name:<50} {:>10.1} ms", time.as_secs_f64() * 1e3);
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn start_run(scene: &Scene) -> Child {
    let mut command = scene.command(&["run", "bench.yaml", "--json"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
}

/// The time from the start of a run to its first request.
fn time_first_request(arrivals: &Arrivals, rows: u64) -> Duration {
    let scene = Scene::new(rows, arrivals.server, "unlimited");
    arrivals.take();
    let start = Instant::now();
    let mut run = start_run(&scene);
    assert!(run.wait().expect("the exit status").success());
    scene.assert_all_accepted(rows);
    arrivals.take()[0].duration_since(start)
}

/// How evenly a run sent its requests.
struct RequestTiming {
    /// The median delay against the schedule.
    median: Duration,
    /// The 99th percentile of the delay.
    p99: Duration,
    /// The rate that was reached, in messages per second.
    rate: f64,
}

/// Measures how evenly a run sends its requests.
///
/// The schedule starts at the time that makes the smallest delay zero, so no request is ahead of it.
fn measure_timing(arrivals: &Arrivals) -> RequestTiming {
    let scene = Scene::new(REQUESTS, arrivals.server, &format!("{LIMIT}/s"));
    use_single_message_requests(&scene);
    arrivals.take();
    assert!(start_run(&scene).wait().expect("the exit status").success());
    scene.assert_all_accepted(REQUESTS);
    let mut times = arrivals.take();
    times.sort();
    let since_first = |time: &Instant| time.duration_since(times[0]).as_secs_f64();
    let scheduled = |number: usize| number as f64 / (LIMIT as f64 * TARGET_SHARE);
    let mut delays: Vec<f64> =
        times.iter().enumerate().map(|(number, time)| since_first(time) - scheduled(number)).collect();
    delays.sort_by(f64::total_cmp);
    let delay = |index: usize| Duration::from_secs_f64(delays[index] - delays[0]);
    let rate = (times.len() - 1) as f64 / since_first(&times[times.len() - 1]);
    RequestTiming { median: delay(delays.len() / 2), p99: delay(delays.len() * 99 / 100), rate }
}

/// Changes the campaign so that each request contains one message.
fn use_single_message_requests(scene: &Scene) {
    let path = scene.path().join("bench.yaml");
    let campaign = fs::read_to_string(&path).expect("the campaign");
    fs::write(path, campaign.replace("batch: 100", "batch: 1")).expect("the campaign is written");
}

/// The time from the start of a resumed run to its first request. The previous run was killed halfway.
fn time_resumed_request(arrivals: &Arrivals, rows: u64) -> Duration {
    let scene = Scene::new(rows, arrivals.server, "unlimited");
    arrivals.take();
    let mut run = start_run(&scene);
    // Each request contains 100 messages, so this is half of the requests.
    arrivals.wait_for((rows / 200) as usize);
    run.kill().expect("the run is still sending");
    run.wait().expect("the exit status");
    // Wait until the gateway has read the requests that were in flight, so that they are not measured.
    std::thread::sleep(Duration::from_millis(200));
    arrivals.take();
    let start = Instant::now();
    let mut run = start_run(&scene);
    run.wait().expect("the exit status");
    arrivals.take()[0].duration_since(start)
}
