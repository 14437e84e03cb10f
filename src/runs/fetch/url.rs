//! Lists from a URL: streamed, through redirects to https. Headers are sent to the first host only.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Response, Url};
use secrecy::ExposeSecret as _;

use super::spool::Spool;
use super::{Failed, secret, whole};
use crate::door::is_public;
use crate::http_client;
use crate::manifest::{HeaderText, ListUrl};
use crate::notify::{NearAddress, PublicNames};

/// What this program calls itself.
const AGENT: &str = concat!("campaign/", env!("CARGO_PKG_VERSION"));
/// How many redirects are followed at most.
const REDIRECTS: usize = 5;

pub(super) async fn fetch(wanted: &ListUrl, mut spool: Spool) -> Result<Spool, Failed> {
    let mut answer = follow(wanted).await?;
    whole::check_status(answer.status())?;
    whole::check_headers(answer.version(), answer.headers())?;
    let mut head = Vec::with_capacity(whole::HEAD);
    while let Some(chunk) = answer.chunk().await.map_err(|error| words(&error))? {
        head.extend(chunk.iter().take(whole::HEAD - head.len()));
        spool.write_all(&chunk)?;
    }
    whole::check_is_no_page(answer.headers(), &head)?;
    Ok(spool)
}

/// The answer at the end of the redirects.
async fn follow(wanted: &ListUrl) -> Result<Response, Failed> {
    let headers = headers(wanted)?;
    let mut url = wanted.url.clone();
    let mut answer = ask(url.clone(), &headers, wanted.timeout, false).await?;
    let is_of_internet = |answer: &Response| answer.remote_addr().is_none_or(|from| is_public(from.ip()));
    let mut stays_public = false;
    for _ in 0..REDIRECTS {
        let Some(to) = target(&url, &answer) else { return Ok(answer) };
        // A server on the internet must not make this machine look into its own network.
        stays_public |= is_of_internet(&answer);
        url = judge(&url, to, !headers.is_empty(), stays_public)?;
        answer = ask(url.clone(), &headers, wanted.timeout, stays_public).await?;
    }
    match target(&url, &answer) {
        None => Ok(answer),
        Some(_) => {
            Err(Failed::new(format!("the server redirected more than {REDIRECTS} times")).help("check the address"))
        }
    }
}

async fn ask(url: Url, headers: &HeaderMap, patience: Duration, stays_public: bool) -> Result<Response, Failed> {
    let mut client = http_client::builder().user_agent(AGENT).connect_timeout(patience / 2).timeout(patience);
    if stays_public {
        client = client.dns_resolver(Arc::new(PublicNames));
    }
    let client = client.build().map_err(|_| Failed::new("cannot create an HTTP client"))?;
    client.get(url).headers(headers.clone()).send().await.map_err(|error| words(&error))
}

/// The target of a redirect. `None` if the answer is not a redirect.
fn target(from: &Url, answer: &Response) -> Option<Url> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    from.join(answer.headers().get(LOCATION)?.to_str().ok()?).ok()
}

/// The target of a redirect, if it may be followed: within the host, or by https if no headers are sent.
///
/// `stays_public` is whether a host on the way is on the internet. Then this one has to be, too.
fn judge(from: &Url, to: Url, has_headers: bool, stays_public: bool) -> Result<Url, Failed> {
    let asks = "ask the owner of the address for an https link";
    if !to.username().is_empty() || to.password().is_some() {
        return Err(Failed::new("the server redirects to an address with a user name or a password").help(asks));
    }
    let is_within = origin(from) == origin(&to);
    if has_headers && !is_within {
        let why = "the server redirects to another host, and headers are not sent to other hosts";
        return Err(Failed::new(why).help("use the final address if that host is allowed to receive the headers"));
    }
    if to.scheme() != "https" && !is_within {
        return Err(Failed::new("the server redirects to another host without https").help(asks));
    }
    let ip = to.host_str().and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
    // Host names are judged when they are resolved.
    match ip {
        Some(ip) if stays_public && !is_public(ip) => Err(near()),
        _ => Ok(to),
    }
}

fn near() -> Failed {
    Failed::new("the server redirects to an address on this machine or its network")
        .help("write that address under `url` if you want to use it")
}

fn origin(url: &Url) -> (String, Option<String>, Option<u16>) {
    (url.scheme().to_owned(), url.host_str().map(ToOwned::to_owned), url.port_or_known_default())
}

fn headers(wanted: &ListUrl) -> Result<HeaderMap, Failed> {
    let mut headers = HeaderMap::new();
    for (name, text) in &wanted.headers {
        let unfit = || Failed::new(format!("the value of the header `{name}` is not valid"));
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
    let mut sources = std::iter::successors(std::error::Error::source(error), |error| error.source());
    if sources.any(|source| source.is::<NearAddress>()) {
        return near();
    }
    Failed::new(match () {
        () if error.is_timeout() => "the server did not respond in time",
        () if error.is_connect() => "cannot connect to the server",
        () => "the connection was lost",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a redirect is followed, or why not.
    fn judged(from: &str, to: &str, has_headers: bool, stays_public: bool) -> Result<String, String> {
        let from: Url = from.parse().unwrap();
        let to = from.join(to).unwrap();
        judge(&from, to, has_headers, stays_public).map(String::from).map_err(|failed| failed.why)
    }

    #[test]
    fn redirect_is_followed_by_https_without_headers() {
        let from = "https://crm.example/people.csv?token=s3cret";
        for (to, has_headers) in [("/new.csv", true), ("/new.csv", false), ("https://files.example/new.csv", false)] {
            let expected = from.parse::<Url>().unwrap().join(to).unwrap();
            assert_eq!(judged(from, to, has_headers, true).as_deref(), Ok(expected.as_str()));
        }
        let loopback = "http://127.0.0.1:8025/people.csv";
        assert!(judged(loopback, "/new.csv", true, false).is_ok(), "within the host nothing new is learned");
        for (from, to, has_headers, why) in [
            (from, "https://files.example/new.csv", true, "another host"),
            (from, "https://crm.example:8443/new.csv", true, "another host"),
            (from, "http://files.example/new.csv", false, "without https"),
            (from, "http://crm.example/new.csv", false, "without https"),
            (from, "ftp://files.example/new.csv", false, "without https"),
            (from, "file:///etc/passwd", false, "without https"),
            (from, "https://user@files.example/new.csv", false, "a user name or a password"),
            (from, "https://:secret@crm.example/new.csv", false, "a user name or a password"),
            (loopback, "http://127.0.0.1:8026/people.csv", false, "without https"),
        ] {
            let refused = judged(from, to, has_headers, true).unwrap_err();
            assert!(refused.contains(why) && !refused.contains("example"), "{to}: {refused}");
        }
    }

    #[test]
    fn redirect_of_a_public_host_reaches_no_address_of_its_own_network() {
        for near in [
            "https://127.0.0.1/a",
            "https://0x7f.1/a",
            "https://2130706433/a",
            "https://10.0.0.7/a",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/a",
            "https://[::ffff:192.168.0.1]:8443/a",
        ] {
            let from = "https://crm.example/people.csv";
            assert!(judged(from, near, false, true).unwrap_err().contains("its network"), "{near}");
            assert!(judged(from, near, false, false).is_ok(), "{near}");
        }
    }

    #[tokio::test]
    async fn name_of_this_machine_is_not_asked_behind_a_public_host() {
        let url = "https://localhost:1/people.csv".parse().unwrap();
        let failed = ask(url, &HeaderMap::new(), Duration::from_secs(5), true).await.err().unwrap();
        assert!(failed.why.contains("its network"), "{}", failed.why);
    }
}
