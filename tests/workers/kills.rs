//! Kills of the starter and three workers of a shared run with SIGKILL, at random moments until the run is complete.

use super::start_worker;
use crate::recovery::{Tally, Witness};
use crate::support::{Chance, Folder, Process, campaign, phone, until};

/// The number of workers in addition to the starter.
const WORKERS: usize = 3;
/// The number of recipients.
const ROWS: usize = 600;
/// The maximum number of kills per campaign; afterwards its run can finish.
const KILLS_PER_CAMPAIGN: usize = 12;

#[test]
fn twelve_kills_of_three_workers_lose_and_repeat_nothing() {
    kill_repeatedly(KILLS_PER_CAMPAIGN);
}

#[test]
#[ignore = "takes some minutes"]
fn five_hundred_kills_of_three_workers_lose_and_repeat_nothing() {
    kill_repeatedly(500);
}

fn kill_repeatedly(kills: usize) {
    let (mut chance, mut killed) = (Chance::seeded(), 0);
    while killed < kills {
        killed += kill_one_campaign((kills - killed).min(KILLS_PER_CAMPAIGN), &mut chance);
    }
}

/// Kills at most `limit` senders of one campaign, lets the run finish, and checks the outcome.
/// Returns the number of kills.
fn kill_one_campaign(limit: usize, chance: &mut Chance) -> usize {
    let witness = Witness::start();
    // At this rate, a shard has 200 rows.
    let sale = campaign().to(ROWS).batches_of(5).delivery("rate: 100/s").through(&witness).write();
    let mut workers: Vec<Process> = (0..WORKERS).map(|_| start_worker(&sale)).collect();
    let mut run = sale.start(&["--shared"]);
    let mut killed = 0;
    while killed < limit && run.is_running() {
        let target = witness.arrivals() + 1 + chance.below(ROWS as u64 / 12) as usize;
        until("the moment to kill", || witness.arrivals() >= target || !run.is_running());
        match chance.below(WORKERS as u64 + 1) as usize {
            // The next process that starts the run resumes it.
            WORKERS => {
                drop(run.kill());
                run = sale.start(&[]);
            }
            index => {
                let old = std::mem::replace(&mut workers[index], start_worker_at_once(&sale));
                drop(old.kill());
            }
        }
        killed += 1;
    }
    let ended = run.finish();
    assert!(matches!(ended.code(), Some(0 | 4)), "{}", ended.details());
    drop(workers);
    // The gateway might by now report messages that were in doubt for the resumed run.
    let last = sale.run(&[]);
    assert!(matches!(last.code(), Some(0 | 4)), "{}", last.details());
    assert_eq!(witness.tally(&sale, (2..ROWS + 2).map(phone)), Tally::default());
    witness.doubts(&sale);
    killed
}

/// Starts a worker without waiting until it looks for runs.
fn start_worker_at_once(sale: &Folder) -> Process {
    Process::start(sale.command(&["worker"]))
}
