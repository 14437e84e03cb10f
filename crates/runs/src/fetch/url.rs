//! Lists from a URL, streamed. Redirects to other hosts must use https, and headers are sent to the first host only.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
    TRANSFER_ENCODING,
};
use reqwest::{Response, StatusCode, Url, Version};
use secrecy::ExposeSecret as _;

use super::{FetchError, ListSpool, read_secret};
use crate::notify::{PublicResolver, RequestFailure};
use campaign_manifest::{HeaderText, ListUrl};
use campaign_net::http_client;
use campaign_net::is_public;

/// The user agent of requests for lists.
const USER_AGENT: &str = concat!("campaign/", env!("CARGO_PKG_VERSION"));
/// The maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Downloads the list and refuses an incomplete response.
pub(super) async fn fetch_from_url(source: &ListUrl, mut spool: ListSpool) -> Result<ListSpool, FetchError> {
    let mut response = follow_redirects(source).await?;
    check_status(response.status())?;
    check_headers(response.version(), response.headers())?;
    let mut head = Vec::with_capacity(SNIFFED_BYTES);
    while let Some(chunk) = response.chunk().await.map_err(|error| describe_error(&error))? {
        head.extend(chunk.iter().take(SNIFFED_BYTES - head.len()));
        spool.write_all(&chunk)?;
    }
    refuse_web_page(response.headers(), &head)?;
    Ok(spool)
}

/// Requests the list, follows redirects, and returns the final response.
async fn follow_redirects(source: &ListUrl) -> Result<Response, FetchError> {
    let headers = build_headers(source)?;
    let mut url = source.url.clone();
    let mut response = send_request(url.clone(), &headers, source.timeout, false).await?;
    let is_from_internet = |response: &Response| response.remote_addr().is_none_or(|from| is_public(from.ip()));
    let mut must_stay_public = false;
    for _ in 0..MAX_REDIRECTS {
        let Some(to) = redirect_target(&url, &response) else { return Ok(response) };
        // A server on the internet must not make this machine send requests into its own network.
        must_stay_public |= is_from_internet(&response);
        url = check_redirect(&url, to, !headers.is_empty(), must_stay_public)?;
        response = send_request(url.clone(), &headers, source.timeout, must_stay_public).await?;
    }
    match redirect_target(&url, &response) {
        None => Ok(response),
        Some(_) => Err(FetchError::new(format!("the server redirected more than {MAX_REDIRECTS} times"))
            .with_help("check the address")),
    }
}

async fn send_request(
    url: Url,
    headers: &HeaderMap,
    timeout: Duration,
    must_stay_public: bool,
) -> Result<Response, FetchError> {
    let mut client = http_client::builder().user_agent(USER_AGENT).connect_timeout(timeout / 2).timeout(timeout);
    if must_stay_public {
        client = client.dns_resolver(Arc::new(PublicResolver));
    }
    let client = client.build().map_err(|_| FetchError::new("cannot create an HTTP client"))?;
    client.get(url).headers(headers.clone()).send().await.map_err(|error| describe_error(&error))
}

/// The target of a redirect. `None` if the response is not a redirect.
fn redirect_target(from: &Url, response: &Response) -> Option<Url> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    from.join(response.headers().get(LOCATION)?.to_str().ok()?).ok()
}

/// Returns the target of a redirect if it is allowed: in the same origin, or over HTTPS if no headers are sent.
///
/// `must_stay_public` means that an earlier host was on the internet, so the target must be on the internet too.
fn check_redirect(from: &Url, to: Url, has_headers: bool, must_stay_public: bool) -> Result<Url, FetchError> {
    let help = "ask the provider of the list for an https link";
    if !to.username().is_empty() || to.password().is_some() {
        return Err(
            FetchError::new("the server redirects to an address with a user name or a password").with_help(help)
        );
    }
    let is_same_origin = url_origin(from) == url_origin(&to);
    if has_headers && !is_same_origin {
        let reason = "the server redirects to another host, and headers are not sent to other hosts";
        return Err(
            FetchError::new(reason).with_help("if the other host may receive the headers, use its address instead")
        );
    }
    if to.scheme() != "https" && !is_same_origin {
        return Err(FetchError::new("the server redirects to a URL without https").with_help(help));
    }
    let ip = to.host_str().and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
    // Host names are checked when they are resolved.
    match ip {
        Some(ip) if must_stay_public && !is_public(ip) => Err(private_address_error()),
        _ => Ok(to),
    }
}

fn private_address_error() -> FetchError {
    FetchError::new("the server redirects to an address on this machine or its network")
        .with_help("write that address under `url` if you want to use it")
}

fn url_origin(url: &Url) -> (String, Option<String>, Option<u16>) {
    (url.scheme().to_owned(), url.host_str().map(ToOwned::to_owned), url.port_or_known_default())
}

fn build_headers(source: &ListUrl) -> Result<HeaderMap, FetchError> {
    let mut headers = HeaderMap::new();
    for (name, text) in &source.headers {
        let invalid = || FetchError::new(format!("the value of the header `{name}` is not valid"));
        let value = match text {
            HeaderText::Plain(text) => HeaderValue::from_str(text),
            HeaderText::Secret(secret) => {
                let secret = read_secret(secret, &format!("the header `{name}`"))?;
                HeaderValue::from_str(secret.expose_secret()).map(|mut value| {
                    value.set_sensitive(true);
                    value
                })
            }
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        headers.insert(name, value.map_err(|_| invalid())?);
    }
    Ok(headers)
}

/// Describes an error without the URL, whose query might contain a secret.
fn describe_error(error: &reqwest::Error) -> FetchError {
    FetchError::new(match RequestFailure::from_error(error) {
        RequestFailure::PrivateAddress => return private_address_error(),
        RequestFailure::Timeout => "the server did not respond in time",
        RequestFailure::NoConnection => "cannot connect to the server",
        RequestFailure::ConnectionLost => "the connection was lost",
    })
}

/// The supported content encodings. Compressed lists are recognized by their first bytes when they are decoded.
const READABLE_ENCODINGS: [&str; 4] = ["identity", "gzip", "x-gzip", "zstd"];
/// The number of bytes of a body that show whether it is a web page.
pub(super) const SNIFFED_BYTES: usize = 256;

/// Refuses a response whose status is not 200.
pub(super) fn check_status(status: StatusCode) -> Result<(), FetchError> {
    let number = status.as_u16();
    let (reason, help) = match number {
        200 => return Ok(()),
        304 => ("the server responded that the list has not changed (status 304)".to_owned(), INCOMPLETE_HELP),
        300..=399 => (format!("the server redirects with an unsupported status ({number})"), "check the address"),
        202 => (
            "the server responded that the list is not ready (status 202)".to_owned(),
            "run the same command again later",
        ),
        204 | 205 => (format!("the server returned no content (status {number})"), "check the address"),
        206 => ("the server sent only part of the list (status 206)".to_owned(), INCOMPLETE_HELP),
        401 | 403 => {
            (format!("the server returned status {number}"), "check `headers`: the secret might be missing or expired")
        }
        404 | 410 => (format!("the server returned status {number}"), "check the address"),
        _ => (format!("the server returned status {number}"), "try again later, or contact the provider of the list"),
    };
    Err(FetchError::new(reason).with_help(help))
}

/// The advice about an incomplete response.
const INCOMPLETE_HELP: &str =
    "configure the server, or the proxy in front of it, to send the whole list with status 200";

/// Refuses a response whose headers do not guarantee a complete list in a supported encoding.
pub(super) fn check_headers(version: Version, headers: &HeaderMap) -> Result<(), FetchError> {
    if headers.contains_key(CONTENT_RANGE) {
        return Err(
            FetchError::new("the server sent only part of the list (`Content-Range`)").with_help(INCOMPLETE_HELP)
        );
    }
    let kind = header_text(headers, CONTENT_TYPE);
    if kind.starts_with("multipart/") {
        return Err(FetchError::new("the server sent several parts (`multipart`) instead of a single list")
            .with_help(INCOMPLETE_HELP));
    }
    let encoding = header_text(headers, CONTENT_ENCODING);
    if !encoding.is_empty() && !READABLE_ENCODINGS.contains(&encoding.as_str()) {
        let reason = format!("the content encoding `{encoding}` is not supported");
        return Err(FetchError::new(reason).with_help("add `Accept-Encoding: identity` under `headers`"));
    }
    // Without either header, the list ends with the connection, so a broken connection would not be noticed.
    let has_marked_end = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    if version <= Version::HTTP_11 && !has_marked_end {
        let reason = "the response has no `Content-Length`, so a truncated list would look complete";
        return Err(FetchError::new(reason)
            .with_help("configure the server to send `Content-Length` or to use chunked encoding"));
    }
    Ok(())
}

/// Refuses a web page, such as a sign-in page. `head` holds the first bytes of the body.
pub(super) fn refuse_web_page(headers: &HeaderMap, head: &[u8]) -> Result<(), FetchError> {
    let kind = header_text(headers, CONTENT_TYPE);
    let kind = kind.split(';').next().unwrap_or_default().trim_end();
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start().to_ascii_lowercase();
    let is_declared_html = matches!(kind, "text/html" | "application/xhtml+xml") && head.starts_with(b"<");
    if is_declared_html || head.starts_with(b"<!doctype html") || head.starts_with(b"<html") {
        let help = "check `headers` and the address: the page might ask you to sign in";
        return Err(FetchError::new("the server returned a web page instead of a list").with_help(help));
    }
    Ok(())
}

/// The value of a header in lower case. Multiple values are joined with commas.
fn header_text(headers: &HeaderMap, name: HeaderName) -> String {
    let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(", ").trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the target of a redirect, or the reason the redirect is refused.
    fn redirect_result(from: &str, to: &str, has_headers: bool, must_stay_public: bool) -> Result<String, String> {
        let from: Url = from.parse().unwrap();
        let to = from.join(to).unwrap();
        check_redirect(&from, to, has_headers, must_stay_public).map(String::from).map_err(|failed| failed.reason)
    }

    #[test]
    fn redirect_requires_https_and_keeps_headers_on_the_same_host() {
        let from = "https://crm.example/people.csv?token=s3cret";
        for (to, has_headers) in [("/new.csv", true), ("/new.csv", false), ("https://files.example/new.csv", false)] {
            let expected = from.parse::<Url>().unwrap().join(to).unwrap();
            assert_eq!(redirect_result(from, to, has_headers, true).as_deref(), Ok(expected.as_str()));
        }
        let loopback = "http://127.0.0.1:8025/people.csv";
        assert!(redirect_result(loopback, "/new.csv", true, false).is_ok(), "a redirect within the host is allowed");
        for (from, to, has_headers, expected_reason) in [
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
            let error = redirect_result(from, to, has_headers, true).unwrap_err();
            assert!(error.contains(expected_reason) && !error.contains("example"), "{to}: {error}");
        }
    }

    #[test]
    fn public_url_cannot_redirect_to_a_private_address() {
        for address in [
            "https://127.0.0.1/a",
            "https://0x7f.1/a",
            "https://2130706433/a",
            "https://10.0.0.7/a",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/a",
            "https://[::ffff:192.168.0.1]:8443/a",
        ] {
            let from = "https://crm.example/people.csv";
            assert!(redirect_result(from, address, false, true).unwrap_err().contains("its network"), "{address}");
            assert!(redirect_result(from, address, false, false).is_ok(), "{address}");
        }
    }

    #[tokio::test]
    async fn redirect_from_a_public_host_cannot_reach_a_private_name() {
        let url = "https://localhost:1/people.csv".parse().unwrap();
        let failed = send_request(url, &HeaderMap::new(), Duration::from_secs(5), true).await.err().unwrap();
        assert!(failed.reason.contains("its network"), "{}", failed.reason);
    }
}
