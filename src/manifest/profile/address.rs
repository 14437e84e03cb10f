//! Addresses of endpoints.

use std::fmt;

use reqwest::Url;

/// The address of an endpoint without its path: `https://`, or `http://` to loopback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointUrl(Url);

impl EndpointUrl {
    /// The address in `text`.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub fn parse(text: &str) -> Result<Self, (String, &'static str)> {
        const URL_HELP: &str = "write a URL such as `https://gateway.example`";
        if !text.contains("://") {
            return Err((format!("`{text}` does not start with `https://`"), URL_HELP));
        }
        let url = Url::parse(text).map_err(|error| (format!("`{text}` is not a URL: {error}"), URL_HELP))?;
        let problem = |message: &str, help| Err((message.to_owned(), help));
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return problem("the URL does not start with `https://` and a host name", URL_HELP);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return problem("the URL contains a user name or a password", "remove the part before `@`");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return problem("the URL contains a query or a fragment", "remove `?` or `#` and everything after it");
        }
        if ["/api/json.php", "/v1/json"].iter().any(|path| url.path().trim_end_matches('/').ends_with(path)) {
            return problem("the URL includes the endpoint's path", "remove the path; it is added to each request");
        }
        let address = Self(url);
        if address.0.scheme() == "http" && !address.is_loopback() {
            return problem("plain `http` sends the API key unencrypted", "use `https://`");
        }
        Ok(address)
    }

    /// The address without a final slash.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// The host with its port, if the port is not the usual one; without the dot at the end of a complete name.
    #[must_use]
    pub fn host_and_port(&self) -> String {
        let host = self.0.host_str().unwrap_or_default().trim_end_matches('.');
        self.0.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether it is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback_host(self.0.host_str().unwrap_or_default())
    }
}

/// Whether a host is this machine.
pub(in crate::manifest) fn is_loopback_host(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

impl fmt::Display for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn endpoint_url_is_https_or_loopback() {
        let cases = [
            ("https://gateway.example", "https://gateway.example", "gateway.example", false),
            ("https://gateway.example:8443/", "https://gateway.example:8443", "gateway.example:8443", false),
            ("https://gateway.example/eu/", "https://gateway.example/eu", "gateway.example", false),
            ("http://127.0.0.1:8025", "http://127.0.0.1:8025", "127.0.0.1:8025", true),
            ("http://localhost", "http://localhost", "localhost", true),
            ("http://[::1]:80", "http://[::1]", "[::1]", true),
        ];
        for (text, shown, host, loopback) in cases {
            let address = EndpointUrl::parse(text).unwrap();
            assert_eq!(
                (address.as_str(), address.host_and_port().as_str(), address.is_loopback()),
                (shown, host, loopback)
            );
        }
    }

    #[test]
    fn unsafe_endpoint_urls_are_rejected() {
        let cases = [
            "http://gateway.example",
            "http://127.0.0.1.example",
            "https://user:secret@gateway.example",
            "https://gateway.example?key=1",
            "https://gateway.example/#x",
            "https://gateway.example/api/json.php",
            "ftp://gateway.example",
            "gateway.example",
            "https://",
            "",
        ];
        for text in cases {
            assert!(EndpointUrl::parse(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = EndpointUrl::parse(&text);
        }
    }
}
