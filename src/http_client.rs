//! The HTTP client that every module builds on: TLS by `ring`, no retries, no redirects, no proxy of the environment.

use std::sync::Once;

use reqwest::{Client, ClientBuilder, redirect, retry};

/// Starts a client that sends each request once, to the address that it names and nowhere else.
///
/// A retry or a redirect would send a body a second time, and with it the key. The proxy of an environment variable is
/// not one that the operator chose for the gateway.
pub(crate) fn builder() -> ClientBuilder {
    static PROVIDER: Once = Once::new();
    // It fails only if the process has a provider already, and then TLS uses that one.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    Client::builder().redirect(redirect::Policy::none()).retry(retry::never()).no_proxy().referer(false)
}

/// The same for a server that is reached over plain HTTP: it does not read the certificates of the system.
///
/// Reading them takes most of the CPU that a short command needs.
pub(crate) fn plain_builder() -> ClientBuilder {
    builder().tls_certs_only([])
}
