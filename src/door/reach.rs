//! Which addresses the world can reach.

use std::net::{IpAddr, Ipv4Addr};

/// Whether an address is of the internet, and not of this machine or of a network of its owner's.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_shared(ip))
        }
        IpAddr::V6(ip) => {
            !(ip.is_unspecified() || ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local())
        }
    }
}

/// Whether an address is of a provider's own network (RFC 6598), which clouds use as well.
fn is_shared(ip: Ipv4Addr) -> bool {
    matches!(ip.octets(), [100, second, ..] if second & 0b1100_0000 == 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_private_addresses_are_not_public() {
        for own in [
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
            assert!(!is_public(own.parse().unwrap()), "{own}");
        }
        for public in
            ["8.8.8.8", "172.32.0.1", "100.63.0.1", "100.128.0.1", "203.0.113.7", "2001:db8::1", "::ffff:8.8.8.8"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }
}
