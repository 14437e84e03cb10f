//! The webhooks of the sandbox, taken by a server: what its journal says is what the results say, whatever kills the server.

use std::collections::HashMap;
use std::time::Duration;

use super::Hooked;
use crate::support::{Chance, JournalTail, Process, Results, SandboxProcess, campaign, until, until_within};

/// Two channels, of which neither delivers everything.
const CHANNELS: &str = "  - viber: { signature: OlenaCo, message: Hi }\n  - sms: { signature: OlenaCo, message: Hi }";
/// What every scenario begins with.
const BEGINNING: &str = "speed: 60\nchannels: { viber: { delivered: 70%, read: 80% }, sms: { delivered: 90% } }\n";
/// Far longer than any single step takes.
const LONGEST: Duration = Duration::from_secs(1_200);

/// What goes wrong with webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Twice,
    Late,
    Reordered,
    /// Of the numbers that end in 3.
    Lost,
    /// They come when the server begins, which was not there while the messages were sent.
    AllAtOnce,
}

impl Trouble {
    fn scenario(self) -> String {
        let fault = match self {
            Trouble::Twice => "faults: [{ when: { share: 50% }, webhook: twice }]",
            Trouble::Late => "faults: [{ when: { share: 50% }, webhook: late, by: 3m }]",
            Trouble::Reordered => "faults: [{ when: {}, webhook: reordered }]",
            Trouble::Lost => "faults: [{ when: { suffix: \"3\" }, webhook: lost }]",
            Trouble::AllAtOnce => "",
        };
        // A minute of the messages is a second. The server is away for moments, or until the run has ended.
        let wait = if self == Trouble::AllAtOnce { "15m" } else { "30s" };
        // Every channel that fails before the last one is told too.
        format!("{BEGINNING}webhooks: {{ retry: [{}], intermediate: true }}\n{fault}\n", [wait; 50].join(", "))
    }
}

/// What the journal says of a message.
#[derive(Default)]
struct Message {
    lost: bool,
    /// Its status, in the gateway's word.
    status: String,
    /// The words that were acknowledged.
    acknowledged: Vec<String>,
}

impl Message {
    fn is_told(&self) -> bool {
        self.acknowledged.contains(&self.status)
    }
}

/// What the journal says of every message, by the gateway's identifier.
struct Truth {
    journal: JournalTail,
    messages: HashMap<String, Message>,
    /// How many webhooks were acknowledged.
    acknowledged: usize,
}

impl Truth {
    fn of(sandbox: &SandboxProcess) -> Self {
        Self { journal: sandbox.tail(), messages: HashMap::new(), acknowledged: 0 }
    }

    /// Reads on.
    fn read(&mut self, trouble: Trouble) {
        for line in self.journal.more() {
            let Some(msg_id) = line["msg_id"].as_u64() else { continue };
            let message = self.messages.entry(msg_id.to_string()).or_default();
            let word = || line["status"].as_str().expect("a word").to_owned();
            match line["event"].as_str().expect("an event") {
                "operation" => {
                    let ends_in_3 = line["phone"].as_str().is_some_and(|phone| phone.ends_with('3'));
                    message.lost = trouble == Trouble::Lost && ends_in_3;
                }
                "status" => message.status = word(),
                "webhook" if line["result"] == 200 => {
                    message.acknowledged.push(word());
                    self.acknowledged += 1;
                }
                _ => {}
            }
        }
    }

    /// Whether there are so many messages, and of each was told what became of it, unless that is lost.
    fn is_through(&self, messages: usize) -> bool {
        self.messages.len() == messages && self.messages.values().all(|message| message.lost || message.is_told())
    }

    /// Whether the results say of every message what was acknowledged of it, and no more. Of the others a server asks by itself.
    fn was_kept(&self, results: &Results) -> bool {
        results.rows.iter().all(|row| {
            let message = &self.messages[&row["msg_id"]];
            let furthest = message.acknowledged.iter().map(|word| state(word)).max_by_key(|state| how_far(state));
            row["state"] == furthest.unwrap_or("accepted") || (message.lost && row["state"] == state(&message.status))
        })
    }

    /// Whether the results say of every message what became of it.
    fn is_known(&self, results: &Results) -> bool {
        results.rows.iter().all(|row| row["state"] == state(&self.messages[&row["msg_id"]].status))
    }
}

/// The state of a message of which the gateway tells this.
fn state(word: &str) -> &'static str {
    match word {
        "READ" | "REPLIED" => "read",
        "DELIVERED" => "delivered",
        "ACCEPTED" | "QUEUED" => "accepted",
        _ => "failed",
    }
}

fn how_far(state: &str) -> usize {
    ["accepted", "failed", "delivered", "read"].iter().position(|known| *known == state).expect("a state")
}

/// Waits for the end of a command about a run, of which some messages did not arrive.
fn ended(mut process: Process) {
    until_within(LONGEST, "it ends", || !process.is_running());
    let ended = process.finish();
    assert!(matches!(ended.code(), Some(0 | 3)), "{}", ended.told());
}

/// Sends so many messages while this goes wrong, kills the server so often meanwhile, and compares.
fn play(trouble: Trouble, messages: usize, kills: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("scenario.yaml");
    std::fs::write(&scenario, trouble.scenario()).expect("a file");
    let sandbox = SandboxProcess::start_with(&["--scenario", scenario.to_str().expect("a path")]);
    let hooked = Hooked::write(campaign().to(messages).channels(CHANNELS).through(&sandbox));
    let mut truth = Truth::of(&sandbox);
    let started = (trouble != Trouble::AllAtOnce).then(|| hooked.serve());
    let run = hooked.sale.start(&[]);
    let (mut server, run) = match started {
        Some(server) => (server, Some(run)),
        None => {
            ended(run);
            (hooked.serve(), None)
        }
    };
    let mut chance = Chance::seeded();
    for _ in 0..kills {
        let some = chance.below((messages / (kills + 1)).max(1) as u64);
        let enough = truth.acknowledged + 1 + usize::try_from(some).expect("a few");
        until_within(LONGEST, "some more are acknowledged", || {
            truth.read(trouble);
            truth.acknowledged >= enough || truth.is_through(messages)
        });
        server.end("KILL");
        server = hooked.serve();
    }
    if let Some(run) = run {
        ended(run);
    }
    until_within(LONGEST, "everything is told", || {
        truth.read(trouble);
        truth.is_through(messages)
    });
    until(&format!("{trouble:?}: the results say what was acknowledged"), || {
        truth.read(trouble);
        truth.was_kept(&hooked.results())
    });
    if trouble == Trouble::Lost {
        ended(Process::start(hooked.sale.command(&["reconcile", "sale", "--all"])));
    }
    truth.read(trouble);
    assert!(truth.is_known(&hooked.results()), "{trouble:?}: {:?}", hooked.results().counts());
    server.end("TERM").exits(0);
}

const TROUBLES: [Trouble; 5] = [Trouble::Twice, Trouble::Late, Trouble::Reordered, Trouble::Lost, Trouble::AllAtOnce];

#[test]
fn results_agree_with_the_journal_after_kills_of_the_server() {
    for trouble in TROUBLES {
        play(trouble, 200, 3);
    }
}

/// A hundred thousand messages each, and twenty deaths of the server.
mod a_hundred_thousand {
    use super::{Trouble, play};

    #[test]
    #[ignore = "minutes"]
    fn repeated_receipts_agree_with_the_journal() {
        play(Trouble::Twice, 100_000, 20);
    }

    #[test]
    #[ignore = "minutes"]
    fn late_receipts_agree_with_the_journal() {
        play(Trouble::Late, 100_000, 20);
    }

    #[test]
    #[ignore = "minutes"]
    fn reordered_receipts_agree_with_the_journal() {
        play(Trouble::Reordered, 100_000, 20);
    }

    #[test]
    #[ignore = "minutes"]
    fn missing_receipts_agree_with_the_journal() {
        play(Trouble::Lost, 100_000, 20);
    }

    #[test]
    #[ignore = "minutes"]
    fn simultaneous_receipts_agree_with_the_journal() {
        play(Trouble::AllAtOnce, 100_000, 20);
    }
}
