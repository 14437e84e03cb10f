//! A list from an address that redirects.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::fetched;
use super::web::{LIST, Web, at, run};
use crate::support::{Finished, Folder, Gateway, Process, campaign, phone};

/// What the certificates of `tls/` are for: `server.pem` is a server's on this machine, signed by `authority.pem`.
fn certificate(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources/tls").join(name);
    path.to_str().expect("a path").to_owned()
}

/// A server that gives the list by https, and keeps the heads of requests.
struct SecureWeb {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl SecureWeb {
    fn giving(list: &str) -> Self {
        let file = certificate("server.pem");
        let chain = CertificateDer::pem_file_iter(&file).expect("a file").map(|each| each.expect("a certificate"));
        let key = PrivateKeyDer::from_pem_file(&file).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
        let config = config.with_no_client_auth().with_single_cert(chain.collect(), key).expect("a certificate");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("https://localhost:{}", listener.local_addr().expect("an address").port());
        let (heads, length) = (Arc::new(Mutex::new(Vec::new())), list.len());
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{list}");
        let (kept, config) = (Arc::clone(&heads), Arc::new(config));
        // It ends with the tests: nobody has to wait for it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
                let mut stream = StreamOwned::new(connection, stream.expect("a connection"));
                let lines = BufReader::new(&mut stream).lines().map_while(Result::ok);
                let head = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
                kept.lock().expect("the heads").push(head);
                let _ = stream.write_all(answer.as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("the heads").clone()
    }
}

/// An answer that leads there.
fn leading_to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// The campaign with the list at this address, asked without headers.
fn without_headers(address: &str, gateway: &Gateway) -> Folder {
    fetched(campaign().through(gateway), &format!("url: {address}/people.csv?token=hidden"))
}

fn run_trusting_authority(sale: &Folder) -> Finished {
    let mut command = sale.command(&["run", "sale.yaml"]);
    command.env("CRM_TOKEN", "Bearer s3cret").env("SSL_CERT_FILE", certificate("authority.pem"));
    Process::start(command).finish()
}

#[test]
fn redirect_to_https_is_followed_without_headers() {
    let (gateway, files) = (Gateway::accepting(), SecureWeb::giving(LIST));
    let moved = Web::answering(leading_to(&format!("{}/export/7.csv", files.address)));
    run_trusting_authority(&without_headers(&moved.address, &gateway)).exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3)]);
    let heads = files.heads().concat().to_lowercase();
    assert!(heads.starts_with("get /export/7.csv http") && !heads.contains("hidden"), "{heads}");
    assert_eq!((moved.heads().len(), files.heads().len()), (1, 1));
}

#[test]
fn redirect_to_https_is_refused_with_headers() {
    let (gateway, files) = (Gateway::accepting(), SecureWeb::giving(LIST));
    let moved = Web::answering(leading_to(&format!("{}/export/7.csv", files.address)));
    let refused = run_trusting_authority(&at(&moved.address, &gateway)).exits(2);
    refused.says("another host, and headers are not sent to other hosts").says("use the final address");
    assert_eq!((files.heads().len(), gateway.requests().len()), (0, 0));
}

#[test]
fn redirect_without_https_is_refused() {
    let (gateway, other) = (Gateway::accepting(), Web::giving(LIST));
    let moved = Web::answering(leading_to(&format!("{}/people.csv", other.address)));
    run(&without_headers(&moved.address, &gateway)).exits(2).says("another host without https");
    assert_eq!((other.heads().len(), gateway.requests().len()), (0, 0));
}

#[test]
fn redirects_end_after_the_fifth() {
    let gateway = Gateway::accepting();
    for headers in [true, false] {
        let circle = Web::answering(leading_to("/people.csv"));
        let sale = if headers { at(&circle.address, &gateway) } else { without_headers(&circle.address, &gateway) };
        run(&sale).exits(2).says("redirected more than 5 times");
        assert_eq!(circle.heads().len(), 6);
    }
    assert_eq!(gateway.requests().len(), 0);
}
