//! The HTTP client of all modules: TLS with `ring`, no retries, no redirects, no proxy from the environment.

use std::sync::Once;

use reqwest::{Client, ClientBuilder, redirect, retry};

/// Returns a builder for a client that sends each request only once and only to the URL of the request.
///
/// A retry or a redirect would send the body, including the key, a second time. A proxy in an environment variable is
/// ignored, because the operator did not choose it for the gateway.
pub fn builder() -> ClientBuilder {
    static PROVIDER: Once = Once::new();
    // This fails only if the process already has a provider, and then TLS uses that one.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    Client::builder().redirect(redirect::Policy::none()).retry(retry::never()).no_proxy().referer(false)
}

/// Like [`builder`], but for plain HTTP servers: the client does not read the system's certificates.
///
/// Reading the certificates takes most of the CPU time of a short command.
pub fn plain_builder() -> ClientBuilder {
    builder().tls_certs_only([])
}
