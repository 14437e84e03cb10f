//! Whether a host is this machine: by what it is called, else by what its name means here.
//!
//! Nobody is asked about an address or a name below `localhost`; about any other name the system is, once.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// How long the system may take to say what a name means.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);
/// How many names are remembered; a campaign has one.
const MAX_NAMES: usize = 1_000;

/// Says which addresses a name means; none if nobody knows it.
type HostLookup = dyn Fn(String) -> BoxFuture<'static, Vec<IpAddr>> + Send + Sync;

/// What names mean, each asked once, so that what was judged is what is reached.
#[derive(Clone)]
pub(super) struct HostNames {
    lookup: Arc<HostLookup>,
    known: Arc<Mutex<HashMap<String, Option<IpAddr>>>>,
}

impl HostNames {
    /// Those of the system.
    pub(super) fn from_system() -> Self {
        Self::from_lookup(|name| {
            Box::pin(async move {
                let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((name, 0))).await;
                found.ok().and_then(Result::ok).into_iter().flatten().map(|address| address.ip()).collect()
            })
        })
    }

    /// Those that this says.
    pub(super) fn from_lookup(
        lookup: impl Fn(String) -> BoxFuture<'static, Vec<IpAddr>> + Send + Sync + 'static,
    ) -> Self {
        Self { lookup: Arc::new(lookup), known: Arc::default() }
    }

    /// The address of this machine that a host means; nothing if it is, or may be, another machine.
    pub(super) async fn resolve_loopback(&self, host: &str) -> Option<IpAddr> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(address).filter(IpAddr::is_loopback);
        }
        // They are this machine, whether or not they can be looked up (RFC 6761, 6.3).
        if is_loopback_host(host) {
            return Some(Ipv4Addr::LOCALHOST.into());
        }
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(meant) = known().get(host).copied() {
            return meant;
        }
        let found = (self.lookup)(host.to_owned()).await;
        let meant = found.first().copied().filter(|_| found.iter().all(IpAddr::is_loopback));
        let mut known = known();
        if known.len() < MAX_NAMES {
            known.insert(host.to_owned(), meant);
        }
        meant
    }
}

impl Resolve for HostNames {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let meant =
                names.resolve_loopback(name.as_str()).await.ok_or("the host name does not belong to this machine")?;
            Ok(Box::new(std::iter::once(SocketAddr::new(meant, 0))) as Addrs)
        })
    }
}

impl std::fmt::Debug for HostNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

/// Whether a host is this machine by what it is called, without asking anybody.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let named = address == "localhost" || address.ends_with(".localhost");
    named || address.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn name_is_local_if_all_its_addresses_are_loopback() {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&asked);
        let names = HostNames::from_lookup(move |name| {
            counted.fetch_add(1, Ordering::Relaxed);
            let found: &[&str] = match name.as_str() {
                "shop.test" => &["127.0.0.1"],
                "both.test" => &["::1", "127.0.0.1"],
                "half.test" => &["127.0.0.1", "192.0.2.1"],
                _ => &[],
            };
            let found = found.iter().map(|address| address.parse().expect("an address")).collect();
            Box::pin(async move { found })
        });
        for (host, meant) in [
            ("shop.test", Some("127.0.0.1")),
            ("both.test", Some("::1")),
            ("half.test", None),
            ("hooks.example", None),
            ("hooks.example", None),
            ("shop.test", Some("127.0.0.1")),
            ("localhost", Some("127.0.0.1")),
            ("shop.localhost", Some("127.0.0.1")),
            ("127.9.9.9", Some("127.9.9.9")),
            ("[::1]", Some("::1")),
            ("10.0.0.1", None),
            ("[::ffff:127.0.0.1]", None),
        ] {
            let meant = meant.map(|address| address.parse::<IpAddr>().expect("an address"));
            assert_eq!(names.resolve_loopback(host).await, meant, "{host}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 4, "only names, each once");
    }
}
