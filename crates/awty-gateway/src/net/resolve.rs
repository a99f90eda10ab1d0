//! Resolves host names, and caches each name for its TTL (at least 5 s, at most 60 s).

use super::fault::{Failure, Fault};
use super::guard::{Guard, check_port};
use awty_core::uri::Uri;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use url::Host;

const PATIENCE: Duration = Duration::from_secs(5);
const KEPT: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));
const CACHE: u64 = 10_000;
/// Maximum number of addresses of one host name.
const ADDRESSES: usize = 64;

pub struct Resolver {
    inner: TokioResolver,
}

impl Resolver {
    pub fn of_system() -> Result<Self, String> {
        let builder =
            TokioResolver::builder_tokio().map_err(|error| format!("the name servers are unknown: {error}"))?;
        Self::build(builder)
    }

    pub fn with(config: ResolverConfig) -> Result<Self, String> {
        Self::build(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()))
    }

    fn build(mut builder: hickory_resolver::ResolverBuilder<TokioRuntimeProvider>) -> Result<Self, String> {
        let options = builder.options_mut();
        options.timeout = Duration::from_secs(2);
        options.attempts = 2;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = CACHE;
        options.use_hosts_file = ResolveHosts::Always;
        (options.positive_min_ttl, options.positive_max_ttl) = (Some(KEPT.0), Some(KEPT.1));
        (options.negative_min_ttl, options.negative_max_ttl) = (Some(KEPT.0), Some(KEPT.1));
        let inner = builder.build().map_err(|error| format!("the resolver cannot start: {error}"))?;
        Ok(Resolver { inner })
    }

    pub async fn judged(&self, endpoint: &Uri, guard: &Guard) -> Result<Vec<SocketAddr>, Failure> {
        let url = endpoint.url();
        let port = url.port_or_known_default().unwrap_or(443);
        check_port(port).map_err(|refusal| Failure::new(Fault::BlockedAddress, refusal))?;
        let addresses = match url.host() {
            Some(Host::Ipv4(address)) => vec![IpAddr::from(address)],
            Some(Host::Ipv6(address)) => vec![IpAddr::from(address)],
            Some(Host::Domain(name)) => self.look_up(name).await?,
            None => return Err(Failure::new(Fault::Name, "the URI has no host")),
        };
        let origin = endpoint.entity_name();
        let (mut allowed, mut refused) = (Vec::new(), None);
        for address in addresses.into_iter().take(ADDRESSES) {
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

    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, Failure> {
        // The final dot keeps the resolver from appending search domains.
        let absolute = format!("{}.", name.trim_end_matches('.'));
        let looked_up = tokio::time::timeout(PATIENCE, self.inner.lookup_ip(absolute)).await;
        let found = looked_up.map_err(|_| Failure::new(Fault::Name, "no name server answered within 5 s"))?;
        let found = found.map_err(|error| Failure::new(Fault::Name, error))?;
        Ok(found.iter().collect())
    }
}
