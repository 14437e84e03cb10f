//! Comparison of the results with the sandbox journal after webhook faults and server kills.

use std::collections::HashMap;
use std::time::Duration;

use super::Hooked;
use crate::support::{Chance, JournalTail, Process, Results, SandboxProcess, campaign, until, until_within};

/// Two channels, neither of which delivers everything.
const CHANNELS: &str = "  - viber: { signature: OlenaCo, message: Hi }\n  - sms: { signature: OlenaCo, message: Hi }";
/// The beginning of every scenario.
const BEGINNING: &str = "speed: 60\nchannels: { viber: { delivered: 70%, read: 80% }, sms: { delivered: 90% } }\n";
/// The timeout of a step, far longer than any step takes.
const STEP_TIMEOUT: Duration = Duration::from_secs(1_200);

/// A fault in the delivery of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Twice,
    Late,
    Reordered,
    /// Webhooks about numbers that end in 3 are lost.
    Lost,
    /// All webhooks arrive when the server starts after the run.
    AllAtOnce,
}

impl Fault {
    fn scenario(self) -> String {
        let fault = match self {
            Fault::Twice => "faults: [{ when: { share: 50% }, webhook: twice }]",
            Fault::Late => "faults: [{ when: { share: 50% }, webhook: late, by: 3m }]",
            Fault::Reordered => "faults: [{ when: {}, webhook: reordered }]",
            Fault::Lost => "faults: [{ when: { suffix: \"3\" }, webhook: lost }]",
            Fault::AllAtOnce => "",
        };
        // One second of real time is a minute in the sandbox. With `AllAtOnce`, the server is down until the run has
        // ended, so the gateway waits longer between attempts.
        let wait = if self == Fault::AllAtOnce { "15m" } else { "30s" };
        // Failures of channels before the last one are reported, too.
        format!("{BEGINNING}webhooks: {{ retry: [{}], intermediate: true }}\n{fault}\n", [wait; 50].join(", "))
    }
}

/// A message according to the journal.
#[derive(Default)]
struct Message {
    has_lost_webhooks: bool,
    /// The gateway's word for the status of the message.
    status: String,
    /// The status words that the server acknowledged.
    acknowledged: Vec<String>,
}

impl Message {
    fn is_acknowledged(&self) -> bool {
        self.acknowledged.contains(&self.status)
    }
}

/// All messages of the journal, by the gateway's identifier.
struct JournalState {
    journal: JournalTail,
    messages: HashMap<String, Message>,
    /// The number of acknowledged webhooks.
    acknowledged: usize,
}

impl JournalState {
    fn of(sandbox: &SandboxProcess) -> Self {
        Self { journal: sandbox.tail(), messages: HashMap::new(), acknowledged: 0 }
    }

    /// Reads the new lines of the journal.
    fn read(&mut self, fault: Fault) {
        for line in self.journal.read_new_lines() {
            let Some(msg_id) = line["msg_id"].as_u64() else { continue };
            let message = self.messages.entry(msg_id.to_string()).or_default();
            let read_status = || line["status"].as_str().expect("a word").to_owned();
            match line["event"].as_str().expect("an event") {
                "operation" => {
                    let ends_in_3 = line["phone"].as_str().is_some_and(|phone| phone.ends_with('3'));
                    message.has_lost_webhooks = fault == Fault::Lost && ends_in_3;
                }
                "status" => message.status = read_status(),
                "webhook" if line["result"] == 200 => {
                    message.acknowledged.push(read_status());
                    self.acknowledged += 1;
                }
                _ => {}
            }
        }
    }

    /// Whether the journal has this number of messages and the server acknowledged the latest status of each.
    /// Messages with lost webhooks need no acknowledgement.
    fn is_complete(&self, messages: usize) -> bool {
        self.messages.len() == messages
            && self.messages.values().all(|message| message.has_lost_webhooks || message.is_acknowledged())
    }

    /// Whether the results agree with the acknowledged webhooks. If webhooks are lost, the server can poll the status.
    fn agrees_with_acknowledged(&self, results: &Results) -> bool {
        results.rows.iter().all(|row| {
            let message = &self.messages[&row["msg_id"]];
            let latest = message.acknowledged.iter().map(|word| state(word)).max_by_key(|state| state_rank(state));
            row["state"] == latest.unwrap_or("accepted")
                || (message.has_lost_webhooks && row["state"] == state(&message.status))
        })
    }

    /// Whether the results have the latest status of every message in the journal.
    fn agrees_with_latest(&self, results: &Results) -> bool {
        results.rows.iter().all(|row| row["state"] == state(&self.messages[&row["msg_id"]].status))
    }
}

/// The row state for the gateway's word for a status.
fn state(word: &str) -> &'static str {
    match word {
        "READ" | "REPLIED" => "read",
        "DELIVERED" => "delivered",
        "ACCEPTED" | "QUEUED" => "accepted",
        _ => "failed",
    }
}

fn state_rank(state: &str) -> usize {
    ["accepted", "failed", "delivered", "read"].iter().position(|known| *known == state).expect("a state")
}

/// Waits until a command ends; some messages of its run might not be delivered.
fn wait_for_exit(mut process: Process) {
    until_within(STEP_TIMEOUT, "the command ends", || !process.is_running());
    let ended = process.finish();
    assert!(matches!(ended.code(), Some(0 | 3)), "{}", ended.details());
}

/// Sends messages with a fault, kills the server several times, and compares the results with the journal.
fn compare_after_kills(fault: Fault, messages: usize, kills: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("scenario.yaml");
    std::fs::write(&scenario, fault.scenario()).expect("a file");
    let sandbox = SandboxProcess::start_with(&["--scenario", scenario.to_str().expect("a path")]);
    let hooked = Hooked::write(campaign().to(messages).channels(CHANNELS).through(&sandbox));
    let mut journal = JournalState::of(&sandbox);
    let early_server = (fault != Fault::AllAtOnce).then(|| hooked.serve());
    let run = hooked.sale.start(&[]);
    let (mut server, run) = match early_server {
        Some(server) => (server, Some(run)),
        None => {
            wait_for_exit(run);
            (hooked.serve(), None)
        }
    };
    let mut chance = Chance::seeded();
    for _ in 0..kills {
        let step = chance.below((messages / (kills + 1)).max(1) as u64);
        let target = journal.acknowledged + 1 + usize::try_from(step).expect("a few");
        until_within(STEP_TIMEOUT, "more webhooks are acknowledged", || {
            journal.read(fault);
            journal.acknowledged >= target || journal.is_complete(messages)
        });
        server.end("KILL");
        server = hooked.serve();
    }
    if let Some(run) = run {
        wait_for_exit(run);
    }
    until_within(STEP_TIMEOUT, "all webhooks are acknowledged", || {
        journal.read(fault);
        journal.is_complete(messages)
    });
    until(&format!("{fault:?}: the results agree with the acknowledged webhooks"), || {
        journal.read(fault);
        journal.agrees_with_acknowledged(&hooked.results())
    });
    if fault == Fault::Lost {
        wait_for_exit(Process::start(hooked.sale.command(&["reconcile", "sale", "--all"])));
    }
    journal.read(fault);
    assert!(journal.agrees_with_latest(&hooked.results()), "{fault:?}: {:?}", hooked.results().counts());
    server.end("TERM").exits(0);
}

const FAULTS: [Fault; 5] = [Fault::Twice, Fault::Late, Fault::Reordered, Fault::Lost, Fault::AllAtOnce];

#[test]
fn results_match_the_journal_after_the_server_is_killed() {
    for fault in FAULTS {
        compare_after_kills(fault, 200, 3);
    }
}

/// The same comparison with 100,000 messages and 20 kills of the server.
mod a_hundred_thousand {
    use super::{Fault, compare_after_kills};

    #[test]
    #[ignore = "minutes"]
    fn repeated_receipts_agree_with_the_journal() {
        compare_after_kills(Fault::Twice, 100_000, 20);
    }

    #[test]
    #[ignore = "minutes"]
    fn late_receipts_agree_with_the_journal() {
        compare_after_kills(Fault::Late, 100_000, 20);
    }

    #[test]
    #[ignore = "minutes"]
    fn reordered_receipts_agree_with_the_journal() {
        compare_after_kills(Fault::Reordered, 100_000, 20);
    }

    #[test]
    #[ignore = "minutes"]
    fn missing_receipts_agree_with_the_journal() {
        compare_after_kills(Fault::Lost, 100_000, 20);
    }

    #[test]
    #[ignore = "minutes"]
    fn simultaneous_receipts_agree_with_the_journal() {
        compare_after_kills(Fault::AllAtOnce, 100_000, 20);
    }
}
