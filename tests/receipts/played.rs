//! The webhooks of the sandbox, taken by a server: what its journal says is what the results say, whatever kills the server.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Hooked;
use crate::support::{Chance, Results, SandboxProcess, campaign, until};

/// Webhooks that come twice, late and in another order, and are brought again until somebody acknowledges them.
const SCENARIO: &str = "
webhooks: { retry: [1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s, 1s] }
faults:
  - { when: { share: 20% }, webhook: twice }
  - { when: { share: 20% }, webhook: late, by: 2s }
";

/// The words of each message that were acknowledged, by the gateway's identifier, as its journal says.
fn told(sandbox: &SandboxProcess) -> BTreeMap<String, Vec<String>> {
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let journal = sandbox.journal();
    let heard = |line: &&Value| line["event"] == "webhook" && line["result"].to_string().contains("200");
    for line in journal.iter().filter(heard) {
        let msg_id = line["msg_id"].to_string().trim_matches('"').to_owned();
        told.entry(msg_id).or_default().push(line["status"].as_str().expect("a word").to_owned());
    }
    told
}

/// Whether the results say of every message what was told of it.
fn agree(told: &BTreeMap<String, Vec<String>>, results: &Results) -> bool {
    let is = |words: &[String], wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    results.rows.iter().all(|row| {
        let Some(words) = told.get(&row["msg_id"]) else { return false };
        let state = match () {
            () if is(words, &["READ", "REPLIED"]) => "read",
            () if is(words, &["DELIVERED"]) => "delivered",
            () => "failed",
        };
        row["state"] == state && words.contains(&row["gateway_status"])
    })
}

/// Sends so many messages through these channels, kills the server so often meanwhile, and compares.
fn play(channels: &str, messages: usize, kills: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = folder.path().join("scenario.yaml");
    std::fs::write(&scenario, SCENARIO).expect("a file");
    let sandbox = SandboxProcess::start_with(&["--scenario", scenario.to_str().expect("a path")]);
    let hooked = Hooked::write(campaign().to(messages).channels(channels).through(&sandbox));
    let mut server = hooked.serve();
    let run = hooked.sale.start(&[]);
    let mut chance = Chance::seeded();
    for _ in 0..kills {
        let more = told(&sandbox).len() + 1 + usize::try_from(chance.below(20)).expect("a few");
        until("some more are told", || told(&sandbox).len() >= more.min(messages));
        server.end("KILL");
        server = hooked.serve();
    }
    run.finish().exits(0);
    until("the results say what was told", || {
        let told = told(&sandbox);
        told.len() == messages && agree(&told, &hooked.results())
    });
    server.end("TERM").exits(0);
}

const SMS: &str = "  - sms: { signature: OlenaCo, message: Hi }";
const VIBER_THEN_SMS: &str =
    "  - viber: { signature: OlenaCo, message: Hi }\n  - sms: { signature: OlenaCo, message: Hi }";

#[test]
fn the_results_come_to_what_the_journal_says_although_the_server_is_killed_meanwhile() {
    play(SMS, 300, 5);
    play(VIBER_THEN_SMS, 300, 5);
}

#[test]
#[ignore = "minutes: a hundred thousand messages of each kind, and a hundred deaths"]
fn all_of_a_hundred_thousand_messages_come_to_what_the_journal_says() {
    play(SMS, 100_000, 50);
    play(VIBER_THEN_SMS, 100_000, 50);
}
