//! Access to dashboard pages: sign-in links, sessions and visitors.

use serde_json::json;

use crate::receipts::{Hooked, operations};
use crate::support::{Browser, Folder, Gateway, Server, campaign, in_files, until};

/// The sections, and the pages of a run.
const PAGES: [&str; 12] = [
    "/",
    "/runs",
    "/schedules",
    "/opt-outs",
    "/replies",
    "/campaigns",
    "/search",
    "/runs/sale@1",
    "/runs/sale@1/rows",
    "/runs/sale@1/rows/2",
    "/runs/sale@1/campaign",
    "/runs/sale@1/preview",
];

/// Creates a campaign that was sent to three recipients.
fn sent_campaign(gateway: &Gateway) -> Folder {
    let sale = campaign().through(gateway).write();
    sale.run(&[]).exits(0);
    sale
}

/// Creates a new sign-in link.
fn create_link(sale: &Folder, options: &[&str]) -> String {
    let created = sale.campaign(&[&["serve", "link", "--json", "--for"], options].concat()).exits(0).json();
    created["url"].as_str().expect("an address").to_owned()
}

#[test]
fn visitor_without_a_session_learns_how_to_get_a_link() {
    let sale = sent_campaign(&Gateway::accepting());
    let server = Server::start(&sale, &[]);
    let visitor = Browser::anonymous(&server);
    for path in PAGES.iter().chain(&["/runs/sale@1/live", "/schedules/sale/preview", "/enter/guessed"]) {
        let response = visitor.get(path);
        assert_eq!(response.status, 403, "{path}");
        let page = response.page();
        assert!(page.one("pre").text.contains("campaign serve link --for NAME"), "{path}");
        assert!(!response.body.contains("sale@1") && response.header("set-cookie").is_empty(), "{path}");
    }
    for path in [
        "/runs/sale@1/stop",
        "/runs/sale@1/resolve",
        "/runs/sale@1/reconcile",
        "/schedules/sale/pause",
        "/opt-outs",
        "/opt-outs/add",
        "/opt-outs/remove",
        "/opt-outs/removed",
        "/runs/sale@1/find",
        "/search",
    ] {
        assert_eq!(visitor.post(path, &[], &[("count", "1")]).status, 403, "{path}");
    }
}

#[test]
fn sign_in_link_works_once_and_its_cookie_only_on_this_server() {
    let sale = sent_campaign(&Gateway::accepting());
    let server = Server::start(&sale, &[]);
    let visitor = Browser::anonymous(&server);
    let url = server.listening()["url"].as_str().expect("an address").to_owned();
    let path = url.strip_prefix(&format!("http://{}", server.address())).expect("a path").to_owned();
    assert!(path.starts_with("/enter/") && path.len() > 40, "{path}");
    // Requests from browsers and chat apps that only fetch the link do not use it up.
    assert_eq!(visitor.request("HEAD", &path, &[], "").status, 200);
    for header in [
        ("Sec-Purpose", "prefetch;prerender"),
        ("User-Agent", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"),
        ("User-Agent", "TelegramBot (like TwitterBot)"),
    ] {
        let fetched = visitor.request("GET", &path, &[header], "");
        assert_eq!((fetched.status, fetched.header("set-cookie")), (200, ""), "{header:?}");
        assert_eq!(fetched.page().one("form").attribute("method"), "post");
    }
    // Another site cannot sign a visitor in.
    assert_eq!(visitor.post(&path, &[("Origin", "https://evil.example")], &[]).status, 403);
    let response = visitor.use_link(&path);
    assert_eq!(response.status, 200);
    let cookie = response.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain") && !response.header("location").contains('/'), "{cookie}");
    for again in [visitor.use_link(&path), visitor.get(&path)] {
        assert_eq!((again.status, again.header("set-cookie")), (403, ""));
    }
    // The state folder contains neither the printed link nor the browser's session.
    let written = std::fs::read_to_string(sale.path("state/visitors.json")).expect("a file");
    let session = cookie.split(['=', ';']).nth(1).expect("a secret");
    assert!(!written.contains(session) && !written.contains(&path["/enter/".len()..]), "{written}");
}

#[test]
fn page_sends_security_headers_and_is_not_cached() {
    let sale = sent_campaign(&Gateway::accepting());
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    for path in PAGES.iter().chain(&["/runs/none@1", "/runs/sale@1/rows?state=rejected"]) {
        let response = browser.get(path);
        assert!([200, 404].contains(&response.status), "{path}: {}", response.body);
        let policy = response.header("content-security-policy");
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("unsafe"), "{path}: {policy}");
        for part in ["frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert_eq!(response.header("referrer-policy"), "same-origin", "{path}");
        assert_eq!(response.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(response.header("cache-control"), "no-store", "{path}");
        response.page();
    }
    let page = browser.page("/");
    let loaded = page.all("link").into_iter().chain(page.all("script"));
    for (element, kind) in loaded.zip(["image/svg+xml", "text/css", "text/javascript"]) {
        let at = [element.attribute("href"), element.attribute("src")].concat();
        let file = Browser::anonymous(&server).get(&at);
        assert_eq!(file.status, 200, "{at}");
        assert!(file.header("content-type").starts_with(kind) && file.header("cache-control").contains("immutable"));
    }
    assert_eq!(browser.get("/static/pages-000000000000.js").status, 404);
    let style = page.all("link").into_iter().find(|link| link.attribute("rel") == "stylesheet").expect("a stylesheet");
    let style = browser.get(style.attribute("href")).body.len();
    for path in PAGES {
        let size = browser.get(path).body.len() + style;
        assert!(size <= 120_000, "{path} has {size} bytes with its stylesheet");
    }
}

#[test]
fn foreign_host_header_is_refused_even_with_a_valid_cookie() {
    let sale = sent_campaign(&Gateway::accepting());
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    for host in ["evil.example", "203.0.113.7"] {
        assert_eq!(browser.request("GET", "/", &[("Host", host)], "").status, 404, "{host}");
    }
    assert_eq!(browser.get("/").status, 200);
}

#[test]
fn revoked_visitor_loses_access_at_once() {
    let sale = sent_campaign(&Gateway::accepting());
    let server = Server::start(&sale, &[]);
    let (olha, ivan) = (
        Browser::with_link(&server, &create_link(&sale, &["Olha", "--decide"])),
        Browser::with_link(&server, &create_link(&sale, &["Ivan"])),
    );
    let unused = create_link(&sale, &["Olha"]);
    let listed = sale.campaign(&["serve", "list", "--json"]).json_list();
    let find_visitor =
        |name: &str| listed.as_array().expect("a list").iter().find(|one| one["name"] == name).expect("a name").clone();
    assert_eq!((&find_visitor("Olha")["decides"], &find_visitor("Olha")["links"]), (&true.into(), &1.into()));
    assert_eq!((&find_visitor("Ivan")["decides"], &find_visitor("Ivan")["sessions"]), (&false.into(), &1.into()));
    let mut live = olha.follow("/runs/sale@1/live", None);
    assert_eq!(live.next().expect("an event").kind, "parts");
    sale.campaign(&["serve", "revoke", "Olha"]).exits(0).says("of Olha");
    assert_eq!(olha.get("/").status, 403);
    assert_eq!(live.next().map(|event| event.kind), Some("gone".to_owned()));
    assert!(live.next().is_none(), "the stream ends");
    let unused = unused.split_once(&server.address()).expect("a path").1;
    assert_eq!(Browser::anonymous(&server).get(unused).status, 403);
    assert_eq!(Browser::anonymous(&server).use_link(unused).status, 403);
    assert_eq!(ivan.get("/").status, 200);
}

#[test]
fn session_outlives_the_server_and_ends_at_sign_out() {
    let _files = in_files();
    let sale = sent_campaign(&Gateway::accepting());
    let server = Server::start(&sale, &[]);
    let browser = Browser::signed_in(&server);
    server.end("TERM").exits(0);
    let server = Server::start(&sale, &[]);
    let browser = browser.on_server(&server);
    assert_eq!(browser.get("/").status, 200);
    assert_eq!(browser.send("/leave", &[]).status, 403);
    assert_eq!(browser.get("/").status, 403);
}

#[test]
fn sign_in_link_needs_a_name_and_a_server_that_has_run() {
    let sale = campaign().write();
    sale.campaign(&["serve", "link", "--for", "Olha"]).exits(2).says("no server has used this state folder");
    sale.campaign(&["serve", "link"]).exits(2).says("--for");
    sale.campaign(&["serve", "link", "--for", " "]).exits(2).says("use 1 to 64 characters");
    sale.campaign(&["serve", "list"]).exits(0).says("no one can sign in");
    Server::start(&sale, &["--pages-url", "https://campaign.example.com"]).end("TERM").exits(0);
    sale.campaign(&["serve", "link", "--for", "Olha"]).exits(0).says("https://campaign.example.com/enter/");
    sale.campaign(&["serve", "revoke", "Nobody"]).exits(0).says("nothing changed");
}

#[test]
fn cookie_over_tls_uses_the_host_prefix() {
    let sale = campaign().write();
    let server = Server::start(&sale, &["--pages-url", "https://campaign.example.com"]);
    let url = server.listening()["url"].as_str().expect("an address").to_owned();
    let path = url.strip_prefix("https://campaign.example.com").expect("its origin");
    let headers = [("Host", "campaign.example.com"), ("Origin", "https://campaign.example.com")];
    let response = Browser::anonymous(&server).request("POST", path, &headers, "");
    let cookie = response.header("set-cookie");
    assert!(cookie.starts_with("__Host-campaign=") && cookie.ends_with("; Secure"), "{cookie}");
}

#[test]
fn no_log_contains_a_secret_or_a_phone_number() {
    let sale = sent_campaign(&Gateway::accepting());
    let server = Server::start(&sale, &["-vv"]);
    let browser = Browser::with_link(&server, &create_link(&sale, &["Olha", "--decide"]));
    browser.send("/runs/sale@1/find", &[("wanted", "380501000003")]);
    browser.send("/opt-outs", &[("phone", "380501000003")]);
    let written = std::fs::read_to_string(sale.path("state/orders.jsonl")).expect("a file");
    let ended = server.end("TERM").exits(0);
    let orders_and_log = ended.stderr + &written;
    assert!(orders_and_log.contains("suppress") && !orders_and_log.contains("50100000"), "{orders_and_log}");
    assert!(!orders_and_log.contains("/enter/"), "{orders_and_log}");
}

#[test]
fn damaged_visitors_file_disables_pages_but_not_webhooks() {
    let gateway = Gateway::accepting();
    let hooked = Hooked::write(campaign().to(2).through(&gateway));
    let sale = &hooked.sale;
    sale.run(&[]).exits(0);
    let delivered = json!({ "success": true, "status": "DELIVERED" }).to_string();
    for damage in ["{", "[]", "null", ""] {
        sale.write("state/visitors.json", damage);
        let mut server = hooked.serve();
        let listening = server.listening().clone();
        assert!(listening["pages_closed"].as_str().is_some_and(|why| why.contains("delete the file")), "{listening}");
        let closed = Browser::anonymous(&server).get("/");
        assert_eq!(closed.status, 503);
        assert!(closed.page().one("pre").text.contains("campaign serve list"));
        assert!(!closed.body.contains("visitors.json"), "no paths are shown without a session");
        assert_eq!(hooked.post(&operations(&gateway)[0], &delivered), 200);
        sale.campaign(&["serve", "link", "--for", "Olha"]).exits(74).says("visitors.json").says("delete the file");
        server.assert_running();
        std::fs::remove_file(sale.path("state/visitors.json")).expect("removed");
        assert_eq!(Browser::anonymous(&server).get("/").status, 403, "only a new link grants access");
        server.end("TERM").exits(0);
    }
    assert_eq!(hooked.results().states(), ["delivered", "accepted"]);
    // A running server also refuses existing sessions if the file is unreadable.
    let server = hooked.serve();
    let visitor = Browser::signed_in(&server);
    assert_eq!(visitor.get("/").status, 200);
    sale.write("state/visitors.json", "{");
    assert_eq!(visitor.get("/").status, 503);
    assert_eq!(hooked.post(&operations(&gateway)[1], &delivered), 200);
    until("the log has the entry", || server.stderr().contains("the dashboard is unavailable"));
    drop(server);
}
