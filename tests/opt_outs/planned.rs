//! Recipients who opted out before a run: skipped, and reported on every surface.

use serde_json::json;

use super::opt_out;
use crate::support::{Gateway, campaign, phone};

#[test]
fn opted_out_recipient_is_skipped_on_every_surface() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(5).through(&gateway).write();
    opt_out(&sale, 3, &[]);
    opt_out(&sale, 4, &["--campaign", "another"]);
    let counts = json!({ "planned": 4, "skipped": 1 });
    assert_eq!(sale.campaign(&["check", "sale.yaml", "--json"]).exits(0).json()["counts"], counts);
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("−1  skipped: opted out");
    sale.campaign(&["preview", "sale.yaml", "--rows", "3"]).exits(0).says("opted out");
    assert_eq!(sale.run(&["--dry-run", "--json"]).exits(0).json()["counts"], counts);
    // A rehearsal follows the rules of a live run.
    let rehearsal = sale.run(&["--gateway", "sandbox", "--json"]).exits(0).json();
    assert_eq!(rehearsal["counts"], json!({ "accepted": 4, "skipped": 1 }));
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [2, 4, 5, 6].map(phone));
    assert_eq!(sale.results().rows[1]["reason"], "opted out");
}

#[test]
fn dry_run_without_recipients_suggests_a_check() {
    let sale = campaign().to(1).write();
    sale.run(&["--dry-run"]).exits(0).says("next: campaign run sale.yaml");
    opt_out(&sale, 2, &[]);
    sale.run(&["--dry-run"]).exits(0).says("next: campaign check sale.yaml");
}

#[test]
fn opt_outs_from_a_loopback_gateway_apply_to_loopback_only() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(3).through(&gateway).write();
    let csv = format!("phone,gateways,reason\n+{},loopback,STOP\n+{},all,STOP\n", phone(2), phone(3));
    sale.write("replies.csv", &csv);
    sale.campaign(&["suppress", "import", "replies.csv", "--yes"]).exits(0).says("2 new · ");
    let rehearsal = sale.run(&["--gateway", "sandbox", "--json"]).exits(0).json();
    assert_eq!(rehearsal["counts"], json!({ "accepted": 2, "skipped": 1 }), "a rehearsal plays a live run");
    sale.run(&[]).exits(0);
    assert_eq!(gateway.phones(), [phone(4)]);
}

#[test]
fn run_to_only_opted_out_recipients_sends_nothing() {
    let gateway = Gateway::accepting();
    let sale = campaign().to(2).through(&gateway).write();
    opt_out(&sale, 2, &[]);
    opt_out(&sale, 3, &[]);
    let summary = sale.run(&["--json"]).exits(0).json();
    assert_eq!((&summary["counts"], &summary["sent"]), (&json!({ "skipped": 2 }), &json!(0)));
    assert!(gateway.sends().is_empty());
}
