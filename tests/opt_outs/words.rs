//! Custom opt-out words of a gateway profile.

use std::collections::BTreeSet;

use serde_json::json;

use crate::receipts::{Hooked, operations};
use crate::support::{Gateway, campaign, phone};

#[test]
fn profile_opt_out_word_works_like_a_standard_word() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(3).through(&gateway).profile("opt_out_words: words/uk.txt"));
    hooked.sale.write("words/uk.txt", "# Ukrainian\nГоді\nне пишіть\n");
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    for (operation, reply) in operations(&gateway).iter().zip(["ГОДІ!", "Не пишіть більше", "Не хочу"])
    {
        let receipt = json!({"status": "REPLIED", "replies": [{ "message": reply }]});
        assert_eq!(hooked.post(operation, &receipt.to_string()), 200);
    }
    let listed = hooked.sale.campaign(&["suppress", "list", "--json"]).json_list();
    let listed = listed.as_array().expect("a list").iter().map(|entry| entry["phone"].to_string());
    let phones: BTreeSet<String> = listed.map(|phone| phone.trim_matches('"').to_owned()).collect();
    assert_eq!(phones, [phone(2), phone(3)].map(|phone| phone.to_string()).into());
    server.end("TERM").exits(0);
}

#[test]
fn invalid_opt_out_word_is_reported_with_its_location() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).profile("opt_out_words: words.txt").write();
    for (words, place, message) in [
        ("Годі\n  do not write again\n", "words.txt:2:3", "has 4 words"),
        ("Годі\n…\n", "words.txt:2:1", "neither a letter nor a digit"),
        ("# none yet\n", "words.txt:1:1", "the file contains no words"),
    ] {
        sale.write("words.txt", words);
        sale.campaign(&["check", "sale.yaml"]).exits(2).says("error[opt-out-words]").says(place).says(message);
        sale.run(&[]).exits(2);
    }
    sale.write("words.txt", "Годі\nстоп\nгоді.\n");
    let output = sale.campaign(&["check", "sale.yaml"]).exits(0).says("warning[opt-out-words]");
    output.says("words.txt:2:1").says("`стоп` is the same as `СТОП`").says("words.txt:3:1");
    std::fs::remove_file(sale.path("words.txt")).expect("a file");
    sale.campaign(&["check", "sale.yaml"]).exits(2).says("words.txt` does not exist").says("gateways.yaml:5:18");
    assert!(gateway.requests().is_empty());
}
