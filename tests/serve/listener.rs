//! Dashboard listener: host allowlist, forwarded requests, slow clients.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::support::{Server, campaign, http_get};

#[test]
fn foreign_clients_and_foreign_hosts_are_refused() {
    let sale = campaign().write();
    let server = Server::start(&sale, &["--pages-url", "https://campaign.example.com"]);
    let address = server.address();
    // Without a session, a page responds with 403.
    for (headers, page, monitoring) in [
        (vec![], 403, 200),
        (vec![("Host", "localhost")], 403, 200),
        (vec![("Host", "evil.example")], 404, 404),
        (vec![("Host", "203.0.113.7")], 404, 404),
        (vec![("Host", "localhost"), ("X-Forwarded-For", "203.0.113.7")], 404, 404),
        (vec![("Host", "localhost"), ("Forwarded", "for=203.0.113.7")], 404, 404),
        (vec![("Host", "campaign.example.com"), ("X-Forwarded-For", "203.0.113.7")], 403, 404),
        (vec![("Host", "campaign.example.com")], 403, 404),
    ] {
        assert_eq!(http_get(&address, "/", &headers).status, page, "{headers:?}");
        for path in ["/healthz", "/readyz", "/metrics"] {
            assert_eq!(http_get(&address, path, &headers).status, monitoring, "{path} {headers:?}");
        }
    }
    assert_eq!(http_get(&address, "/nothing", &[("Host", "localhost")]).body, "");
}

#[test]
fn slow_request_heads_time_out_and_delay_nothing_else() {
    let sale = campaign().write();
    let server = Server::start(&sale, &[]);
    let mut slow: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(server.address()).expect("a connection");
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHo").expect("sent");
            stream
        })
        .collect();
    let started_at = Instant::now();
    assert_eq!(server.get("/healthz").status, 200);
    assert!(started_at.elapsed() < Duration::from_secs(4), "delayed by slow clients");
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
        assert_eq!(stream.read(&mut [0; 1]).expect("the end"), 0);
    }
    assert!(started_at.elapsed() < Duration::from_secs(20));
}
