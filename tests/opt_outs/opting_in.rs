//! Opting in again: a START reply ends earlier opt-outs.

use serde_json::{Value, json};

use super::{entries, opt_out};
use crate::receipts::{Hooked, operations};
use crate::support::{Draft, Gateway, Server, campaign, phone};

/// A campaign that was sent, and the server that receives its replies.
struct RepliedCampaign {
    hooked: Hooked,
    server: Server,
    gateway: Gateway,
}

impl RepliedCampaign {
    fn send(draft: Draft) -> Self {
        let gateway = Gateway::accepting();
        let hooked = Hooked::write(draft.through(&gateway).profile("opt_in_words: words.txt"));
        hooked.sale.write("words.txt", "Хочу знову\n");
        let server = hooked.serve();
        hooked.sale.run(&[]).exits(0);
        Self { hooked, server, gateway }
    }

    /// Sends a reply from the recipient in this row; `second` determines the order of replies.
    fn reply(&self, row: usize, second: u32, text: &str) {
        let operation = &operations(&self.gateway)[row - 2];
        let reply = json!({ "message": text, "datetime": format!("2026-05-04T09:12:{second:02}Z") });
        let receipt = json!({ "status": "REPLIED", "replies": [reply] });
        assert_eq!(self.hooked.post(operation, &receipt.to_string()), 200);
    }

    /// The numbers on the suppression list, each with its scope.
    fn scopes(&self) -> Vec<(String, String)> {
        let text = |entry: &Value, key: &str| entry[key].as_str().expect("a text").to_owned();
        entries(&self.hooked.sale).iter().map(|entry| (text(entry, "phone"), text(entry, "scope"))).collect()
    }

    fn end(self) {
        self.server.end("TERM").exits(0);
    }
}

#[test]
fn start_reply_after_stop_ends_the_marketing_opt_out() {
    let sent = RepliedCampaign::send(campaign().to(4));
    for (row, stop, start) in
        [(2, "STOP", "Start!"), (3, "стоп", "Почати"), (4, "STOP", "хочу знову"), (5, "STOP", "yes")]
    {
        sent.reply(row, 1, stop);
        sent.reply(row, 2, start);
    }
    assert_eq!(sent.scopes(), [(phone(5).to_string(), "marketing".to_owned())]);
    let sale = &sent.hooked.sale;
    let found = sale.campaign(&["find", &format!("+{}", phone(2)), "--json"]).exits(0).json();
    let ended = &found["no_longer_suppressed"][0]["ended"];
    assert_eq!((&ended["why"], &ended["by"]), (&json!("answered START"), &json!("reply to sale@1, row 2")));
    sale.campaign(&["find", &format!("+{}", phone(2))]).exits(0).says("no longer on the suppression list: ");
    sale.campaign(&["replies", "sale", "--review"]).exits(0).says("no replies to review");
    sale.replace("sale.yaml", "name: sale\n", "name: sale\nedition: next\n");
    sale.run(&[]).exits(0);
    assert_eq!(sent.gateway.phones()[4..], [2, 3, 4].map(phone));
    sent.end();
}

#[test]
fn later_opt_out_wins_over_a_redelivered_start_reply() {
    let sent = RepliedCampaign::send(campaign().to(1));
    sent.reply(2, 1, "STOP");
    sent.reply(2, 2, "START");
    sent.reply(2, 3, "STOP");
    sent.reply(2, 2, "START");
    assert_eq!(sent.scopes(), [(phone(2).to_string(), "marketing".to_owned())]);
    sent.end();
}

#[test]
fn late_start_reply_keeps_every_later_opt_out() {
    let sent = RepliedCampaign::send(campaign().to(3));
    let sale = &sent.hooked.sale;
    let marketing = |row: usize| (phone(row).to_string(), "marketing".to_owned());
    for (row, second) in [(2, 1), (2, 3), (3, 1)] {
        sent.reply(row, second, "STOP");
    }
    sale.write("crm.csv", &format!("phone,gateways\n+{},loopback\n", phone(3)));
    sale.campaign(&["suppress", "import", "crm.csv", "--yes"]).exits(0).says("0 new");
    // The file has two rows for the same number.
    let twice = ["01", "03"].map(|second| format!("+{},2026-05-04T09:12:{second}Z,loopback\n", phone(4))).concat();
    sale.write("twice.csv", &format!("phone,at,gateways\n{twice}"));
    let report = sale.campaign(&["suppress", "import", "twice.csv", "--yes", "--json"]).exits(0).json();
    assert_eq!((&report["rows"], &report["added"], &report["repeated"]), (&json!(2), &json!(1), &json!(1)));
    (2..5).for_each(|row| sent.reply(row, 2, "START"));
    let mut scopes = sent.scopes();
    scopes.sort();
    assert_eq!(scopes, [2, 3, 4].map(marketing));
    assert_eq!(entries(sale).iter().filter(|entry| entry["at"] == "2026-05-04T09:12:03.000Z").count(), 2);
    sent.end();
}

#[test]
fn redelivered_stop_reply_does_not_opt_out_after_start() {
    let sent = RepliedCampaign::send(campaign().to(2));
    for (second, text) in [(1, "STOP"), (2, "START"), (1, "STOP")] {
        sent.reply(2, second, text);
    }
    assert_eq!(sent.scopes(), []);
    sent.reply(2, 3, "STOP");
    assert_eq!(sent.scopes().len(), 1);
    sent.end();
}

#[test]
fn replies_with_future_times_count_in_order() {
    let sent = RepliedCampaign::send(campaign().to(2));
    let reply = |text: &str, minute: u32| {
        let replies = json!([{ "message": text, "datetime": format!("2126-05-04T09:{minute:02}:00Z") }]);
        let receipt = json!({ "status": "REPLIED", "replies": replies });
        assert_eq!(sent.hooked.post(&operations(&sent.gateway)[0], &receipt.to_string()), 200);
        entries(&sent.hooked.sale)
    };
    let listed = reply("STOP", 1);
    assert!(listed[0]["at"].as_str().expect("a time") < "2100", "{listed:?}");
    assert_eq!(reply("START", 2).len(), 0);
    assert_eq!(reply("STOP", 1).len(), 0, "a repeated reply");
    assert_eq!(reply("STOP", 3).len(), 1);
    assert_eq!(reply("START", 2).len(), 1, "a repeated reply");
    sent.end();
}

#[test]
fn reply_changes_only_the_scope_of_the_message_it_answers() {
    let service = RepliedCampaign::send(campaign().to(2).top("purpose: service"));
    let sale = &service.hooked.sale;
    sale.write("crm.csv", &format!("phone,at\n+{},2026-01-01T00:00:00Z\n", phone(2)));
    sale.campaign(&["suppress", "import", "crm.csv", "--yes"]).exits(0);
    service.reply(2, 1, "STOP");
    service.reply(3, 1, "STOP");
    let number = |row: usize| phone(row).to_string();
    let all = |row: usize| (number(row), "all".to_owned());
    assert_eq!(service.scopes(), [(number(2), "marketing".to_owned()), all(2), all(3)]);
    service.reply(2, 2, "START");
    assert_eq!(service.scopes(), [(number(2), "marketing".to_owned()), all(3)]);
    service.end();
}

#[test]
fn import_of_a_subscribed_recipient_keeps_the_opt_out() {
    let sale = campaign().write();
    opt_out(&sale, 2, &[]);
    sale.write("crm.csv", &format!("phone,status,scope\n+{},subscribed,marketing\n", phone(2)));
    sale.campaign(&["suppress", "import", "crm.csv", "--yes"]).exits(0).says("0 new");
    assert_eq!(entries(&sale).len(), 1);
}

#[test]
fn opt_in_word_that_opts_out_is_refused() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).profile("opt_in_words: words.txt").write();
    for (words, message) in [
        ("Так\nstop\n", "`stop` is an opt-out"),
        ("please send me news again\n", "has 5 words"),
        ("# none\n", "the file contains no words"),
    ] {
        sale.write("words.txt", words);
        sale.campaign(&["check", "sale.yaml"]).exits(2).says("error[opt-in-words]").says(message);
    }
    sale.write("words.txt", "Start\nТак\n");
    sale.campaign(&["check", "sale.yaml"]).exits(0).says("warning[opt-in-words]").says("is the same as `START`");
}
