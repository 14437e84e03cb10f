//! `gateway hook --test`: a request to the public webhook URL that changes nothing.

use super::{Hooked, write_secret};
use crate::support::{Answer, Finished, Gateway, Reachable as _, campaign};

/// A campaign with a webhook endpoint.
fn campaign_with_hook() -> Hooked {
    Hooked::write(campaign().through(&Gateway::accepting()))
}

/// Tests the public URL, and checks that the output does not contain the secret.
fn test_public_url(hooked: &Hooked) -> Finished {
    let hook = hooked.sale.campaign(&["gateway", "hook", "local", "--json"]).exits(0).json();
    let code = hook["address"].as_str().and_then(|address| address.rsplit('/').next()).expect("an address");
    let finished = hooked.sale.campaign(&["gateway", "hook", "local", "--test"]);
    assert!(!finished.details().contains(code), "the secret address is shown: {}", finished.details());
    finished
}

#[test]
fn webhook_test_recognizes_the_server_and_stores_nothing() {
    let hooked = campaign_with_hook();
    let server = hooked.serve();
    test_public_url(&hooked).exits(0).says("reaches `campaign serve`");
    let result = hooked.sale.campaign(&["gateway", "hook", "local", "--test", "--json"]).exits(0).json();
    assert_eq!(result["reached"], true, "{result}");
    let metrics = server.get("/metrics").body;
    assert!(
        !metrics.lines().any(|line| line.starts_with("campaign_receipts_total") && !line.ends_with(" 0")),
        "{metrics}"
    );
    write_secret(&hooked.sale, "hook.secret", 't');
    test_public_url(&hooked).exits(2).says("a different secret than this profile");
    server.end("TERM").exits(0);
    hooked.serve().end("TERM").exits(0);
    test_public_url(&hooked).exits(5).says("connection refused").says("start `campaign serve`");
}

#[test]
fn wrong_server_at_the_webhook_url_is_reported_with_advice() {
    let page = Answer::Http { status: 200, headers: Vec::new(), body: b"ok".to_vec() };
    for (answer, message) in [
        (page, "the response was 200 and did not come from `campaign serve`"),
        (Answer::Accept, "check which server or proxy responds at that address"),
        (Answer::status(404), "`serve` uses a different secret"),
        (Answer::status(502), "a proxy with no server behind it"),
        (Answer::status_with(301, &["Location: http://127.0.0.1:1/"]), "a redirect"),
        (Answer::CloseRead, "the connection was lost"),
    ] {
        let (hooked, wrong_server) = (campaign_with_hook(), Gateway::always(answer));
        hooked.sale.replace("gateways.yaml", &format!("http://{}", hooked.address), &wrong_server.base_url());
        let finished = test_public_url(&hooked).says(message);
        assert!(matches!(finished.code(), Some(2 | 5)), "{}", finished.details());
    }
    let hooked = campaign_with_hook();
    let _server = hooked.serve();
    hooked.sale.replace("gateways.yaml", "public_url: http:", "public_url: https:");
    test_public_url(&hooked).exits(5).says("the TLS handshake failed");
}
