//! SIGKILL at random moments, repeated until the run ends.

use std::time::{Duration, Instant};

use super::witness::{Tally, Witness};
use crate::support::{Chance, Folder, campaign, phone, until};

/// The number of kills in each story; the six stories kill 180 times.
const KILLS: u64 = 30;
/// The maximum number of kills per campaign; afterwards its run can finish.
const KILLS_PER_CAMPAIGN: u64 = 10;
/// The number of envelopes in flight, which is the maximum number that a kill can leave open.
const IN_FLIGHT: u64 = 2;

/// The settings of a campaign whose run is killed.
#[derive(Clone, Copy)]
struct Case {
    is_asynchronous: bool,
    batch: u64,
    /// The number of recipients: enough for several starts, each of which begins with small envelopes.
    rows: u64,
}

impl Case {
    /// Kills campaigns with these settings this number of times, and checks that each ends with correct results.
    fn survive_kills(self, kills: u64, chance: &mut Chance) {
        let mut killed = 0;
        for _ in 0..kills {
            if killed == kills {
                return;
            }
            killed += self.kill_repeatedly(KILLS_PER_CAMPAIGN.min(kills - killed), chance);
        }
        assert_eq!(killed, kills, "the runs ended before they could be killed; add rows");
    }

    /// Kills one campaign at most `limit` times, lets it end, checks its results, and returns the number of kills.
    fn kill_repeatedly(self, limit: u64, chance: &mut Chance) -> u64 {
        let witness = Witness::start();
        let draft = campaign().to(self.rows as usize).batches_of(self.batch as usize);
        let draft = if self.is_asynchronous { draft.asynchronous() } else { draft };
        let sale = draft.delivery(&format!("in_flight: {IN_FLIGHT}")).through(&witness).write();
        let mut kills = 0;
        while kills < limit && self.start_and_kill(&witness, &sale, chance) {
            kills += 1;
        }
        self.check_results(&witness, &sale, kills);
        kills
    }

    /// Starts the run and kills it after a short time or number of messages. Returns whether it was still running.
    fn start_and_kill(self, witness: &Witness, sale: &Folder, chance: &mut Chance) -> bool {
        let is_soon = chance.below(3) == 0;
        let moment = if is_soon { Duration::from_micros(chance.below(150_000)) } else { Duration::MAX };
        let enough = witness.arrivals() + 1 + chance.below(self.rows / 4) as usize;
        let (start, mut run) = (Instant::now(), sale.start(&[]));
        until("the moment to kill", || start.elapsed() >= moment || witness.arrivals() >= enough || !run.is_running());
        busy_wait(Duration::from_micros(chance.below(4_000)));
        run.kill().code().is_none()
    }

    /// Checks that the state of every row matches what arrived.
    fn check_results(self, witness: &Witness, sale: &Folder, kills: u64) {
        let last = sale.run(&["--json"]);
        assert!(matches!(last.code(), Some(0 | 3 | 4)), "{}", last.details());
        assert_eq!(witness.tally(sale, (2..self.rows as usize + 2).map(phone)), Tally::default());
        let doubts = witness.doubts(sale).len() as u64;
        assert!(
            doubts <= kills * IN_FLIGHT * self.batch,
            "{doubts} in doubt after {kills} kills: more than were in flight"
        );
        let status = sale.campaign(&["status", "sale", "--json"]);
        assert_eq!(status.code(), Some(if doubts > 0 { 4 } else { 0 }), "{}", status.details());
        assert_eq!(status.json()["counts"]["in_doubt"].as_u64().unwrap_or_default(), doubts);
    }
}

/// Waits for less than a scheduler tick, so that kills happen anywhere between two messages.
fn busy_wait(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// A story for each endpoint and envelope size.
macro_rules! killed {
    ($($story:ident: $asynchronous:literal, $batch:literal, $rows:literal;)+) => {
        const CASES: &[Case] = &[$(Case { is_asynchronous: $asynchronous, batch: $batch, rows: $rows }),+];

        $(
            #[test]
            fn $story() {
                Case { is_asynchronous: $asynchronous, batch: $batch, rows: $rows }.survive_kills(KILLS, &mut Chance::seeded());
            }
        )+
    };
}

killed! {
    killed_run_of_single_messages_sends_nothing_twice: false, 1, 40;
    killed_run_of_small_envelopes_sends_nothing_twice: false, 20, 300;
    killed_run_of_large_envelopes_sends_nothing_twice: false, 100, 1_000;
    killed_async_run_of_single_messages_sends_nothing_twice: true, 1, 40;
    killed_async_run_of_small_envelopes_sends_nothing_twice: true, 20, 300;
    killed_async_run_of_large_envelopes_sends_nothing_twice: true, 100, 1_000;
}

#[test]
#[ignore = "takes a quarter of an hour"]
fn ten_thousand_kills_lose_nothing_and_send_nothing_twice() {
    const ALL: u64 = 10_000;
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut chance = Chance::seeded();
                let share = ALL / threads + u64::from(thread < ALL % threads);
                for round in 0..share / KILLS_PER_CAMPAIGN + 1 {
                    let kills = KILLS_PER_CAMPAIGN.min(share - round * KILLS_PER_CAMPAIGN);
                    CASES[(round % CASES.len() as u64) as usize].survive_kills(kills, &mut chance);
                }
            });
        }
    });
}
