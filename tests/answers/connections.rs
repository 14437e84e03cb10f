//! Broken connections, redirects and proxies.

use crate::support::{Answer, Gateway, Process, Reachable as _, campaign, phone};

use super::{assert_outcomes_are_final, check_cases, in_envelopes_of_four, states};

#[test]
fn run_continues_with_rows_in_doubt_after_a_broken_connection() {
    check_cases([
        ("closed before it was read", Answer::CloseUnread, 4, "addddaaaaa"),
        ("read, then closed", Answer::CloseRead, 4, "addddaaaaa"),
        ("closed within the head", Answer::CutHead, 4, "addddaaaaa"),
        ("closed within the body", Answer::CutBody, 4, "addddaaaaa"),
        ("no response in time", Answer::Silence, 4, "addddaaaaa"),
    ]);
}

#[test]
fn three_doubtful_envelopes_in_a_row_stop_the_run() {
    let gateway = Gateway::answering([Answer::Accept, Answer::CloseRead, Answer::CutHead, Answer::CutBody]);
    let sale = in_envelopes_of_four().to(40).through(&gateway).write();
    sale.run(&[]).exits(5).says("3 requests in a row");
    assert_eq!(states(&sale), format!("a{}{}", "d".repeat(12), "p".repeat(27)));
    assert_outcomes_are_final(&gateway, &sale);
}

#[test]
fn campaign_can_change_the_limit_on_doubtful_envelopes() {
    let gateway = Gateway::answering([Answer::CloseRead]);
    let sale = in_envelopes_of_four().delivery("stop_after: { doubtful_envelopes: 1 }").through(&gateway).write();
    sale.run(&[]).exits(5);
    assert_eq!(states(&sale), "dppppppppp");
}

#[test]
fn redirect_is_never_followed_and_stops_the_run() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = Gateway::accepting();
        let location = format!("Location: {}/api/json.php", elsewhere.base_url());
        let gateway = Gateway::answering([Answer::status_with(status, &[&location])]);
        let sale = in_envelopes_of_four().through(&gateway).write();
        sale.run(&[]).exits(5).says("redirect");
        assert_eq!(states(&sale), "dppppppppp");
        assert_outcomes_are_final(&gateway, &sale);
        assert!(elsewhere.requests().is_empty(), "the key went to another host");
    }
}

#[test]
fn proxy_variables_in_the_environment_are_ignored() {
    let (gateway, proxy) = (Gateway::accepting(), Gateway::accepting());
    let sale = campaign().through(&gateway).write();
    let mut command = sale.command(&["run", "sale.yaml"]);
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        command.env(name, proxy.base_url()).env(name.to_lowercase(), proxy.base_url());
    }
    Process::start(command).finish().exits(0);
    assert_eq!((gateway.phones().len(), proxy.requests().len()), (3, 0));
}

#[test]
fn proxy_from_the_profile_is_used() {
    let (gateway, proxy) = (Gateway::accepting(), Gateway::accepting());
    let sale = campaign().to(1).through(&gateway).profile(&format!("proxy: {}", proxy.base_url())).write();
    sale.run(&[]).exits(0);
    assert_eq!(gateway.requests().len(), 0);
    assert_eq!(proxy.requests()[0].path(), format!("{}/api/json.php", gateway.base_url()));
    assert_eq!(proxy.phones(), [phone(2)]);
}
