//! Checks that an HTTP answer holds the whole list and not a part of it, a page or an encoding that is not read.

use reqwest::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderName, TRANSFER_ENCODING,
};
use reqwest::{StatusCode, Version};

use super::FetchError;

/// Content encodings that a list can have: decoding recognizes them by their first bytes.
const READABLE_ENCODINGS: [&str; 4] = ["identity", "gzip", "x-gzip", "zstd"];
/// How much of a body shows whether it is a web page.
pub(super) const SNIFFED_BYTES: usize = 256;

/// Refuses an answer whose status is not 200.
pub(super) fn check_status(status: StatusCode) -> Result<(), FetchError> {
    let number = status.as_u16();
    let (why, help) = match number {
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
        _ => (format!("the server returned status {number}"), "try again later, or contact the owner of the address"),
    };
    Err(FetchError::new(why).with_help(help))
}

/// What to do about an answer that is not whole.
const INCOMPLETE_HELP: &str =
    "configure the server, or the proxy in front of it, to send the whole list with status 200";

/// Refuses an answer whose headers do not promise the whole list in a form that can be read.
pub(super) fn check_headers(version: Version, headers: &HeaderMap) -> Result<(), FetchError> {
    if headers.contains_key(CONTENT_RANGE) {
        return Err(
            FetchError::new("the server sent only part of the list (`Content-Range`)").with_help(INCOMPLETE_HELP)
        );
    }
    let kind = header_text(headers, CONTENT_TYPE);
    if kind.starts_with("multipart/") {
        return Err(FetchError::new("the server sent several parts instead of one list (`multipart`)")
            .with_help(INCOMPLETE_HELP));
    }
    let encoding = header_text(headers, CONTENT_ENCODING);
    if !encoding.is_empty() && !READABLE_ENCODINGS.contains(&encoding.as_str()) {
        let why = format!("the content encoding `{encoding}` is not supported");
        return Err(FetchError::new(why).with_help("add `Accept-Encoding: identity` under `headers`"));
    }
    // Without both, the end of the connection is the end of the list, and so is a connection that breaks.
    let names_its_end = headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING);
    if version <= Version::HTTP_11 && !names_its_end {
        let why = "the response has no `Content-Length`, so a truncated list would look complete";
        return Err(
            FetchError::new(why).with_help("configure the server to send `Content-Length` or to use chunked encoding")
        );
    }
    Ok(())
}

/// Refuses a web page, such as a page to sign in. `head` holds the first bytes of the body.
pub(super) fn refuse_web_page(headers: &HeaderMap, head: &[u8]) -> Result<(), FetchError> {
    let kind = header_text(headers, CONTENT_TYPE);
    let kind = kind.split(';').next().unwrap_or_default().trim_end();
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start().to_ascii_lowercase();
    let says_so = matches!(kind, "text/html" | "application/xhtml+xml") && head.starts_with(b"<");
    if says_so || head.starts_with(b"<!doctype html") || head.starts_with(b"<html") {
        let help = "check `headers` and the address: the page might ask you to sign in";
        return Err(FetchError::new("the server returned a web page instead of a list").with_help(help));
    }
    Ok(())
}

/// A header in lower case; several of one name are joined.
fn header_text(headers: &HeaderMap, name: HeaderName) -> String {
    let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(", ").trim().to_ascii_lowercase()
}
