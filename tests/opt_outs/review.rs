//! Opt-out replies: clear requests opt out, and a person reviews ambiguous ones.

use serde_json::{Value, json};

use crate::receipts::{Hooked, operations};
use crate::support::{Browser, Draft, Gateway, Results, Server, campaign, phone};

/// Sends a campaign whose recipients, from row 2 on, reply with these texts.
fn receive_replies(draft: Draft, texts: &[&str]) -> (Hooked, Server) {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(draft.to(texts.len()).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    for (operation, text) in operations(&gateway).iter().zip(texts) {
        let receipt = json!({ "status": "REPLIED", "type": "sms", "replies": [{ "message": text }] });
        assert_eq!(hooked.post(operation, &receipt.to_string()), 200);
    }
    (hooked, server)
}

/// The rows of opted-out recipients, each with the reason.
fn opted_out(hooked: &Hooked) -> Vec<(usize, String)> {
    let listed = hooked.sale.campaign(&["suppress", "list", "--json"]).json_list();
    let row = |entry: &Value| {
        let number = entry["phone"].as_str().expect("a number");
        (2..20).find(|row| number == phone(*row).to_string()).expect("a row")
    };
    let mut rows: Vec<(usize, String)> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| (row(entry), entry["reason"].as_str().expect("a reason").to_owned()))
        .collect();
    rows.sort();
    rows
}

#[test]
fn polite_or_spaced_out_stop_requests_count_as_opt_outs() {
    let texts =
        ["Please stop sending me sms", "S T O P", "🛑", "Відпишіть мене, будь ласка", "don't stop!", "bus stop"];
    let (hooked, server) = receive_replies(campaign(), &texts);
    let expected =
        [(2, "answered STOP SENDING SMS"), (3, "answered STOP"), (4, "answered 🛑"), (5, "answered ВІДПИШІТЬ МЕНЕ")];
    assert_eq!(opted_out(&hooked), expected.map(|(row, reason)| (row, reason.to_owned())));
    server.end("TERM").exits(0);
}

#[test]
fn ambiguous_reply_is_listed_for_review_but_not_an_opt_out() {
    let texts = ["Cancel", "Відміна", "Скасувати", "stop by tomorrow?", "дякую", "СТОП"];
    let (hooked, server) = receive_replies(campaign().top("purpose: service"), &texts);
    assert_eq!(opted_out(&hooked), [(7, "answered СТОП".to_owned())]);
    let shown = hooked.sale.campaign(&["replies", "sale", "--review"]).exits(0);
    let shown = shown.says("sale@1: 4 replies to review").says(&format!("row 4 · +{}", phone(4))).says("Скасувати");
    assert!(!shown.stdout.contains("дякую") && !shown.stdout.contains("СТОП"), "{}", shown.stdout);
    let next = shown.stdout.lines().find_map(|line| line.trim().strip_prefix("next: campaign ")).expect("a command");
    let command: Vec<&str> = next.split(' ').collect();
    assert_eq!(command, ["suppress", "add", &format!("+{}", phone(2)), "--scope", "all"]);
    hooked.sale.campaign(&command).exits(0);
    let object = hooked.sale.campaign(&["replies", "sale", "--review", "--json"]).exits(0).json();
    let reply = &object["review"][0];
    assert_eq!((&object["run"], &reply["row"], &reply["text"]), (&json!("sale@1"), &json!(3), &json!("Відміна")));
    assert_eq!((&reply["channel"], &reply["phone"]), (&json!("sms"), &json!(phone(3).to_string())));
    assert_eq!(object["review"].as_array().map(Vec::len), Some(3));
    server.end("TERM").exits(0);
}

#[test]
fn cancel_opts_out_of_marketing_but_cancel_my_order_does_not() {
    let (hooked, server) = receive_replies(campaign(), &["Cancel", "Cancel my order", "Скасувати"]);
    assert_eq!(opted_out(&hooked), [(2, "answered CANCEL".to_owned())]);
    hooked.sale.campaign(&["replies", "sale", "--review"]).exits(0).says("2 replies to review");
    server.end("TERM").exits(0);
}

#[test]
fn replies_page_shows_replies_to_review_with_masked_numbers() {
    let (_hooked, server) = receive_replies(campaign(), &["Скасувати", "дякую", "стоп"]);
    let browser = Browser::signed_in(&server);
    for (language, title) in [("en", "Replies to review"), ("uk", "Відповіді для перегляду")] {
        let page = browser.request("GET", "/replies", &[("Accept-Language", language)], "").page();
        let words = page.one("main").words();
        assert!(words.contains(title) && words.contains("Скасувати"), "{words}");
        assert!(!words.contains("дякую") && !words.contains(&phone(2).to_string()), "{words}");
        assert!(page.all("a").iter().any(|link| link.attribute("href") == "/runs/sale@1/rows/2"), "{words}");
    }
    let overview = browser.page("/").one("main").words();
    assert!(overview.contains("1 reply looks like an opt-out"), "{overview}");
    server.end("TERM").exits(0);
}

#[test]
fn phone_number_of_another_person_in_a_reply_is_masked() {
    let reply = format!("Cancel my order, ask +{} or 067 123-45-89", phone(9));
    let (_hooked, server) = receive_replies(campaign(), &[&reply]);
    let browser = Browser::signed_in(&server);
    let masked = format!("Cancel my order, ask …{:02} or …89", phone(9) % 100);
    for path in ["/replies", "/runs/sale@1/rows/2"] {
        let words = browser.page(path).one("main").words();
        assert!(words.contains(&masked), "{path}: {words}");
    }
    server.end("TERM").exits(0);
}

#[test]
fn reply_repeated_in_later_receipts_is_listed_once() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(1).through(&gateway));
    let server = hooked.serve();
    hooked.sale.run(&[]).exits(0);
    let reply = |at: &str, text: &str| json!({ "datetime": format!("2026-11-20T10:00:{at}+00:00"), "message": text });
    let (price, cancel) = (reply("05", "What price?"), reply("09", "Cancel my order"));
    for replies in [vec![&price], vec![&price, &cancel], vec![&price, &cancel]] {
        let updated = jiff::Timestamp::now().to_string();
        let receipt = json!({ "status": "REPLIED", "type": "sms", "updated": updated, "replies": replies });
        assert_eq!(hooked.post(&operations(&gateway)[0], &receipt.to_string()), 200);
    }
    let listed = hooked.sale.campaign(&["replies", "sale"]).exits(0).stdout;
    let texts = Results::parse(&listed);
    assert_eq!(texts.column("text"), ["What price?", "Cancel my order"], "{listed}");
    hooked.sale.campaign(&["replies", "sale", "--review"]).exits(0).says("1 reply to review");
    let words = Browser::signed_in(&server).page("/replies").one("main").words();
    assert_eq!(words.matches("Cancel my order").count(), 1, "{words}");
    server.end("TERM").exits(0);
}
