//! Rows in doubt: reconciliation, a person's decisions, and protection from duplicates.

mod asking;
mod changed;
mod commands_during_a_run;
mod decisions;
mod edge_cases;
mod history;
mod processes;
mod resent;
mod retrying;
mod waiting;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use campaign_ledger::{Ledger, PostgresAddress, PostgresLedger, SqliteLedger};
use jiff::Timestamp;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};
use tempfile::NamedTempFile;

use crate::support::{Answer, Cluster, Draft, Folder, Gateway, Reachable, SandboxProcess, accepted, campaign, phone};

/// The rows of the second envelope, which fails in these tests.
const SECOND_ENVELOPE: [usize; 4] = [3, 4, 5, 6];
/// A scenario that executes the second envelope and drops its answer.
const ANSWER_LOST: &str = "faults: [{ when: { envelope: 2 }, answer: dropped }]\n";

/// A campaign to ten recipients, in envelopes of 1, 4, 4 and 1.
fn ten_recipients(gateway: &impl Reachable) -> Draft {
    campaign().to(10).batches_of(4).one_at_a_time().delivery("timeout: 10s").through(gateway)
}

/// A sandbox process that plays this scenario.
fn start_sandbox(scenario: &str) -> SandboxProcess {
    let mut file = NamedTempFile::new().expect("a file");
    file.write_all(scenario.as_bytes()).expect("a scenario");
    SandboxProcess::start_with(&["--scenario", file.path().to_str().expect("a path")])
}

/// Whether the answer to the second envelope was lost, as in the scenario.
fn answer_was_lost(sandbox: &SandboxProcess) -> bool {
    sandbox.journal().iter().any(|line| line["event"] == "fault" && line["envelope"] == 2)
}

/// Checks that each of the ten recipients got exactly one message.
#[track_caller]
fn assert_one_message_each(sandbox: &SandboxProcess) {
    let expected = (2..12).map(|row| (phone(row), 1)).collect();
    assert_eq!(sandbox.messages(), expected);
}

/// A sale whose second envelope is in doubt. Its gateway confirms every message in a status query, known or not, so the
/// answers prove nothing.
fn sale_in_doubt() -> (Gateway, Folder) {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
    let sale = ten_recipients(&gateway).write();
    sale.run(&[]).exits(4);
    assert_eq!(states(&sale), "addddaaaaa");
    (gateway, sale)
}

/// The states of the results, one letter for each row.
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
        other => panic!("unexpected state {other}"),
    };
    sale.results().states().into_iter().map(letter).collect()
}

/// A cell in the results of one row.
fn result_cell(sale: &Folder, row: usize, column: &str) -> String {
    let results = sale.results();
    let found = results.rows.iter().find(|result| result["row"] == row.to_string());
    found.expect("the row")[column].clone()
}

/// The message identifiers of this row, in order of arrival at the gateway.
fn message_ids(gateway: &Gateway, row: usize) -> Vec<u64> {
    let operations = gateway.sends().into_iter().flat_map(|request| request.operations());
    let to_row = operations.filter(|operation| operation["phone"] == phone(row));
    to_row.map(|operation| operation["id"].as_u64().expect("an id")).collect()
}

/// Opens the ledger of a sale whose process has ended, through the product's own ledger interface.
fn with_ledger(sale: &Folder, action: impl AsyncFnOnce(&dyn Ledger)) {
    let state = sale.path("state");
    with_runtime(async {
        match sale.ledger() {
            Some(address) => {
                let address = PostgresAddress::parse(address).expect("an address");
                let ledger = PostgresLedger::open(&address, &state).await.expect("the ledger");
                action(&ledger).await;
                ledger.close().await;
            }
            None => {
                let ledger = SqliteLedger::open(&state.join("ledger.sqlite"), Timestamp::now).await;
                action(&ledger.expect("the ledger")).await;
            }
        }
    });
}

/// The number of commits to the ledger so far.
fn count_commits(sale: &Folder) -> i64 {
    if let Some(database) = sale.ledger() {
        let cluster = Cluster::shared().expect("a server");
        return cluster.run_sql(database, "SELECT generation FROM campaign.meta").parse().expect("a number");
    }
    let options = SqliteConnectOptions::new().filename(sale.path("state/ledger.sqlite")).read_only(true);
    let mut commits = 0;
    with_runtime(async {
        let mut connection = SqliteConnection::connect_with(&options).await.expect("the ledger");
        let generation = sqlx::query_scalar("SELECT generation FROM identity").fetch_one(&mut connection).await;
        commits = generation.expect("the number of commits");
        connection.close().await.expect("the end");
    });
    commits
}

fn with_runtime(action: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(action);
}

/// The messages that a scripted gateway accepted, to answer status queries truthfully.
#[derive(Clone, Default)]
struct Memory {
    accepted_ids: Arc<Mutex<BTreeSet<u64>>>,
    /// Whether the gateway denies its messages for now.
    is_hidden: Arc<Mutex<bool>>,
}

impl Memory {
    /// Accepts every operation of a request, and answers as the contract says.
    fn accept_all(&self) -> Answer {
        let memory = self.clone();
        Answer::from_request(move |request| {
            let operations = request.operations();
            operations.iter().for_each(|operation| memory.record(operation));
            match request.path() {
                "/v1/json" => json!({ "success": true, "request_id": "cf-ray-77-KBP" }),
                _ => json!({ "success": true, "data": operations.iter().map(accepted).collect::<Vec<_>>() }),
            }
        })
    }

    /// Accepts every operation of a request, but answers without proof.
    fn accept_without_proof(&self) -> Answer {
        let memory = self.clone();
        Answer::items(move |operation| {
            memory.record(operation);
            json!({ "success": true })
        })
    }

    fn record(&self, operation: &Value) {
        self.accepted_ids.lock().expect("the memory").insert(operation["id"].as_u64().expect("an id"));
    }

    /// Sets whether the gateway denies its messages.
    fn set_hidden(&self, is_hidden: bool) {
        *self.is_hidden.lock().expect("the memory") = is_hidden;
    }

    /// Answers a status query for a message.
    fn answer_query(&self, query: &Value) -> Value {
        let id = query["id"].as_u64().expect("an id");
        let is_known = self.accepted_ids.lock().expect("the memory").contains(&id);
        if is_known && !*self.is_hidden.lock().expect("the memory") {
            accepted(query)
        } else {
            json!({ "success": false, "error": "no such message", "data": { "id": id } })
        }
    }

    /// A gateway that accepts all messages, answers the second envelope this way, and answers status queries
    /// truthfully.
    fn gateway(&self, second: Answer) -> Gateway {
        let memory = self.clone();
        let rest = std::iter::repeat_with(|| self.accept_all()).take(50);
        let script = [self.accept_all(), second].into_iter().chain(rest);
        Gateway::answering(script).with_statuses(move |query| memory.answer_query(query))
    }
}
