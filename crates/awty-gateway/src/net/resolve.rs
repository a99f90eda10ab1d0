//! Resolves host names, and caches each name for its TTL (at least 5 s, at most 60 s).
//!
//! The resolver's own cache is off, because it keeps whole answers. An answer of 64 KiB with thousands of addresses needs
//! megabytes there.

use super::fault::{Failure, Fault};
use super::guard::{Guard, check_port};
use crate::files;
use awty_core::uri::Uri;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{ResolverBuilder, TokioResolver};
use moka::Expiry;
use moka::sync::Cache;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Host;

const PATIENCE: Duration = Duration::from_secs(5);
const KEPT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
const CACHE: u64 = 10_000;
/// Maximum number of addresses of one host name.
const ADDRESSES: usize = 64;

/// The addresses of a name, and how long they stay in the cache.
#[derive(Clone)]
struct Found {
    addresses: Arc<[IpAddr]>,
    kept: Duration,
}

struct Ttl;

impl Expiry<String, Found> for Ttl {
    fn expire_after_create(&self, _name: &String, found: &Found, _now: Instant) -> Option<Duration> {
        Some(found.kept)
    }

    /// Without this function, an answer that replaces another one would keep the time of the other one.
    fn expire_after_update(&self, _: &String, found: &Found, _: Instant, _: Option<Duration>) -> Option<Duration> {
        Some(found.kept)
    }
}

fn empty_cache() -> Cache<String, Found> {
    Cache::builder().max_capacity(CACHE).expire_after(Ttl).build()
}

pub struct Resolver {
    v4: TokioResolver,
    v6: TokioResolver,
    known: Cache<String, Found>,
}

impl Resolver {
    pub fn of_system() -> Result<Self, String> {
        Self::build(|| TokioResolver::builder_tokio().map_err(|error| format!("the name servers are unknown: {error}")))
    }

    pub fn with(config: ResolverConfig) -> Result<Self, String> {
        let provider = TokioRuntimeProvider::default;
        Self::build(|| Ok(TokioResolver::builder_with_config(config.clone(), provider())))
    }

    fn build(builder: impl Fn() -> Result<ResolverBuilder<TokioRuntimeProvider>, String>) -> Result<Self, String> {
        let of = |family| {
            let mut builder = builder()?;
            let options = builder.options_mut();
            options.timeout = Duration::from_secs(2);
            options.attempts = 2;
            options.ip_strategy = family;
            options.cache_size = 0;
            options.use_hosts_file = ResolveHosts::Always;
            builder.build().map_err(|error| format!("the resolver cannot start: {error}"))
        };
        Ok(Resolver { v4: of(LookupIpStrategy::Ipv4Only)?, v6: of(LookupIpStrategy::Ipv6Only)?, known: empty_cache() })
    }

    pub async fn judged(&self, endpoint: &Uri, guard: &Guard) -> Result<Vec<SocketAddr>, Failure> {
        let url = endpoint.url();
        let port = url.port_or_known_default().unwrap_or(443);
        check_port(port).map_err(|refusal| Failure::new(Fault::BlockedAddress, refusal))?;
        let addresses = match url.host() {
            Some(Host::Ipv4(address)) => Arc::new([IpAddr::from(address)]),
            Some(Host::Ipv6(address)) => Arc::new([IpAddr::from(address)]),
            Some(Host::Domain(name)) => self.look_up(name).await?,
            None => return Err(Failure::new(Fault::Name, "the URI has no host")),
        };
        let origin = endpoint.entity_name();
        let (mut allowed, mut refused) = (Vec::new(), None);
        for address in addresses.iter().copied().take(ADDRESSES) {
            match guard.judge(&origin, address, port) {
                Ok(socket) if !allowed.contains(&socket) => allowed.push(socket),
                Ok(_) => {}
                Err(refusal) => refused = Some(refusal),
            }
        }
        match refused {
            Some(refusal) if allowed.is_empty() => Err(Failure::new(Fault::BlockedAddress, refusal)),
            None if allowed.is_empty() => Err(Failure::new(Fault::Name, "the name has no address")),
            _ => Ok(allowed),
        }
    }

    async fn look_up(&self, name: &str) -> Result<Arc<[IpAddr]>, Failure> {
        // The final dot keeps the resolver from appending search domains.
        let absolute = format!("{}.", name.trim_end_matches('.'));
        if let Some(found) = self.known.get(&absolute) {
            return Ok(found.addresses);
        }
        // Reduces each answer at once, because the other one may take seconds.
        let (v4, v6) = tokio::join!(of_family(&self.v4, &absolute), of_family(&self.v6, &absolute));
        let found = match (v4, v6) {
            (Ok(v4), Ok(v6)) => {
                let kept = [&v4, &v6].into_iter().filter(|found| !found.addresses.is_empty()).map(|found| found.kept);
                let kept = kept.min().unwrap_or(KEPT.0);
                Found { addresses: [v4.addresses, v6.addresses].concat().into(), kept }
            }
            // Asks for the other family again soon.
            (Ok(found), Err(_)) | (Err(_), Ok(found)) if !found.addresses.is_empty() => Found { kept: KEPT.0, ..found },
            (Err(failure), _) | (_, Err(failure)) => return Err(failure),
        };
        self.known.insert(absolute, found.clone());
        Ok(found.addresses)
    }
}

async fn of_family(resolver: &TokioResolver, name: &str) -> Result<Found, Failure> {
    let looked_up = tokio::time::timeout(PATIENCE, resolver.lookup_ip(name)).await;
    match looked_up.map_err(|_| Failure::new(Fault::Name, "no name server answered within 5 s"))? {
        Ok(all) => {
            let ttl = all.valid_until().saturating_duration_since(Instant::now());
            Ok(Found { addresses: all.iter().take(ADDRESSES).collect(), kept: ttl.clamp(KEPT.0, KEPT.1) })
        }
        Err(error) if error.is_no_records_found() => Ok(Found { addresses: Arc::default(), kept: KEPT.0 }),
        // The resolver hides why it could not open a socket.
        Err(error) => Err(match files::missing() {
            Some(missing) => Failure::new(Fault::NoFile, missing),
            None => Failure::new(Fault::Name, error),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two look-ups of one name may end together. The answer of the second one replaces the first one.
    #[test]
    fn an_answer_that_replaces_another_one_has_its_own_time() {
        let (cache, name) = (empty_cache(), "a.example.".to_owned());
        let found = |kept| Found { addresses: Arc::default(), kept };
        cache.insert(name.clone(), found(KEPT.1));
        assert!(cache.contains_key(&name));
        cache.insert(name.clone(), found(Duration::ZERO));
        assert!(!cache.contains_key(&name), "the answer keeps the time of the first one");
    }
}
