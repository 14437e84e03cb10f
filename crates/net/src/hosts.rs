//! Host allowlist: requests must name the published host, or they must name this machine and not come from the
//! internet.
//!
//! The allowlist prevents DNS rebinding, in which a malicious page makes a browser call an address of this machine
//! under another name. It also rejects requests that a misconfigured proxy forwards from the internet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::http::HeaderMap;
use axum::http::header::{FORWARDED, HOST};
use axum::http::uri::Authority;

/// The host names of a server.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// The address of the listener; the unspecified address stands for all addresses of the machine.
    listen: IpAddr,
    /// The host under which the server is published, if any.
    published: Option<String>,
}

/// The non-standard headers in which proxies forward the client's address.
const CLIENT_HEADERS: [&str; 2] = ["x-forwarded-for", "x-real-ip"];
/// The non-standard headers in which proxies forward the original host.
const HOST_HEADERS: [&str; 1] = ["x-forwarded-host"];

impl Hosts {
    /// The names of a server that listens on the address `listen`. `published` is the host under which the server is
    /// published, if any.
    pub fn new(listen: SocketAddr, published: Option<&str>) -> Self {
        Self { listen: listen.ip().to_canonical(), published: published.map(str::to_ascii_lowercase) }
    }

    /// Whether requests with these headers are allowed.
    pub fn allows(&self, headers: &HeaderMap) -> bool {
        let mut hosts = header_values(headers, HOST.as_str());
        let Some(host) = hosts.next().filter(|_| hosts.next().is_none()) else { return false };
        if self.is_published(host) {
            // The operator allows access under this name from anywhere.
            return true;
        }
        let mut clients = CLIENT_HEADERS.iter().flat_map(|name| header_values(headers, name)).flat_map(list_items);
        let mut forwarded_hosts =
            HOST_HEADERS.iter().flat_map(|name| header_values(headers, name)).flat_map(list_items);
        let mut hops = header_values(headers, FORWARDED.as_str()).flat_map(list_items);
        self.is_own(host)
            && clients.all(is_private_node)
            && forwarded_hosts.all(|name| self.is_own(name))
            && hops.all(|hop| self.is_own_hop(hop))
    }

    /// Whether a hop in the `Forwarded` header (RFC 7239) names only private addresses and hosts of this server.
    fn is_own_hop(&self, hop: &str) -> bool {
        hop.split(';').map(|pair| pair.split_once('=').unwrap_or((pair, ""))).all(|(name, value)| {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "for" | "by" => is_private_node(value),
                "host" => self.is_own(value),
                _ => true,
            }
        })
    }

    /// Whether a host is the one under which the server is published.
    pub fn is_published(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        self.published.as_deref().is_some_and(|published| authority.host().eq_ignore_ascii_case(published))
    }

    /// Whether a host, with or without a port, names this server: the published host, a loopback name, or the address
    /// of the listener. If the server listens on all addresses, every address that is not public counts.
    pub fn is_own(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        if authority.as_str().contains('@') {
            return false;
        }
        let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
        is_loopback_host(&name)
            || match parse_ip(&name) {
                Some(ip) => ip == self.listen || (self.listen.is_unspecified() && !is_public(ip)),
                None => self.published.as_ref() == Some(&name),
            }
    }
}

/// Whether a host name or an address, without a port, always means this machine. Names are not resolved.
pub fn is_loopback_host(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    match parse_ip(&name) {
        Some(ip) => ip.is_loopback(),
        None => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// The values of a header. A value that is not text becomes `?`, which is never allowed.
fn header_values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().map(|value| value.to_str().unwrap_or("?"))
}

/// The items of a comma-separated list in a header.
fn list_items(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Whether an address, with or without a port, is not public. An unreadable address counts as public.
fn is_private_node(node: &str) -> bool {
    let ip = node.parse::<SocketAddr>().ok().map(|address| address.ip()).or_else(|| parse_ip(node));
    ip.is_some_and(|ip| !is_public(ip))
}

/// Parses an address, with or without brackets.
fn parse_ip(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    bare.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
}

/// Whether an address is on the internet, rather than on this machine or in a private network.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared(ip))
        }
        IpAddr::V6(ip) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local())
        }
    }
}

/// Whether an address is in the shared address space 100.64.0.0/10 (RFC 6598), which internet providers and clouds use
/// internally.
fn is_shared(ip: Ipv4Addr) -> bool {
    matches!(ip.octets(), [100, second, ..] if second & 0b1100_0000 == 64)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn test_headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pair =
            |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        pairs.iter().map(pair).collect()
    }

    fn test_hosts(listen: &str, published: Option<&str>) -> Hosts {
        Hosts::new(listen.parse().unwrap(), published)
    }

    #[test]
    fn only_names_of_this_machine_are_allowed() {
        let (loopback, lan) = (test_hosts("127.0.0.1:8040", None), test_hosts("192.168.1.7:8040", None));
        let everywhere = test_hosts("0.0.0.0:8040", None);
        for (host, [on_loopback, on_lan, on_all]) in [
            ("127.0.0.1:8040", [true, true, true]),
            ("127.0.0.1", [true, true, true]),
            ("LocalHost:1", [true, true, true]),
            ("campaign.localhost", [true, true, true]),
            ("localhost.", [true, true, true]),
            ("[::1]:8040", [true, true, true]),
            ("192.168.1.7:8040", [false, true, true]),
            ("10.0.0.9:8040", [false, false, true]),
            ("8.8.8.8", [false, false, false]),
            ("example.com", [false, false, false]),
            ("localhost.example.com", [false, false, false]),
            ("localhost@example.com", [false, false, false]),
            ("example.com@localhost", [false, false, false]),
            ("", [false, false, false]),
            ("a b", [false, false, false]),
        ] {
            let headers = test_headers(&[("host", host)]);
            let found = [&loopback, &lan, &everywhere].map(|hosts| hosts.allows(&headers));
            assert_eq!(found, [on_loopback, on_lan, on_all], "{host}");
        }
        assert!(!loopback.allows(&HeaderMap::new()), "no host");
        assert!(!loopback.allows(&test_headers(&[("host", "localhost"), ("host", "example.com")])), "two hosts");
    }

    #[test]
    fn public_forwarded_client_or_host_is_rejected() {
        let hosts = test_hosts("127.0.0.1:8040", None);
        for (name, value, allowed) in [
            ("x-forwarded-for", "10.0.0.1", true),
            ("x-forwarded-for", "127.0.0.1:3300, [::1]:80, fd00::1", true),
            ("x-forwarded-for", "8.8.8.8", false),
            ("x-forwarded-for", "10.0.0.1, 8.8.8.8", false),
            ("x-forwarded-for", "8.8.8.8:1234, 10.0.0.1", false),
            ("x-forwarded-for", "unknown", false),
            ("x-forwarded-for", "", true),
            ("x-real-ip", "2001:db8::1", false),
            ("x-forwarded-host", "localhost:8040", true),
            ("x-forwarded-host", "pages.example.com", false),
            ("x-forwarded-proto", "https", true),
            ("forwarded", "for=10.0.0.1;proto=http;host=localhost, for=\"[::1]:4711\"", true),
            ("forwarded", "For=\"[2001:db8:cafe::17]:4711\"", false),
            ("forwarded", "proto=https; for=203.0.113.7", false),
            ("forwarded", "for=_hidden", false),
            ("forwarded", "host=example.com", false),
        ] {
            assert_eq!(
                hosts.allows(&test_headers(&[("host", "localhost"), (name, value)])),
                allowed,
                "{name}: {value}"
            );
        }
    }

    #[test]
    fn published_host_is_allowed_from_anywhere() {
        let hosts = test_hosts("127.0.0.1:8040", Some("Pages.Example.com"));
        for (host, forwarded, allowed) in [
            ("pages.example.com", "8.8.8.8", true),
            ("pages.example.com:443", "8.8.8.8", true),
            ("other.example.com", "10.0.0.1", false),
            ("localhost", "8.8.8.8", false),
            ("localhost", "10.0.0.1", true),
        ] {
            assert_eq!(
                hosts.allows(&test_headers(&[("host", host), ("x-forwarded-for", forwarded)])),
                allowed,
                "{host}"
            );
        }
    }
}

#[cfg(test)]
mod address_tests {
    use super::*;

    #[test]
    fn loopback_and_private_addresses_are_not_public() {
        for host in [
            "127.0.0.1",
            "127.8.9.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.7",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!is_public(host.parse().unwrap()), "{host}");
        }
        for public in
            ["8.8.8.8", "172.32.0.1", "100.63.0.1", "100.128.0.1", "203.0.113.7", "2001:db8::1", "::ffff:8.8.8.8"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
