//! The HTTP client of all modules: TLS by `ring`, no retries, no redirects, no proxy from the environment.

use std::sync::Once;

use reqwest::{Client, ClientBuilder, redirect, retry};

/// Builds a client that sends each request once, only to its own address.
///
/// A retry or a redirect would send the body, including the key, a second time. The proxy of an environment variable is
/// not one that the operator chose for the gateway.
pub(crate) fn builder() -> ClientBuilder {
    static PROVIDER: Once = Once::new();
    // This fails only if the process already has a provider, and then TLS uses that one.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    Client::builder().redirect(redirect::Policy::none()).retry(retry::never()).no_proxy().referer(false)
}

/// The same for a plain HTTP server, without reading the certificates of the system.
///
/// Reading them takes most of the CPU that a short command needs.
pub(crate) fn plain_builder() -> ClientBuilder {
    builder().tls_certs_only([])
}
