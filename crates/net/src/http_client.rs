//! The HTTP client of all modules: TLS with `ring`, no retries, no redirects, no proxy from the environment.

use std::sync::Once;

use reqwest::{Client, ClientBuilder, redirect, retry};

/// Builds a client that sends each request once and only to its own URL.
///
/// A retry or a redirect would send the body, including the key, a second time. A proxy in an environment variable was
/// not chosen by the operator for the gateway.
pub fn builder() -> ClientBuilder {
    static PROVIDER: Once = Once::new();
    // This fails only if the process already has a provider, and then TLS uses that one.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    Client::builder().redirect(redirect::Policy::none()).retry(retry::never()).no_proxy().referer(false)
}

/// The same for a plain HTTP server, without reading the system's certificates.
///
/// Reading them takes most of the CPU time of a short command.
pub fn plain_builder() -> ClientBuilder {
    builder().tls_certs_only([])
}
