//! The process of `campaign serve`: first output line, health checks, signals and exit codes.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::{Process, SandboxProcess, Server, campaign, in_files, run_sql, until, with_ledger};

#[test]
fn first_line_names_the_address_and_both_health_checks_answer() {
    let sale = campaign().write();
    let server = Server::start(&sale, &[]);
    let listening = server.listening();
    assert!(listening["pid"].as_u64().is_some_and(|pid| pid > 1), "{listening}");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    assert_eq!((server.get("/").status, server.get("/nothing").status), (403, 404));
    let ended = server.end("TERM").exits(0);
    assert_eq!(ended.stdout.lines().count(), 1, "{}", ended.details());
}

#[test]
fn address_is_printed_as_plain_text_without_json() {
    let sale = campaign().write();
    let mut serve = Process::start(sale.command(&["serve", "--listen", "127.0.0.1:0"]));
    until("the server listens", || serve.stdout().starts_with("listening on http://127.0.0.1:"));
    serve.signal("INT");
    serve.finish().exits(0);
}

#[test]
fn readyz_reports_not_ready_while_the_ledger_is_locked() {
    let _files = in_files();
    let sale = campaign().write();
    let server = Server::start(&sale, &[]);
    with_ledger(&sale, async |ledger| {
        run_sql(ledger, "BEGIN IMMEDIATE").await;
        let started_at = Instant::now();
        assert_eq!(server.get("/readyz").status, 503);
        assert!(started_at.elapsed() < Duration::from_secs(10), "{:?}", started_at.elapsed());
        assert_eq!(server.get("/healthz").status, 200, "alive but not ready");
        run_sql(ledger, "ROLLBACK").await;
    });
    until("the server is ready", || server.get("/readyz").status == 200);
    server.end("TERM").exits(0);
}

#[test]
fn server_with_a_failed_ledger_is_not_ready_and_exits_74() {
    let _files = in_files();
    let sale = campaign().write();
    sale.run(&[]).exits(0);
    with_ledger(&sale, async |ledger| {
        // The write-ahead log exceeds the file size limit of the server, so its first write fails.
        run_sql(ledger, "PRAGMA wal_autocheckpoint = 0; CREATE TABLE filler (bytes BLOB)").await;
        run_sql(ledger, "INSERT INTO filler VALUES (zeroblob(200000))").await;
        let server = Server::start_after(&sale, "ulimit -f 64", &[]);
        assert_eq!((server.get("/healthz").status, server.get("/readyz").status), (200, 503));
        server.finish().exits(74);
    });
}

#[test]
fn port_in_use_is_named_with_its_option() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let sale = campaign().write();
    sale.campaign(&["serve", "--listen", &address]).exits(2).says(&address).says("`--listen`");
}

#[test]
fn two_servers_and_a_run_share_a_ledger() {
    let sandbox = SandboxProcess::start();
    let sale = campaign().to(200).batches_of(10).through(&sandbox).write();
    let (one, other) = (Server::start(&sale, &[]), Server::start(&sale, &[]));
    let run = sale.start(&["--yes"]);
    while sandbox.messages().len() < 200 {
        assert_eq!((one.get("/readyz").status, other.get("/readyz").status), (200, 200));
    }
    run.finish().exits(0);
    assert_eq!(sale.results().states(), ["accepted"; 200]);
    one.end("TERM").exits(0);
    other.end("INT").exits(0);
}

#[test]
fn missing_campaign_is_refused() {
    let sale = campaign().write();
    for missing in ["sail.yaml", "campaigns"] {
        sale.campaign(&["serve", "--listen", "127.0.0.1:0", "sale.yaml", missing]).exits(2).says(missing);
    }
}
