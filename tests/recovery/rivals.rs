//! Two processes that send the same campaign.

use serde_json::json;

use crate::support::{Answer, Gateway, Process, campaign, phone, until};

#[test]
fn run_has_one_owner_and_other_processes_cannot_send_it() {
    let gateway = Gateway::answering([Answer::Accept, Answer::Held]);
    let sale = campaign().to(60).through(&gateway).delivery("timeout: 60s").batches_of(5).write();
    let first = sale.start(&["--json"]);
    until("the first process waits for an answer", || gateway.sends().len() > 1);
    for _ in 0..3 {
        let refused = sale.run(&["--json", "--yes"]).exits(6).json();
        assert!(refused["error"].as_str().is_some_and(|error| error.contains("another process")), "{refused}");
    }
    gateway.release();
    let summary = first.finish().exits(0).json();
    assert_eq!(summary["counts"], json!({ "accepted": 60 }));
    let mut phones = gateway.phones();
    phones.sort_unstable();
    assert_eq!(phones, (2..62).map(phone).collect::<Vec<_>>());
}

#[test]
fn processes_that_start_together_send_each_message_once() {
    for _ in 0..5 {
        let gateway = Gateway::accepting();
        let sale = campaign().to(200).through(&gateway).write();
        let rivals = [sale.start(&[]), sale.start(&[]), sale.start(&[])];
        let mut codes = rivals.map(|rival| rival.finish().code());
        codes.sort_unstable();
        // A process that starts after the run has ended finds no unsent rows.
        assert!(codes[0] == Some(0) && codes.iter().all(|code| matches!(code, Some(0 | 6))), "{codes:?}");
        let mut phones = gateway.phones();
        phones.sort_unstable();
        phones.dedup();
        assert_eq!((phones.len(), gateway.phones().len()), (200, 200));
    }
}

#[test]
fn two_campaigns_can_use_one_ledger_at_the_same_time() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(300).through(&gateway).batches_of(3).write();
    let text = std::fs::read_to_string(sale.path("sale.yaml")).expect("the campaign");
    sale.write("other.yaml", &text.replace("name: sale", "name: other"));
    let other = Process::start(sale.command(&["run", "other.yaml"]));
    sale.run(&[]).exits(0);
    other.finish().exits(0);
    assert_eq!(gateway.phones().len(), 600);
}

#[test]
fn processes_that_open_a_new_ledger_at_once_wait_for_each_other() {
    for _ in 0..10 {
        let rehearsal = campaign().write();
        let text = std::fs::read_to_string(rehearsal.path("sale.yaml")).expect("the campaign");
        let runs = ["first", "second", "third", "fourth"].map(|name| {
            let file = format!("{name}.yaml");
            rehearsal.write(&file, &text.replace("name: sale", &format!("name: {name}")));
            Process::start(rehearsal.command(&["run", &file]))
        });
        for run in runs {
            run.finish().exits(0);
        }
    }
}
