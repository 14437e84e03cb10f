//! SIGKILL at random moments over three workers and whoever began the run, again and again, until it is through.

use super::worker;
use crate::recovery::{Tally, Witness};
use crate::support::{Chance, Folder, Process, campaign, phone, until};

/// How many workers send a run besides who began it.
const WORKERS: usize = 3;
/// Recipients of a campaign.
const ROWS: usize = 600;
/// The most kills of one campaign, after which it is left to come to its end.
const KILLS_OF_ONE: usize = 12;

#[test]
fn twelve_kills_of_three_workers_lose_and_repeat_nothing() {
    kill(KILLS_OF_ONE);
}

#[test]
#[ignore = "takes some minutes"]
fn five_hundred_kills_of_three_workers_lose_and_repeat_nothing() {
    kill(500);
}

fn kill(kills: usize) {
    let (mut chance, mut killed) = (Chance::seeded(), 0);
    while killed < kills {
        killed += kill_one_campaign((kills - killed).min(KILLS_OF_ONE), &mut chance);
    }
}

/// Kills processes that send a campaign, at most so many, lets it end, judges it, and tells how many were killed.
fn kill_one_campaign(most: usize, chance: &mut Chance) -> usize {
    let witness = Witness::start();
    // Shares of two hundred rows.
    let sale = campaign().to(ROWS).batches_of(5).delivery("rate: 100/s").through(&witness).write();
    let mut workers: Vec<Process> = (0..WORKERS).map(|_| worker(&sale)).collect();
    let mut run = sale.start(&["--shared"]);
    let mut killed = 0;
    while killed < most && run.is_running() {
        let enough = witness.arrived() + 1 + chance.below(ROWS as u64 / 12) as usize;
        until("the moment to kill", || witness.arrived() >= enough || !run.is_running());
        match chance.below(WORKERS as u64 + 1) as usize {
            // Whoever comes after it goes on with the run.
            WORKERS => {
                drop(run.kill());
                run = sale.start(&[]);
            }
            at => {
                let gone = std::mem::replace(&mut workers[at], started(&sale));
                drop(gone.kill());
            }
        }
        killed += 1;
    }
    let ended = run.finish();
    assert!(matches!(ended.code(), Some(0 | 4)), "{}", ended.told());
    drop(workers);
    // What a killed starter's successor found in doubt may have been answered meanwhile.
    let last = sale.run(&[]);
    assert!(matches!(last.code(), Some(0 | 4)), "{}", last.told());
    assert_eq!(witness.tally(&sale, (2..ROWS + 2).map(phone)), Tally::default());
    witness.doubts(&sale);
    killed
}

/// A worker that nobody waits for.
fn started(sale: &Folder) -> Process {
    Process::start(sale.command(&["worker"]))
}
