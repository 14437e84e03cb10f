//! HTTP client behaviour: one test for each guarantee, so that the HTTP library can be upgraded safely.
//!
//! Other modules test that redirects and proxies are not used (`connections`), and that `https` is required except on
//! loopback (`inputs`).

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::{Reachable, campaign};

use super::scripted_gateway::{ScriptedGateway, accept_all, answer, body, script};
use super::{in_envelopes_of_four, states};

const OK: &str = "HTTP/1.1 200 OK";

#[test]
fn request_is_never_repeated_on_any_connection() {
    // The first connection stays open after one answer. Its second request is read, and the connection closes without
    // an answer.
    let keep_alive = script(|wire| {
        let request = wire.read()?;
        wire.write(&answer(OK, &[], &body(&request)))?;
        wire.read().map(drop)
    });
    let gateway = ScriptedGateway::start(vec![keep_alive, accept_all()]);
    let sale = in_envelopes_of_four().to(5).through(&gateway).write();
    sale.run(&[]).exits(4);
    // A repeated request on the second connection would have been accepted.
    assert_eq!(states(&sale), "adddd");
    assert_eq!(gateway.executed().len(), 5);
    let gateway = ScriptedGateway::start(vec![script(|wire| wire.read().map(drop))]);
    let sale = campaign().to(1).through(&gateway).write();
    sale.run(&[]).exits(4);
    assert_eq!((states(&sale).as_str(), gateway.executed().len()), ("d", 1));
}

#[test]
fn connection_closed_after_an_answer_loses_no_rows() {
    let close_after_answer = script(|wire| {
        let request = wire.read()?;
        // The answer promises to keep the connection open, but the gateway closes it.
        wire.write(&answer(OK, &["Connection: keep-alive"], &body(&request)))
    });
    let gateway = ScriptedGateway::start(vec![close_after_answer]);
    let sale = campaign().to(3).batches_of(1).one_at_a_time().delivery("rate: 10/s").through(&gateway).write();
    let code = sale.run(&[]).code();
    // A request that races with the close is in doubt; no row is lost or sent twice.
    assert!(matches!(code, Some(0 | 4)), "{code:?}");
    let accepted = states(&sale).chars().filter(|&state| state == 'a').count();
    assert_eq!((accepted, gateway.executed().len()), (accepted, accepted));
    assert!(!states(&sale).contains('p'));
}

#[test]
fn idle_connection_is_not_reused_after_a_second() {
    let count_connections = |rate: &str| {
        let keep_alive = script(|wire| {
            while let Ok(request) = wire.read() {
                wire.write(&answer(OK, &[], &body(&request)))?;
            }
            Ok(())
        });
        let gateway = ScriptedGateway::start(vec![keep_alive]);
        let sale = campaign().to(2).batches_of(1).one_at_a_time().delivery(rate).through(&gateway).write();
        sale.run(&[]).exits(0);
        gateway.connections()
    };
    assert_eq!((count_connections("rate: 100000/s"), count_connections("rate: 40/min")), (1, 2));
}

#[test]
fn request_is_plain_http_1_1() {
    let gateway = ScriptedGateway::start(vec![accept_all()]);
    let sale = campaign().to(1).through(&gateway).write();
    sale.run(&[]).exits(0);
    let request = &gateway.requests()[0];
    assert!(request.line.ends_with(" HTTP/1.1"), "{}", request.line);
    for name in ["accept-encoding", "expect", "upgrade", "http2-settings", "referer", "cookie", "transfer-encoding"] {
        assert!(request.header(name).is_empty(), "{name}: {:?}", request.header(name));
    }
    assert_eq!(request.header("content-length"), [request.body.len().to_string()]);
}

#[test]
fn answer_of_up_to_8_mib_is_accepted() {
    for (over, code, expected) in [(0, 0, "a"), (1, 5, "d")] {
        let padded = script(move |wire| {
            let mut body = body(&wire.read()?);
            body.resize((8 << 20) + over, b' ');
            wire.write(&answer(OK, &["Connection: close"], &body))?;
            wire.end_and_wait()
        });
        let gateway = ScriptedGateway::start(vec![padded]);
        let sale = campaign().to(1).through(&gateway).write();
        sale.run(&[]).exits(code);
        assert_eq!((states(&sale).as_str(), gateway.executed().len()), (expected, 1));
    }
}

/// A listener that accepts no connections and whose backlog is full.
struct Blackhole {
    listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Blackhole {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let _within = runtime.enter();
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let listener = socket.listen(1).expect("it listens").into_std().expect("a listener");
        let address = listener.local_addr().expect("an address");
        let waiting: Vec<_> =
            std::iter::from_fn(|| TcpStream::connect_timeout(&address, Duration::from_millis(300)).ok())
                .take(64)
                .collect();
        assert!(waiting.len() < 64, "the backlog does not fill up");
        Self { listener, _waiting: waiting }
    }
}

impl Reachable for Blackhole {
    fn base_url(&self) -> String {
        format!("http://{}", self.listener.local_addr().expect("an address"))
    }

    fn async_url(&self) -> String {
        self.base_url()
    }
}

#[test]
fn connection_timeout_proves_that_nothing_was_sent() {
    let blackhole = Blackhole::new();
    let sale =
        campaign().delivery("timeout: 3s").delivery("stop_after: { unreachable: 1s }").through(&blackhole).write();
    let began = Instant::now();
    sale.run(&[]).exits(5).says("cannot connect").says("the gateway accepted no requests for ");
    assert!(began.elapsed() >= Duration::from_secs(1), "the timeout was too short: {:?}", began.elapsed());
    assert_eq!(states(&sale), "ppp");
}

#[test]
fn listener_that_never_accepts_leaves_messages_in_doubt() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let blackhole = Blackhole { listener, _waiting: Vec::new() };
    let sale = campaign().to(1).delivery("timeout: 1s").through(&blackhole).write();
    sale.run(&[]).exits(4).says("no answer within 1 s");
    assert_eq!(states(&sale), "d");
    blackhole.listener.accept().expect("a pending connection");
}
