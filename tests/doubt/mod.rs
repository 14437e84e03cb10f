//! Rows in doubt: what asking proves, what a person decides, and that nobody ever gets a message twice by it.

mod asking;
mod changed;
mod decisions;
mod history;
mod onlookers;
mod processes;
mod retrying;
mod traps;
mod waiting;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use campaign::ledger::{Ledger, PostgresAddress, PostgresLedger, SqliteLedger};
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};
use tempfile::NamedTempFile;

use crate::support::{Answer, Cluster, Draft, Folder, Gateway, Reachable, SandboxProcess, accepted, campaign, phone};

/// The rows of the second envelope, which is the one that goes wrong here.
const SECOND: [usize; 4] = [3, 4, 5, 6];
/// A scenario in which the second envelope is executed and its answer never comes.
const ANSWER_LOST: &str = "faults: [{ when: { envelope: 2 }, answer: dropped }]\n";

/// A campaign to ten people, in envelopes of 1, 4, 4 and 1.
fn ten_people(gateway: &impl Reachable) -> Draft {
    campaign().to(10).batches_of(4).one_at_a_time().delivery("timeout: 10s").through(gateway)
}

/// A sandbox of its own that plays this scenario.
fn sandbox_playing(scenario: &str) -> SandboxProcess {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(scenario.as_bytes()).expect("a scenario");
    SandboxProcess::start_with(&["--scenario", file.path().to_str().expect("a path")])
}

/// Whether the answer of the second envelope was lost, as the scenario says.
fn answer_was_lost(sandbox: &SandboxProcess) -> bool {
    sandbox.journal().iter().any(|line| line["event"] == "fault" && line["envelope"] == 2)
}

/// Fails unless each of the ten people got exactly one message.
#[track_caller]
fn everybody_once(sandbox: &SandboxProcess) {
    let expected = (2..12).map(|row| (phone(row), 1)).collect();
    assert_eq!(sandbox.messages(), expected);
}

/// A sale of which the second envelope is in doubt, at a gateway that says of every message that it knows it.
fn in_doubt() -> (Gateway, Folder) {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = ten_people(&gateway).write();
    sale.run(&[]).exits(4);
    assert_eq!(states(&sale), "addddaaaaa");
    (gateway, sale)
}

/// The states of the results, a letter for each row.
fn states(sale: &Folder) -> String {
    let letter = |state: &str| match state {
        "accepted" => 'a',
        "delivered" => 'D',
        "queued" => 'q',
        "in_doubt" => 'd',
        "unresolved" => 'u',
        "assumed_sent" => 's',
        "not_sent" => 'n',
        "planned" => 'p',
        "rejected" => 'r',
        "failed" => 'f',
        "skipped" => 'k',
        other => panic!("a row is {other}"),
    };
    sale.results().states().into_iter().map(letter).collect()
}

/// The results of one row.
fn result(sale: &Folder, row: usize, column: &str) -> String {
    let results = sale.results();
    let found = results.rows.iter().find(|result| result["row"] == row.to_string());
    found.expect("the row")[column].clone()
}

/// Our identifiers of the messages to this row, in the order in which they came to the gateway.
fn ids_of(gateway: &Gateway, row: usize) -> Vec<u64> {
    let operations = gateway.sends().into_iter().flat_map(|request| request.operations());
    let to_row = operations.filter(|operation| operation["phone"] == phone(row));
    to_row.map(|operation| operation["id"].as_u64().expect("an id")).collect()
}

/// Does something with the ledger of a sale whose process has ended, through the crate's own port.
fn ledger(sale: &Folder, what: impl AsyncFnOnce(&dyn Ledger)) {
    let state = sale.path("state");
    with_runtime(async {
        match sale.ledger() {
            Some(address) => {
                let address = PostgresAddress::parse(address).expect("an address");
                let ledger = PostgresLedger::open(&address, &state).await.expect("the ledger");
                what(&ledger).await;
                ledger.close().await;
            }
            None => {
                let ledger = SqliteLedger::open(&state.join("ledger.sqlite"), Timestamp::now).await;
                what(&ledger.expect("the ledger")).await;
            }
        }
    });
}

/// How often the ledger was changed so far.
fn commits(sale: &Folder) -> i64 {
    if let Some(database) = sale.ledger() {
        let cluster = Cluster::shared().expect("a server");
        return cluster.say(database, "SELECT generation FROM campaign.meta").parse().expect("a number");
    }
    let options = SqliteConnectOptions::new().filename(sale.path("state/ledger.sqlite")).read_only(true);
    let mut commits = 0;
    with_runtime(async {
        let mut connection = SqliteConnection::connect_with(&options).await.expect("the ledger");
        let asked = sqlx::query_scalar("SELECT generation FROM identity").fetch_one(&mut connection).await;
        commits = asked.expect("the number of commits");
        connection.close().await.expect("the end");
    });
    commits
}

fn with_runtime(what: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(what);
}

/// What a scripted gateway took, so that it can tell the sent from the never sent.
#[derive(Clone, Default)]
struct Memory {
    taken: Arc<Mutex<BTreeSet<u64>>>,
    /// Messages that it took and does not tell about yet.
    hidden: Arc<Mutex<bool>>,
}

impl Memory {
    /// Takes every operation of a request and answers as the contract says.
    fn takes(&self) -> Answer {
        let memory = self.clone();
        Answer::with(move |request| {
            let operations = request.operations();
            operations.iter().for_each(|operation| memory.keep(operation));
            match request.path() {
                "/v1/json" => json!({ "success": true, "request_id": "cf-ray-77-KBP" }),
                _ => json!({ "success": true, "data": operations.iter().map(accepted).collect::<Vec<_>>() }),
            }
        })
    }

    /// Takes every operation of a request and answers nothing that proves it.
    fn takes_in_silence(&self) -> Answer {
        let memory = self.clone();
        Answer::items(move |operation| {
            memory.keep(operation);
            json!({ "success": true })
        })
    }

    fn keep(&self, operation: &Value) {
        self.taken.lock().expect("the memory").insert(operation["id"].as_u64().expect("an id"));
    }

    /// Tells nothing about what it took, or does so from now on.
    fn hide(&self, hidden: bool) {
        *self.hidden.lock().expect("the memory") = hidden;
    }

    /// Answers a question about a message.
    fn tells(&self, question: &Value) -> Value {
        let id = question["id"].as_u64().expect("an id");
        let known = self.taken.lock().expect("the memory").contains(&id);
        if known && !*self.hidden.lock().expect("the memory") {
            accepted(question)
        } else {
            json!({ "success": false, "error": "no such message", "data": { "id": id } })
        }
    }

    /// A gateway that takes what comes to it, answers the second envelope like this, and tells the truth when asked.
    fn gateway(&self, second: Answer) -> Gateway {
        let memory = self.clone();
        let rest = std::iter::repeat_with(|| self.takes()).take(50);
        let script = [self.takes(), second].into_iter().chain(rest);
        Gateway::answering(script).with_statuses(move |question| memory.tells(question))
    }
}
