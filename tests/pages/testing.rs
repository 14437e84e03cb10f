//! Test messages from the dashboard: only with `serve --test-to`, only to its numbers, under the rules of
//! `campaign test`.

use serde_json::json;

use crate::support::{Browser, Folder, Gateway, Html, Server, campaign, phone};

const TEST: &str = "/runs/sale@1/test";
/// Numbers outside the list of the campaign.
const TESTERS: [u64; 2] = [380_671_234_567, 380_671_234_568];

/// A sent campaign, and a file with the testers.
fn sent_campaign(gateway: &Gateway) -> Folder {
    let sale = campaign().through(gateway).write();
    sale.run(&[]).exits(0);
    sale.write("testers.csv", &format!("phone\n+{}\n+{}\n", TESTERS[0], TESTERS[1]));
    sale
}

fn sign_in(sale: &Folder, server: &Server, options: &[&str]) -> Browser {
    let link = sale.campaign(&[&["serve", "link", "--json", "--for"], options].concat()).exits(0).json();
    Browser::with_link(server, link["url"].as_str().expect("an address"))
}

/// The fields of the recipients in a form.
fn recipients(page: &Html) -> Vec<String> {
    let boxes = page.all("input").into_iter().filter(|input| input.attribute("type") == "checkbox");
    boxes.map(|input| input.attribute("name").to_owned()).collect()
}

fn offers_test(page: &Html) -> bool {
    page.all("a").iter().any(|link| link.attribute("href") == TEST)
}

#[test]
fn test_message_is_sent_only_to_chosen_numbers_in_the_file() {
    let gateway = Gateway::accepting();
    let sale = sent_campaign(&gateway);
    let server = Server::start(&sale, &["--test-to", "testers.csv"]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    assert!(offers_test(&olha.page("/runs/sale@1")) && offers_test(&olha.page("/runs/sale@1/campaign")));
    // Every recipient has the message already, so the page shows the first row and a field for another row.
    let first = olha.page(TEST);
    let words = first.one("main").words();
    assert!(words.contains("The message of row 2 of sale") && words.contains("Hello, Person 2"), "{words}");
    assert!(first.all("input").iter().any(|input| input.attribute("id") == "row"));
    let page = olha.page("/runs/sale@1/test?row=3");
    let words = page.one("main").words();
    assert!(words.contains("The message of row 3 of sale") && words.contains("Hello, Person 3"), "{words}");
    assert!(words.contains("…67") && !words.contains(&TESTERS[0].to_string()), "{words}");
    let fields = recipients(&page);
    assert_eq!(fields.len(), 2);
    let invented = format!("to-{}", "A".repeat(16));
    for chosen in [vec![("row", "3")], vec![("row", "3"), (invented.as_str(), "1")], vec![("to", "+380671112233")]] {
        assert_eq!(olha.send(TEST, &chosen).status, 422, "{chosen:?}");
    }
    assert_eq!(olha.send(TEST, &[("row", "x"), (fields[0].as_str(), "1")]).status, 422);
    assert_eq!(gateway.phones().len(), 3);
    let sent = olha.send(TEST, &[("row", "3"), (fields[1].as_str(), "1")]);
    assert_eq!((sent.status, sent.header("location")), (303, "/runs/campaign.test@1?done=test"));
    assert_eq!(gateway.phones()[3..], [TESTERS[1]]);
    assert_eq!(olha.get("/runs/campaign.test@1?done=test").status, 200);
    let orders = std::fs::read_to_string(sale.path("state/orders.jsonl")).expect("the orders");
    assert!(orders.contains("\"by\":\"Olha\",\"order\":\"test\",\"of\":\"sale@1\""), "{orders}");
    assert!(!orders.contains(&TESTERS[1].to_string()), "{orders}");
    assert_eq!(sale.campaign(&["status", "sale@1", "--json"]).json()["counts"], json!({ "accepted": 3 }));
    server.end("TERM").exits(0);
}

#[test]
fn test_message_from_a_page_obeys_the_rules_of_the_command() {
    let gateway = Gateway::accepting();
    let sale = sent_campaign(&gateway);
    let many: String = (0..12).map(|number| format!("+{}\n", TESTERS[0] + number)).collect();
    sale.write("testers.csv", &format!("phone\n{many}"));
    sale.campaign(&["suppress", "add", &format!("+{}", TESTERS[0])]).exits(0);
    let server = Server::start(&sale, &["--test-to", "testers.csv"]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    let fields = recipients(&olha.page("/runs/sale@1/test?row=3"));
    let send = |chosen: &[String]| {
        let chosen: Vec<(&str, &str)> =
            [("row", "3")].into_iter().chain(chosen.iter().map(|field| (field.as_str(), "1"))).collect();
        olha.send(TEST, &chosen)
    };
    let refused = send(&fields[..1]);
    assert_eq!(refused.status, 409);
    assert!(refused.page().one("main").words().contains("opted out"), "{}", refused.body);
    assert_eq!(send(&fields[1..]).status, 409, "an edition has at most 10 test recipients");
    assert_eq!(gateway.phones().len(), 3);
    assert_eq!(send(&fields[1..11]).status, 303);
    assert_eq!(send(&fields[11..]).status, 409, "the limit counts earlier tests");
    assert_eq!(gateway.phones().len(), 13);
    sale.replace("sale.yaml", "name: sale\n", "name: sale\ntimezone: UTC\nedition: next\n");
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC);
    let hour = |hours: i64| now.checked_add(jiff::ToSpan::hours(hours)).expect("a time").strftime("%H:00").to_string();
    sale.replace("sale.yaml", "delivery:\n", &format!("delivery:\n  window: \"{}-{}\"\n", hour(4), hour(6)));
    let closed = send(&fields[1..2]);
    assert_eq!(closed.status, 409);
    assert!(closed.page().one("main").words().contains("the sending window is closed"), "{}", closed.body);
    assert_eq!(gateway.phones().len(), 13);
    server.end("TERM").exits(0);
}

#[test]
fn test_messages_from_pages_need_the_option_and_a_decider() {
    let gateway = Gateway::accepting();
    let sale = sent_campaign(&gateway);
    let server_without_tests = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server_without_tests, &["Olha", "--decide"]);
    assert!(!offers_test(&olha.page("/runs/sale@1")) && !offers_test(&olha.page("/runs/sale@1/campaign")));
    assert_eq!(olha.get(TEST).status, 404);
    assert_eq!(olha.send(TEST, &[("row", "3")]).status, 404);
    server_without_tests.end("TERM").exits(0);
    let server = Server::start(&sale, &["--test-to", "testers.csv"]);
    let ivan = sign_in(&sale, &server, &["Ivan"]);
    assert!(!offers_test(&ivan.page("/runs/sale@1")));
    assert_eq!(ivan.get("/runs/sale@1/test?row=3").status, 403);
    assert_eq!(ivan.send(TEST, &[("row", "3")]).status, 403);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    let fields = recipients(&olha.page("/runs/sale@1/test?row=3"));
    let (token, own_origin) = (olha.csrf_token(), format!("http://{}", server.address()));
    let chosen = [("row", "3"), (fields[0].as_str(), "1")];
    let forged = [chosen.as_slice(), &[("form", token.as_str())]].concat();
    for origin in ["https://evil.example", "null"] {
        assert_eq!(olha.post(TEST, &[("Origin", origin)], &forged).status, 403, "{origin}");
    }
    assert_eq!(olha.post(TEST, &[("Origin", &own_origin)], &chosen).status, 403, "without a token");
    assert_eq!(olha.post(TEST, &[("Origin", &own_origin), ("Host", "evil.example")], &forged).status, 404);
    // The form fields of one session do not identify recipients in another.
    let other = sign_in(&sale, &server, &["Petro", "--decide"]);
    assert_eq!(other.send(TEST, &chosen).status, 422);
    assert_eq!(gateway.phones(), [2, 3, 4].map(phone));
    sale.write("empty.csv", "phone\n");
    sale.campaign(&["serve", "--listen", "127.0.0.1:0", "--test-to", "empty.csv"]).exits(2);
    server.end("TERM").exits(0);
}
