//! Rows in doubt that a person sends again: opt-outs skip them, and their own earlier attempt does not use up a cap.

use serde_json::json;

use super::{SECOND_ENVELOPE, sale_in_doubt, states, ten_recipients};
use crate::support::{Answer, Folder, Gateway, note_on_failure, phone};

/// Decides about the four rows in doubt.
fn decide(sale: &Folder, decision: &str) {
    let resolve = ["resolve", "sale", "--all", "--as", decision, "--i-accept-duplicates", "4"];
    sale.campaign(&resolve).exits(if decision == "send-again" { 5 } else { 3 });
}

/// Adds or removes the opt-outs of the recipients in doubt.
fn change_opt_outs(sale: &Folder, change: &[&str]) {
    for row in SECOND_ENVELOPE {
        let number = format!("+{}", phone(row));
        sale.campaign(&[&["suppress"], change, &[&number]].concat()).exits(0);
    }
}

#[test]
fn skipped_resend_stays_in_doubt_in_every_report() {
    let (gateway, sale) = sale_in_doubt();
    decide(&sale, "send-again");
    change_opt_outs(&sale, &["add"]);
    let report = sale.run(&["--json"]).exits(4).json();
    let counts = json!({ "accepted": 6, "in_doubt": 4 });
    assert_eq!(report["counts"], counts);
    let notes = report["notes"].to_string();
    assert!(notes.contains("not sent again: 4: opted out (first in row 3)"), "{report}");
    assert!(report["opted_out"] == 4 && !notes.contains("skipped"), "rows in doubt are not skipped: {report}");
    assert_eq!(sale.campaign(&["status", "sale", "--json"]).exits(4).json()["counts"], counts);
    sale.campaign(&["status", "sale"]).exits(4).says("4 in doubt");
    assert_eq!(states(&sale), "addddaaaaa");
    assert_eq!(gateway.phones().len(), 10);
    // After the opt-outs are removed, a new decision ends the skip.
    change_opt_outs(&sale, &["remove", "--yes"]);
    decide(&sale, "send-again");
    assert_eq!(sale.run(&["--json"]).exits(0).json()["counts"], json!({ "accepted": 10 }));
    assert_eq!(gateway.phones()[10..], SECOND_ENVELOPE.map(phone));
}

#[test]
fn attempt_in_doubt_does_not_use_up_the_cap_of_its_row() {
    for (decision, command) in [("send-again", "run"), ("not-sent", "retry")] {
        let _case = note_on_failure(format!("case: {decision}"));
        let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead]);
        let sale = ten_recipients(&gateway).delivery("cap: 1/7d").write();
        sale.run(&[]).exits(4);
        decide(&sale, decision);
        match command {
            "run" => sale.run(&[]),
            _ => sale.campaign(&["retry", "sale"]),
        }
        .exits(0);
        assert_eq!(states(&sale), "a".repeat(10));
        assert_eq!(gateway.phones()[10..], SECOND_ENVELOPE.map(phone));
    }
}
