//! Decisions made on dashboard pages: the rules of the commands apply, with a CSRF token and sufficient rights.

use crate::support::{
    Answer, Browser, Folder, Gateway, Reachable as _, SandboxProcess, Server, campaign, unreachable_url, until,
};

/// Creates a campaign with four rows in doubt.
fn campaign_in_doubt(gateway: &Gateway) -> Folder {
    let draft = campaign().to(10).batches_of(4).one_at_a_time().delivery("timeout: 10s").through(gateway);
    let sale = draft.write();
    sale.run(&[]).exits(4);
    assert_eq!(sale.results().counts()["in_doubt"], 4);
    sale
}

fn gateway_losing_an_answer() -> Gateway {
    Gateway::answering([Answer::Accept, Answer::CloseRead])
}

/// Signs in with a link that has these options.
fn sign_in(sale: &Folder, server: &Server, options: &[&str]) -> Browser {
    let link = sale.campaign(&[&["serve", "link", "--json", "--for"], options].concat()).exits(0).json();
    Browser::with_link(server, link["url"].as_str().expect("an address"))
}

const SENT: [(&str, &str); 2] = [("decision", "sent"), ("count", "4")];

#[test]
fn decision_about_rows_in_doubt_is_recorded_with_its_author() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    let fields = [SENT.as_slice(), &[("why", "all of them called back")]].concat();
    let decided = olha.send("/runs/sale@1/resolve", &fields);
    assert_eq!((decided.status, decided.header("location")), (303, "/runs/sale@1?done=resolve"));
    assert!(olha.page("/runs/sale@1?done=resolve").one("main").words().contains("Your decision was recorded."));
    assert_eq!(sale.results().counts()["assumed_sent"], 4);
    let shown = sale.campaign(&["show", "sale@1", "--row", "3", "--json"]).json();
    let change = &shown["history"].as_array().expect("a list").last().expect("a change")["change"];
    assert_eq!((&change["by"], &change["why"]), (&"Olha".into(), &"all of them called back".into()));
    let history = olha.page("/runs/sale@1/rows/3").one("main").words();
    assert!(history.contains("Marked as sent by Olha"), "{history}");
    assert!(olha.page("/").one("main").words().contains("Olha mark rows as sent in sale@1"));
}

#[test]
fn decision_with_a_wrong_row_count_is_refused() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let browser = sign_in(&sale, &server, &["Olha", "--decide"]);
    for decision in ["sent", "not-sent", "send-again"] {
        for count in ["", "3", "5", "four", "-4"] {
            let refused = browser.send("/runs/sale@1/resolve", &[("decision", decision), ("count", count)]);
            assert_eq!(refused.status, 422, "{decision} {count}");
            assert!(refused.page().one("main").words().contains("The decision affects 4 rows"), "{decision} {count}");
        }
    }
    assert_eq!(browser.send("/runs/sale@1/resolve", &[("count", "4")]).status, 422, "no decision");
    let long = "x".repeat(20_000);
    let too_long =
        browser.send("/runs/sale@1/resolve", &[("decision", "sent"), ("count", "4"), ("why", long.as_str())]);
    assert_eq!(too_long.status, 400);
    assert!(too_long.page().one("main").words().contains("The form is too long"), "{}", too_long.body);
    let one_row = [("decision", "not-sent"), ("row", "3"), ("count", "4")];
    assert_eq!(browser.send("/runs/sale@1/resolve", &one_row).status, 422, "one row stays one row");
    let several = [("decision", "sent"), ("row", "2-5"), ("count", "1")];
    assert_eq!(browser.send("/runs/sale@1/resolve", &several).status, 404, "not several rows");
    let other = [("decision", "not-sent"), ("row", "9"), ("count", "1")];
    assert_eq!(browser.send("/runs/sale@1/resolve", &other).status, 409, "that row is not in doubt");
    assert_eq!(sale.campaign(&["status", "sale@1", "--json"]).json()["counts"]["in_doubt"], 4);
    let one_row = [("decision", "not-sent"), ("row", "3"), ("count", "1")];
    let decided = browser.send("/runs/sale@1/resolve", &one_row);
    assert_eq!((decided.status, decided.header("location")), (303, "/runs/sale@1/rows/3?done=resolve"));
    let counts = sale.campaign(&["status", "sale@1", "--json"]).json()["counts"].clone();
    assert_eq!((&counts["in_doubt"], &counts["not_sent"]), (&3.into(), &1.into()));
}

#[test]
fn rows_to_resend_wait_for_the_next_run() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let before = gateway.sends().len();
    let browser = sign_in(&sale, &server, &["Olha", "--decide"]);
    assert_eq!(browser.send("/runs/sale@1/resolve", &[("decision", "send-again"), ("count", "4")]).status, 303);
    assert_eq!(gateway.sends().len(), before, "a page sends nothing");
    assert_eq!(sale.campaign(&["status", "sale@1", "--json"]).json()["counts"]["planned"], 4);
    sale.run(&[]).exits(0);
    assert_eq!(sale.results().counts()["accepted"], 10);
}

#[test]
fn cross_site_or_cross_session_request_is_refused() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let (browser, other) =
        (sign_in(&sale, &server, &["Olha", "--decide"]), sign_in(&sale, &server, &["Ivan", "--decide"]));
    let (token, other_token) = (browser.csrf_token(), other.csrf_token());
    assert_ne!(token, other_token);
    let own_origin = format!("http://{}", server.address());
    let other_scheme = own_origin.replace("http:", "https:");
    for (origin, form, status) in [
        (Some("https://evil.example"), token.as_str(), 403),
        (Some("null"), token.as_str(), 403),
        (Some(other_scheme.as_str()), token.as_str(), 403),
        (None, token.as_str(), 403),
        (Some(own_origin.as_str()), "", 403),
        (Some(own_origin.as_str()), "guessed", 403),
        (Some(own_origin.as_str()), other_token.as_str(), 403),
        (Some(own_origin.as_str()), token.as_str(), 303),
    ] {
        let headers: Vec<(&str, &str)> = origin.iter().map(|origin| ("Origin", *origin)).collect();
        let fields = [SENT.as_slice(), &[("form", form)]].concat();
        assert_eq!(browser.post("/runs/sale@1/resolve", &headers, &fields).status, status, "{origin:?} {form}");
        let in_doubt = sale.campaign(&["status", "sale@1", "--json"]).json()["counts"]["in_doubt"].as_u64();
        assert_eq!(in_doubt, (status == 403).then_some(4), "{origin:?} {form}");
    }
}

#[test]
fn every_action_refuses_foreign_origins_and_missing_tokens() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    let (token, own_origin) = (olha.csrf_token(), format!("http://{}", server.address()));
    let fields = [("decision", "sent"), ("count", "4"), ("phone", "+380501000003"), ("wanted", "3")];
    for path in [
        "/leave",
        "/search",
        "/runs/sale@1/find",
        "/runs/sale@1/stop",
        "/runs/sale@1/resolve",
        "/runs/sale@1/reconcile",
        "/runs/sale@1/retry",
        "/schedules/sale/pause",
        "/schedules/sale/resume",
        "/opt-outs",
        "/opt-outs/add",
        "/opt-outs/remove",
        "/opt-outs/removed",
    ] {
        let forged = [fields.as_slice(), &[("form", token.as_str())]].concat();
        for origin in ["https://evil.example", "null"] {
            assert_eq!(olha.post(path, &[("Origin", origin)], &forged).status, 403, "{path} {origin}");
        }
        assert_eq!(olha.post(path, &[], &forged).status, 403, "{path} without an origin");
        assert_eq!(olha.post(path, &[("Origin", &own_origin)], &fields).status, 403, "{path} without a token");
        let foreign_host = [("Origin", own_origin.as_str()), ("Host", "evil.example")];
        assert_eq!(olha.post(path, &foreign_host, &forged).status, 404, "{path} on another host");
    }
    assert!(!sale.path("state/orders.jsonl").exists(), "no order was recorded");
    assert_eq!(sale.campaign(&["status", "sale@1", "--json"]).json()["counts"]["in_doubt"], 4);
    assert_eq!(olha.get("/").status, 200, "the session continues");
}

#[test]
fn read_only_visitor_sees_no_buttons_and_is_refused() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let ivan = sign_in(&sale, &server, &["Ivan"]);
    let page = ivan.page("/runs/sale@1");
    let orders = page.all("form").into_iter().map(|form| form.attribute("action").to_owned());
    assert_eq!(orders.collect::<Vec<_>>(), ["/leave", "/search"]);
    let actions = ["/stop", "/resolve", "/reconcile", "/retry"];
    let links = page.all("a").into_iter().map(|link| link.attribute("href"));
    assert!(links.clone().all(|link| !actions.iter().any(|action| link.contains(action))), "no link to an action");
    for (path, fields) in [
        ("/runs/sale@1/resolve", SENT.as_slice()),
        ("/runs/sale@1/stop", &[]),
        ("/schedules/sale/pause", &[]),
        ("/schedules/sale/resume", &[]),
        ("/runs/sale@1/reconcile", &[]),
        ("/runs/sale@1/retry", &[("count", "4")]),
        ("/opt-outs", &[("phone", "+380501000003")]),
        ("/opt-outs/add", &[("phone", "+380501000003")]),
        ("/opt-outs/remove", &[("phone", "+380501000003")]),
        ("/opt-outs/removed", &[("phone", "+380501000003"), ("count", "1")]),
    ] {
        let refused = ivan.send(path, fields);
        assert_eq!(refused.status, 403, "{path}");
        assert!(refused.page().one("main").words().contains("You have view-only access"), "{path}");
    }
    for path in
        ["/runs/sale@1/resolve?decision=sent", "/runs/sale@1/stop", "/runs/sale@1/retry", "/schedules/sale/pause"]
    {
        let refused = ivan.get(path);
        assert_eq!(refused.status, 403, "{path}");
    }
    assert_eq!(sale.campaign(&["status", "sale@1", "--json"]).json()["counts"]["in_doubt"], 4);
    assert!(!sale.path("state/orders.jsonl").exists(), "no order was recorded");
}

#[test]
fn decisions_are_refused_while_sending_but_stop_works() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(2_000).batches_of(10).through(&sandbox).delivery("rate: 100/s").write();
    let server = Server::start(&sale, &[]);
    let browser = sign_in(&sale, &server, &["Olha", "--decide"]);
    let run = sale.start(&["--yes", "--json"]);
    until("the run is sending", || browser.get("/runs/sale@1").body.contains("/runs/sale@1/stop"));
    let decided = browser.send("/runs/sale@1/resolve", &[("decision", "sent"), ("count", "1")]);
    assert!([409, 422].contains(&decided.status), "{}", decided.status);
    let stopped = browser.send("/runs/sale@1/stop", &[]);
    assert_eq!((stopped.status, stopped.header("location")), (303, "/runs/sale@1?done=stop"));
    let ended = run.finish().exits(5).json();
    assert_eq!(ended["stopped"], "stop");
    assert!(sandbox.messages().len() < 2_000);
    let again = browser.send("/runs/sale@1/stop", &[]);
    assert_eq!(again.header("location"), "/runs/sale@1?done=not-sending");
}

#[test]
fn pages_can_pause_a_schedule_and_suppress_a_number() {
    let gateway = Gateway::accepting();
    let sale = campaign().through(&gateway).top("timezone: UTC").top("schedule: { every: 1st 10:00 }").write();
    sale.campaign(&["schedule", "add", "sale.yaml"]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = sign_in(&sale, &server, &["Olha", "--decide"]);
    let state = || sale.campaign(&["schedule", "list", "--json"]).json_list()[0]["state"].clone();
    for (path, now) in [("/schedules/sale/pause", "paused"), ("/schedules/sale/resume", "armed")] {
        assert_eq!(browser.send(path, &[]).status, 303, "{path}");
        assert_eq!(state(), now);
    }
    assert_eq!(browser.send("/schedules/none/pause", &[]).status, 404);
    assert_eq!(browser.get("/schedules/none/pause").status, 404);
    assert!(browser.page("/schedules/sale/pause").one("main").words().contains("It sends nothing until"));
    let fields = [("phone", "+380 50 100 00 03"), ("why", "asked by mail")];
    assert_eq!(browser.send("/opt-outs", &fields).header("location"), "/opt-outs?done=suppress");
    assert_eq!(browser.send("/opt-outs", &fields).header("location"), "/opt-outs?done=suppressed");
    assert_eq!(browser.send("/opt-outs", &[("phone", "12")]).status, 422);
    let listed = sale.campaign(&["suppress", "list", "--json"]).json_list();
    let known = [&listed[0]["phone"], &listed[0]["source"], &listed[0]["reason"]];
    assert_eq!(known, ["380501000003", "Olha", "asked by mail"]);
    let confirmed = browser.send("/opt-outs/remove", &fields[..1]).page();
    assert!(confirmed.one("main").words().contains("1 entry on the suppression list"), "{confirmed:?}");
    for count in ["", "2"] {
        assert_eq!(browser.send("/opt-outs/removed", &[fields[0], ("count", count)]).status, 422, "{count}");
    }
    let removed = [fields[0], ("count", "1"), ("why", "asked to come back")];
    assert_eq!(browser.send("/opt-outs/removed", &removed).header("location"), "/opt-outs?done=unsuppress");
    assert_eq!(browser.send("/opt-outs/removed", &removed).header("location"), "/opt-outs?done=not-listed");
    assert_eq!(sale.campaign(&["suppress", "list", "--json"]).json_list().as_array().map(Vec::len), Some(0));
}

#[test]
fn confirmation_says_what_an_action_does_and_changes_nothing() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    let page = olha.page("/runs/sale@1");
    let links: Vec<&str> = page.all("a").into_iter().map(|link| link.attribute("href")).collect();
    for (path, expected) in [
        ("/runs/sale@1/resolve?decision=sent", "4 rows in doubt"),
        ("/runs/sale@1/resolve?decision=not-sent", "a retry will send it again"),
        ("/runs/sale@1/resolve?decision=send-again", "recipients will get them twice"),
        ("/runs/sale@1/reconcile", "asked about 4 messages in doubt"),
    ] {
        assert!(links.contains(&path), "{path}: {links:?}");
        let confirmation = olha.page(path);
        assert!(confirmation.one("main").words().contains(expected), "{path}");
        let form = confirmation.with_class("confirm")[0];
        assert_eq!(form.attribute("action"), path.split('?').next().expect("a path"));
    }
    assert!(olha.page("/runs/sale@1/rows/3").one("main").words().contains("Mark as sent"));
    let one_row = olha.page("/runs/sale@1/resolve?decision=sent&row=3").one("main").words();
    assert!(one_row.contains("Row 3") && one_row.contains("1 row in doubt"), "{one_row}");
    assert_eq!(olha.get("/runs/sale@1/resolve?decision=guess").status, 422);
    assert_eq!(olha.get("/runs/sale@1/resolve?decision=sent&row=99").status, 404);
    assert_eq!(sale.campaign(&["status", "sale@1", "--json"]).json()["counts"]["in_doubt"], 4);
    assert!(!sale.path("state/orders.jsonl").exists(), "no order was recorded");
}

#[test]
fn page_reconciles_by_the_same_rules_as_the_command() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    let before = gateway.sends().len();
    let response = olha.send("/runs/sale@1/reconcile", &[]);
    let log = std::fs::read_to_string(sale.path("state/orders.jsonl")).expect("a file");
    assert!([303, 409].contains(&response.status), "{}", response.body);
    assert!(log.contains(r#""order":"reconcile""#) && log.contains(r#""by":"Olha""#), "{log}");
    assert_eq!(gateway.sends().len(), before, "nothing is sent");
}

#[test]
fn page_says_that_the_gateway_did_not_answer_about_doubt() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    sale.replace("gateways.yaml", &gateway.base_url(), &unreachable_url());
    sale.campaign(&["gateway", "trust", "local", "--yes"]);
    let response = olha.send("/runs/sale@1/reconcile", &[]);
    assert_eq!((response.status, response.header("location")), (303, "/runs/sale@1?done=reconcile-unclear"));
    let page = olha.page("/runs/sale@1?done=reconcile-unclear");
    assert!(page.one("main").words().contains("The gateway gave no usable response"), "{}", page.one("main").words());
    let log = std::fs::read_to_string(sale.path("state/orders.jsonl")).expect("a file");
    assert!(log.contains("no usable response from the gateway"), "{log}");
}

#[test]
fn refused_actions_are_marked_in_the_log_and_on_the_page() {
    let gateway = gateway_losing_an_answer();
    let sale = campaign_in_doubt(&gateway);
    let server = Server::start(&sale, &[]);
    let olha = sign_in(&sale, &server, &["Olha", "--decide"]);
    let not_in_doubt = [("decision", "not-sent"), ("row", "9"), ("count", "1")];
    assert_eq!(olha.send("/runs/sale@1/resolve", &not_in_doubt).status, 409);
    assert!(olha.page("/").one("main").words().contains("rows as not sent in sale@1 refused"));
    assert_eq!(olha.send("/runs/sale@1/resolve", &SENT).status, 303);
    assert_eq!(olha.send("/runs/sale@1/stop", &[]).status, 303);
    let log = std::fs::read_to_string(sale.path("state/orders.jsonl")).expect("a file");
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let word = |line: &serde_json::Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let outcomes: Vec<_> = lines.iter().map(|line| (word(line, "order"), word(line, "outcome"))).collect();
    let expected = ["not-sent begun", "not-sent refused", "sent begun", "sent done", "stop begun", "stop unchanged"];
    assert_eq!(outcomes.iter().map(|(order, outcome)| format!("{order} {outcome}")).collect::<Vec<_>>(), expected);
    for pair in lines.chunks(2) {
        assert!(
            ["at", "by", "of", "id"].iter().all(|field| pair[0][field].is_string() && pair[0][field] == pair[1][field])
        );
        assert_eq!(pair[1]["reason"].is_string(), pair[1]["outcome"] != "done", "{log}");
    }
    assert_ne!(lines[1]["id"], lines[2]["id"]);
}

#[test]
fn no_page_approves_a_plan_or_starts_a_run() {
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    let server = Server::start(&sale, &[]);
    let browser = sign_in(&sale, &server, &["Olha", "--decide"]);
    for path in ["/runs/sale@1/approve", "/runs/sale@1/run", "/runs/sale@1/retry", "/approve", "/plans"] {
        assert_eq!(browser.send(path, &[]).status, 404, "{path}");
    }
    assert_eq!(browser.send("/runs/sale@1", &[]).status, 405);
}
