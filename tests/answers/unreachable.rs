//! Unreachable gateways.

use std::net::TcpListener;

use crate::support::{Gateway, Reachable, campaign};

use super::states;

/// A URL whose port is closed.
struct ClosedPort(String);

impl ClosedPort {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        Self(format!("http://{}", listener.local_addr().expect("an address")))
    }
}

impl Reachable for ClosedPort {
    fn base_url(&self) -> String {
        self.0.clone()
    }

    fn async_url(&self) -> String {
        self.0.clone()
    }
}

#[test]
fn unreachable_gateway_is_retried_and_nothing_counts_as_sent() {
    let sale = campaign().delivery("stop_after: { unreachable: 2s }").through(&ClosedPort::new()).write();
    let run = sale.run(&[]).exits(5).says("the gateway accepted no requests for ");
    let profile = std::fs::read_to_string(sale.path("gateways.yaml")).expect("the profile");
    let address = profile.split_once("http://").expect("an address").1.lines().next().expect("an address");
    run.says(&format!("connection refused by {address}")).says("start it with `campaign sandbox`");
    assert_eq!(states(&sale), "ppp");
    sale.campaign(&["status", "sale"]).exits(5);
}

#[test]
fn resumed_run_sends_all_rows_after_the_gateway_recovers() {
    let closed_port = ClosedPort::new();
    let sale = campaign().delivery("stop_after: { unreachable: 1s }").through(&closed_port).write();
    sale.run(&[]).exits(5);
    let gateway = Gateway::accepting();
    sale.replace("gateways.yaml", &closed_port.0, &gateway.base_url());
    sale.run(&[]).exits(0);
    assert_eq!((states(&sale).as_str(), gateway.phones().len()), ("aaa", 3));
}

#[test]
fn failed_tls_handshake_stops_the_run_and_sends_nothing() {
    // The scripted gateway does not speak TLS.
    let gateway = Gateway::accepting();
    let address = gateway.base_url().replace("http://", "https://");
    let sale = campaign().through(&ClosedPort(address)).write();
    sale.run(&[]).exits(5).says("TLS handshake");
    assert_eq!(states(&sale), "ppp");
    assert!(gateway.phones().is_empty());
}
