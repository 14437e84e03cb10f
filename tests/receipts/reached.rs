//! Whether the public address of the receipts' door leads to it is asked as the gateway would, and changes nothing.

use super::{Hooked, secret};
use crate::support::{Answer, Finished, Gateway, Reachable as _, campaign};

/// A campaign whose profile has a door.
fn hooked() -> Hooked {
    Hooked::write(campaign().through(&Gateway::accepting()))
}

/// What is told of the public address of its profile.
fn test(hooked: &Hooked) -> Finished {
    let printed = hooked.sale.campaign(&["gateway", "hook", "local", "--json"]).exits(0).json();
    let code = printed["address"].as_str().and_then(|address| address.rsplit('/').next()).expect("an address");
    let tested = hooked.sale.campaign(&["gateway", "hook", "local", "--test"]);
    assert!(!tested.told().contains(code), "the secret address is shown: {}", tested.told());
    tested
}

#[test]
fn server_with_the_secret_is_recognized_and_stores_nothing() {
    let hooked = hooked();
    let server = hooked.serve();
    test(&hooked).exits(0).says("reaches `campaign serve`");
    let told = hooked.sale.campaign(&["gateway", "hook", "local", "--test", "--json"]).exits(0).json();
    assert_eq!(told["reached"], true, "{told}");
    let counted = server.get("/metrics").body;
    assert!(
        !counted.lines().any(|line| line.starts_with("campaign_receipts_total") && !line.ends_with(" 0")),
        "{counted}"
    );
    secret(&hooked.sale, "hook.secret", 't');
    test(&hooked).exits(2).says("a different secret than this profile");
    server.end("TERM").exits(0);
    hooked.serve().end("TERM").exits(0);
    test(&hooked).exits(5).says("connection refused").says("start `campaign serve`");
}

#[test]
fn competing_process_is_named_with_advice() {
    let page = Answer::Http { status: 200, headers: Vec::new(), body: b"ok".to_vec() };
    for (answer, told) in [
        (page, "the response was 200 and did not come from `campaign serve`"),
        (Answer::Accept, "check which server or proxy responds there"),
        (Answer::status(404), "`serve` uses a different secret"),
        (Answer::status(502), "a proxy without a server behind it"),
        (Answer::status_with(301, &["Location: http://127.0.0.1:1/"]), "a redirect"),
        (Answer::CloseRead, "the connection was lost"),
    ] {
        let (hooked, other) = (hooked(), Gateway::always(answer));
        hooked.sale.replace("gateways.yaml", &format!("http://{}", hooked.door), &other.base_url());
        let tested = test(&hooked).says(told);
        assert!(matches!(tested.code(), Some(2 | 5)), "{}", tested.told());
    }
    let hooked = hooked();
    let _server = hooked.serve();
    hooked.sale.replace("gateways.yaml", "public_url: http:", "public_url: https:");
    test(&hooked).exits(5).says("the TLS handshake failed");
}
