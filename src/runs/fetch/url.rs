//! A list from an address: one request, streamed, and the headers go to no other host.

use std::io::Write as _;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Response, Url, redirect};
use secrecy::ExposeSecret as _;

use super::spool::Spool;
use super::{Failed, secret, whole};
use crate::http_client;
use crate::manifest::{HeaderText, ListUrl};

/// What this program calls itself.
const AGENT: &str = concat!("campaign/", env!("CARGO_PKG_VERSION"));
/// The most redirects within the same host.
const REDIRECTS: usize = 5;

pub(super) async fn fetch(wanted: &ListUrl, mut spool: Spool) -> Result<Spool, Failed> {
    let url = &wanted.url;
    let own = origin(url);
    let within = redirect::Policy::custom(move |attempt| {
        if origin(attempt.url()) == own && attempt.previous().len() <= REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let client = http_client::builder()
        .user_agent(AGENT)
        .redirect(within)
        .connect_timeout(wanted.timeout / 2)
        .timeout(wanted.timeout);
    let client = client.build().map_err(|_| Failed::new("the system gives no client for it"))?;
    let sent = client.get(url.clone()).headers(headers(wanted)?).send().await;
    let mut answer = sent.map_err(|error| words(&error))?;
    whole::check_status(answer.status(), leads_elsewhere(&answer))?;
    whole::check_headers(answer.version(), answer.headers())?;
    let mut head = Vec::with_capacity(whole::HEAD);
    while let Some(chunk) = answer.chunk().await.map_err(|error| words(&error))? {
        head.extend(chunk.iter().take(whole::HEAD - head.len()));
        spool.write_all(&chunk)?;
    }
    whole::check_is_no_page(answer.headers(), &head)?;
    Ok(spool)
}

/// Whether an answer redirects to another scheme, host or port.
fn leads_elsewhere(answer: &Response) -> bool {
    let location = answer.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    let to = location.and_then(|location| answer.url().join(location).ok());
    to.is_some_and(|to| origin(&to) != origin(answer.url()))
}

fn origin(url: &Url) -> (String, Option<String>, Option<u16>) {
    (url.scheme().to_owned(), url.host_str().map(ToOwned::to_owned), url.port_or_known_default())
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
