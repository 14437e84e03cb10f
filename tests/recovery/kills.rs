//! SIGKILL at random moments, again and again, until the run is through.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::support::{Chance, Draft, Folder, Gateway, Reachable, SandboxProcess, campaign, until};

/// How often each run is killed; the stories below add up to 54.
const KILLS: u64 = 9;

/// Somebody who saw what arrived at the gateway, apart from what the runner says.
trait Witness: Reachable {
    /// A figure that grows with every envelope.
    fn progress(&self) -> u64;
    /// How often each number got a message.
    fn messages(&self) -> BTreeMap<u64, usize>;
}

impl Witness for SandboxProcess {
    fn progress(&self) -> u64 {
        self.journal_size()
    }

    fn messages(&self) -> BTreeMap<u64, usize> {
        SandboxProcess::messages(self)
    }
}

impl Witness for Gateway {
    fn progress(&self) -> u64 {
        self.bytes_seen()
    }

    fn messages(&self) -> BTreeMap<u64, usize> {
        self.phones().into_iter().fold(BTreeMap::new(), |mut messages, phone| {
            *messages.entry(phone).or_default() += 1;
            messages
        })
    }
}

/// Kills the run of `draft` at random moments, lets it end, and judges it by what `witness` saw.
fn survives_kills(witness: &impl Witness, draft: Draft, rows: u64, taken: &str) {
    let mut chance = Chance::seeded();
    let sale = draft.through(witness).write();
    let mut interrupted = 0;
    for _ in 0..KILLS {
        interrupted += u64::from(kill_once(witness, &sale, &mut chance, rows));
        nobody_got_it_twice(witness);
    }
    assert!(interrupted > KILLS / 2, "the run was through before {KILLS} kills; give it more rows");
    let last = sale.run(&["--json"]);
    assert!(matches!(last.code(), Some(0 | 4 | 6)), "{}", last.told());
    nobody_got_it_twice(witness);
    judge(witness, &sale, rows, taken);
}

/// Starts the run and kills it, as chance has it: soon after the start, or after so much was sent.
/// Tells whether it was still running.
fn kill_once(witness: &impl Witness, sale: &Folder, chance: &mut Chance, rows: u64) -> bool {
    let soon = chance.below(4) == 0;
    let moment = Duration::from_micros(if soon { chance.below(150_000) } else { u64::from(u32::MAX) });
    let enough = witness.progress() + 1 + chance.below(rows * 150 / KILLS);
    let (began, mut run) = (Instant::now(), sale.start(&[]));
    until("the moment to kill", || began.elapsed() >= moment || witness.progress() >= enough || !run.is_running());
    spin(Duration::from_micros(chance.below(4_000)));
    run.kill().code().is_none()
}

/// Waits for less than a scheduler's tick, so that kills fall anywhere between two messages.
fn spin(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        std::hint::spin_loop();
    }
}

fn nobody_got_it_twice(witness: &impl Witness) {
    let twice: Vec<u64> =
        witness.messages().into_iter().filter(|(_, times)| *times > 1).map(|(phone, _)| phone).collect();
    assert!(twice.is_empty(), "{} numbers got it more than once, the first is {}", twice.len(), twice[0]);
}

/// Every row came to an end that is true to what was seen.
fn judge(witness: &impl Witness, sale: &Folder, rows: u64, taken: &str) {
    let results = sale.results();
    assert_eq!(results.rows.len() as u64, rows);
    let counts = results.counts();
    let known: BTreeSet<&str> = counts.keys().map(String::as_str).collect();
    assert!(known.is_subset(&BTreeSet::from([taken, "in_doubt"])), "{counts:?}");
    let messages = witness.messages();
    for row in &results.rows {
        let seen = messages.contains_key(&row["to"].parse().expect("a number"));
        assert!(seen || row["state"] == "in_doubt", "said to be sent and was not: {row:?}");
    }
    let in_doubt = counts.get("in_doubt").copied().unwrap_or_default();
    assert!(in_doubt < rows / 2, "doubt is for what was in flight: {counts:?}");
    let status = sale.campaign(&["status", "sale", "--json"]);
    assert_eq!(status.code(), Some(if in_doubt > 0 { 4 } else { 0 }), "{}", status.told());
    assert_eq!(status.json()["counts"][taken], counts[taken]);
}

/// A story for each endpoint and size of envelopes.
macro_rules! killed {
    ($($story:ident: $witness:expr, $draft:expr, $batch:literal, $rows:literal, $taken:literal;)+) => {$(
        #[test]
        fn $story() {
            survives_kills(&$witness, $draft.to($rows).batches_of($batch), $rows, $taken);
        }
    )+};
}

killed! {
    a_killed_run_of_single_messages_sends_nothing_twice:
        SandboxProcess::start(), campaign(), 1, 300, "accepted";
    a_killed_run_of_small_envelopes_sends_nothing_twice:
        SandboxProcess::start(), campaign(), 20, 2_000, "accepted";
    a_killed_run_of_large_envelopes_sends_nothing_twice:
        SandboxProcess::start(), campaign(), 100, 6_000, "accepted";
    a_killed_asynchronous_run_of_single_messages_sends_nothing_twice:
        Gateway::accepting(), campaign().asynchronous(), 1, 300, "queued";
    a_killed_asynchronous_run_of_small_envelopes_sends_nothing_twice:
        Gateway::accepting(), campaign().asynchronous(), 20, 2_000, "queued";
    a_killed_asynchronous_run_of_large_envelopes_sends_nothing_twice:
        Gateway::accepting(), campaign().asynchronous(), 100, 6_000, "queued";
}
