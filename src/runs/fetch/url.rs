//! A list from an address: one request, streamed, and the headers go to no other host.

use std::io::Write as _;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, redirect, retry};
use secrecy::ExposeSecret as _;

use super::spool::Spool;
use super::{Failed, secret};
use crate::manifest::{HeaderText, ListUrl};

/// What this program calls itself.
const AGENT: &str = concat!("campaign/", env!("CARGO_PKG_VERSION"));
/// The most redirects within the same host.
const REDIRECTS: usize = 5;

pub(super) async fn fetch(wanted: &ListUrl, mut spool: Spool) -> Result<Spool, Failed> {
    let url = &wanted.url;
    let own = (url.scheme().to_owned(), url.host_str().map(ToOwned::to_owned), url.port_or_known_default());
    let within = redirect::Policy::custom(move |attempt| {
        let to = attempt.url();
        let there = (to.scheme().to_owned(), to.host_str().map(ToOwned::to_owned), to.port_or_known_default());
        if there == own && attempt.previous().len() <= REDIRECTS { attempt.follow() } else { attempt.stop() }
    });
    let client = Client::builder()
        .user_agent(AGENT)
        .redirect(within)
        .retry(retry::never())
        .no_proxy()
        .referer(false)
        .connect_timeout(wanted.timeout / 2)
        .timeout(wanted.timeout);
    let client = client.build().map_err(|_| Failed::new("the system gives no client for it"))?;
    let sent = client.get(url.clone()).headers(headers(wanted)?).send().await;
    let mut answer = sent.map_err(|error| words(&error))?;
    let status = answer.status();
    if status.is_redirection() {
        let help = "name the address that it leads to, if the headers are meant for it too";
        return Err(Failed::new("it leads to another host").help(help));
    }
    if !status.is_success() {
        let help = match status.as_u16() {
            401 | 403 => "look at `headers`: the secret may be missing, or too old",
            404 | 410 => "look at the address",
            _ => "try again later, or ask whoever runs it",
        };
        return Err(Failed::new(format!("it answered with status {}", status.as_u16())).help(help));
    }
    while let Some(chunk) = answer.chunk().await.map_err(|error| words(&error))? {
        spool.write_all(&chunk)?;
    }
    Ok(spool)
}

fn headers(wanted: &ListUrl) -> Result<HeaderMap, Failed> {
    let mut headers = HeaderMap::new();
    for (name, text) in &wanted.headers {
        let unfit = || Failed::new(format!("what is kept for the header `{name}` cannot be one"));
        let value = match text {
            HeaderText::Plain(text) => HeaderValue::from_str(text),
            HeaderText::Secret(kept) => {
                let kept = secret(kept, &format!("the header `{name}`"))?;
                HeaderValue::from_str(kept.expose_secret()).map(|mut value| {
                    value.set_sensitive(true);
                    value
                })
            }
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unfit())?;
        headers.insert(name, value.map_err(|_| unfit())?);
    }
    Ok(headers)
}

/// What went wrong, without the address: its query may be a secret.
fn words(error: &reqwest::Error) -> Failed {
    Failed::new(match () {
        () if error.is_timeout() => "it did not answer in time",
        () if error.is_connect() => "there is no connection to it",
        () => "the connection to it broke",
    })
}
