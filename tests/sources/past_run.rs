//! Recipients of an earlier run, selected by state.

use super::campaign_with_source;
use crate::support::{Answer, Folder, Gateway, accepted, campaign, phone, rejected};

/// Creates a campaign whose row 3 was rejected, and a second campaign to the recipients that `source` selects.
fn campaign_after_rejection(gateway: &Gateway, source: &str) -> Folder {
    let sale = campaign().through(gateway).batches_of(1).one_at_a_time().write();
    sale.run(&[]).exits(3);
    let again = campaign_with_source(campaign().through(gateway), source);
    let text = std::fs::read_to_string(again.path("sale.yaml")).expect("a campaign");
    sale.write("again.yaml", &text.replace("name: sale", "name: again"));
    sale
}

fn gateway_rejecting_the_second_request() -> Gateway {
    let reject = |item: &_| rejected(item, "Unknown error");
    Gateway::answering([Answer::items(accepted), Answer::items(reject), Answer::items(accepted)])
}

#[test]
fn rejected_recipients_form_a_list_with_the_original_columns() {
    let gateway = gateway_rejecting_the_second_request();
    let sale = campaign_after_rejection(&gateway, "run: sale@1\nstate: [rejected, failed]");
    sale.campaign(&["check", "again.yaml"]).exits(0).says("recipients of sale@1 (rejected, failed)");
    sale.campaign(&["preview", "again.yaml", "--fetch"]).exits(0).says("Person 3").says("1 of 1 row");
    sale.campaign(&["run", "again.yaml", "--no-wait"]).exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3), phone(4), phone(3)]);
}

#[test]
fn undelivered_state_selects_messages_but_not_skipped_rows() {
    let gateway = gateway_rejecting_the_second_request();
    let sale = campaign_after_rejection(&gateway, "run: sale\nstate: undelivered");
    // Accepted messages might have been delivered without a receipt, and the output says so.
    sale.campaign(&["run", "again.yaml", "--no-wait"])
        .exits(0)
        .says("might still change")
        .says("reconcile sale@1 --all");
    assert_eq!(gateway.phones()[3..], [phone(2), phone(3), phone(4)]);
}

#[test]
fn unfinished_or_missing_source_run_is_refused() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).write();
    sale.run(&["--limit", "1"]).exits(0);
    let again = campaign_with_source(campaign().through(&gateway), "run: sale@1\nstate: planned");
    let text = std::fs::read_to_string(again.path("sale.yaml")).expect("a campaign");
    sale.write("again.yaml", &text.replace("name: sale", "name: again"));
    sale.campaign(&["run", "again.yaml"]).exits(2).says("sale@1 is unfinished");
    sale.replace("again.yaml", "sale@1", "sail@1");
    sale.campaign(&["run", "again.yaml"]).exits(2).says("did you mean `sale@1`?");
    assert_eq!(gateway.phones(), [phone(2)]);
}
