//! Posting to an address that is a secret: no redirect, no proxy, nothing of the answer but its status, and no address of
//! this machine or its network unless the campaign says so.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::CONTENT_TYPE;

use super::form::NotificationPost;
use crate::door::is_public;
use crate::http_client;

/// What this program calls itself.
const USER_AGENT: &str = concat!("campaign/", env!("CARGO_PKG_VERSION"));

/// Why an address is not posted to.
const PRIVATE_ADDRESS: &str = "the URL is on this machine or its own network; set `local: true` to allow this";

/// The address in a secret; its text is in no error.
pub(super) fn parse_address(secret: &str, local: bool) -> Result<Url, String> {
    let url = Url::parse(secret).map_err(|_| "the configured URL is not valid".to_owned())?;
    match url.scheme() {
        "https" => {}
        "http" if local => {}
        _ => return Err("the URL does not start with `https://`".to_owned()),
    }
    let host = url.host_str().ok_or("the URL has no host name")?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        // An address is not looked up, so nobody else judges it.
        Ok(ip) if !local && !is_public(ip) => Err(PRIVATE_ADDRESS.to_owned()),
        _ => Ok(url),
    }
}

/// Posts it, and waits so long for the answer.
pub(super) async fn send_post(post: NotificationPost, local: bool, patience: Duration) -> Result<(), String> {
    let mut builder = http_client::builder().user_agent(USER_AGENT).connect_timeout(patience / 2).timeout(patience);
    if !local {
        builder = builder.dns_resolver(Arc::new(PublicResolver));
    }
    let client = builder.build().map_err(|_| "cannot create an HTTP client".to_owned())?;
    let sent = client.post(post.url).header(CONTENT_TYPE, post.media_type).body(post.body).send().await;
    match sent.map_err(|error| describe_error(&error))?.status() {
        status if status.is_success() => Ok(()),
        status => Err(format!("the receiver responded with status {}", status.as_u16())),
    }
}

/// What went wrong, without the address.
fn describe_error(error: &reqwest::Error) -> String {
    let sources = std::iter::successors(std::error::Error::source(error), |error| error.source());
    match () {
        () if sources.into_iter().any(|source| source.is::<PrivateAddressError>()) => PRIVATE_ADDRESS.to_owned(),
        () if error.is_timeout() => "the receiver did not respond in time".to_owned(),
        () if error.is_connect() => "cannot connect to the receiver".to_owned(),
        () => "the connection to the receiver was interrupted".to_owned(),
    }
}

/// Names that mean public addresses.
pub(crate) struct PublicResolver;

/// A name means none but addresses of this machine or its network.
#[derive(Debug, thiserror::Error)]
#[error("the host name has no public address")]
pub(crate) struct PrivateAddressError;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One that is near spoils all: who answers for the name chooses which of them is tried.
            if found.iter().any(|address| !is_public(address.ip())) {
                return Err(PrivateAddressError.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_address_is_refused_unless_it_is_allowed() {
        for near in [
            "https://127.0.0.1/s3cret",
            "https://[::1]/s3cret",
            "https://10.0.0.7/s3cret",
            "https://169.254.169.254/s3cret",
            "https://[::ffff:192.168.0.1]:8443/s3cret",
        ] {
            let refused = parse_address(near, false).unwrap_err();
            assert!(refused.contains("local: true") && !refused.contains("s3cret"), "{refused}");
            assert!(parse_address(near, true).is_ok());
        }
        assert!(parse_address("https://8.8.8.8/s3cret", false).is_ok());
        for (text, local) in [("http://a.example/s3cret", false), ("ftp://a.example/s3cret", true), ("s3cret", true)] {
            assert!(!parse_address(text, local).unwrap_err().contains("s3cret"));
        }
        assert!(parse_address("http://127.0.0.1:9/s3cret", true).is_ok());
    }

    #[tokio::test]
    async fn host_name_of_this_machine_is_not_contacted() {
        let body = String::new();
        let url = "https://localhost:1/s3cret".parse().unwrap();
        let refused =
            send_post(NotificationPost { url, media_type: "text/plain", body }, false, Duration::from_secs(5))
                .await
                .unwrap_err();
        assert_eq!(refused, PRIVATE_ADDRESS);
    }
}
