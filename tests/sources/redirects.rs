//! Redirects of a list's URL.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::campaign_with_source;
use super::web::{LIST, WebServer, campaign_with_url, run};
use crate::support::{Finished, Folder, Gateway, Process, campaign, phone};

/// The path of a certificate: `server.pem` is for a server on this machine, signed by `authority.pem`.
fn certificate_path(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sources/tls").join(name);
    path.to_str().expect("a path").to_owned()
}

/// An HTTPS server that serves a list and records request heads.
struct HttpsServer {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl HttpsServer {
    fn serving_list(list: &str) -> Self {
        let file = certificate_path("server.pem");
        let chain = CertificateDer::pem_file_iter(&file).expect("a file").map(|each| each.expect("a certificate"));
        let key = PrivateKeyDer::from_pem_file(&file).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
        let config = config.with_no_client_auth().with_single_cert(chain.collect(), key).expect("a certificate");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("https://localhost:{}", listener.local_addr().expect("an address").port());
        let (heads, length) = (Arc::new(Mutex::new(Vec::new())), list.len());
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{list}");
        let (recorded, config) = (Arc::clone(&heads), Arc::new(config));
        // The thread ends with the test process, so the test does not join it.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = ServerConnection::new(Arc::clone(&config)).expect("a connection");
                let mut stream = StreamOwned::new(connection, stream.expect("a connection"));
                let lines = BufReader::new(&mut stream).lines().map_while(Result::ok);
                let head = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
                recorded.lock().expect("the heads").push(head);
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

/// Builds a redirect to this location.
fn redirect_to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// Creates a campaign with a list at this address, requested without headers.
fn campaign_without_headers(address: &str, gateway: &Gateway) -> Folder {
    campaign_with_source(campaign().through(gateway), &format!("url: {address}/people.csv?token=hidden"))
}

fn run_trusting_authority(sale: &Folder) -> Finished {
    let mut command = sale.command(&["run", "sale.yaml"]);
    command.env("CRM_TOKEN", "Bearer s3cret").env("SSL_CERT_FILE", certificate_path("authority.pem"));
    Process::start(command).finish()
}

#[test]
fn redirect_to_https_is_followed_without_configured_headers() {
    let (gateway, files) = (Gateway::accepting(), HttpsServer::serving_list(LIST));
    let redirecting = WebServer::answering(redirect_to(&format!("{}/export/7.csv", files.address)));
    run_trusting_authority(&campaign_without_headers(&redirecting.address, &gateway)).exits(0);
    assert_eq!(gateway.phones(), [phone(2), phone(3)]);
    let heads = files.heads().concat().to_lowercase();
    assert!(heads.starts_with("get /export/7.csv http") && !heads.contains("hidden"), "{heads}");
    assert_eq!((redirecting.heads().len(), files.heads().len()), (1, 1));
}

#[test]
fn redirect_to_https_is_refused_with_headers() {
    let (gateway, files) = (Gateway::accepting(), HttpsServer::serving_list(LIST));
    let redirecting = WebServer::answering(redirect_to(&format!("{}/export/7.csv", files.address)));
    let refused = run_trusting_authority(&campaign_with_url(&redirecting.address, &gateway)).exits(2);
    refused.says("another host, and headers are not sent to other hosts").says("use its address instead");
    assert_eq!((files.heads().len(), gateway.requests().len()), (0, 0));
}

#[test]
fn redirect_without_https_is_refused() {
    let (gateway, other) = (Gateway::accepting(), WebServer::serving_list(LIST));
    let redirecting = WebServer::answering(redirect_to(&format!("{}/people.csv", other.address)));
    run(&campaign_without_headers(&redirecting.address, &gateway)).exits(2).says("redirects to a URL without https");
    assert_eq!((other.heads().len(), gateway.requests().len()), (0, 0));
}

#[test]
fn more_than_five_redirects_are_refused() {
    let gateway = Gateway::accepting();
    for has_headers in [true, false] {
        let loop_server = WebServer::answering(redirect_to("/people.csv"));
        let sale = if has_headers {
            campaign_with_url(&loop_server.address, &gateway)
        } else {
            campaign_without_headers(&loop_server.address, &gateway)
        };
        run(&sale).exits(2).says("redirected more than 5 times");
        assert_eq!(loop_server.heads().len(), 6);
    }
    assert_eq!(gateway.requests().len(), 0);
}
