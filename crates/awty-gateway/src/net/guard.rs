//! Invariant: the guard checks the resolved address, and refuses every address that no rule allows. No setting allows
//! calls to the gateway's own listeners, the database, or a network in `deny_networks`.

use super::registry::{IPV4, IPV6, Row};
use awty_core::uri::is_port_allowed;
use ipnet::IpNet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The only origin that calls in this network may reach. `None` allows all origins.
    pub origin: Option<String>,
    pub network: IpNet,
}

#[derive(Clone, Debug, Default)]
pub struct Guard {
    pub allowed: Vec<Allowed>,
    pub denied: Vec<IpNet>,
    /// The configuration allows this setting only while the gateway listens on loopback.
    pub allow_localhost: bool,
    pub own: Vec<SocketAddr>,
    /// The addresses of this machine, as of the last look. If they are unknown, each address may be one of them.
    pub here: Option<Vec<IpAddr>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Port(u16),
    /// The address belongs to a registered network that is not globally reachable.
    Special(IpAddr, &'static str),
    Own(SocketAddr),
    Denied(IpAddr),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Port(port) => write!(f, "port {port} is not allowed; 80, 443 and 1024 and above are"),
            Refusal::Special(address, name) => {
                let setting = if address.is_loopback() { "allow_localhost" } else { "allow_networks" };
                write!(f, "{address} is not a public address ({name}); the setting {setting} can open it")
            }
            Refusal::Own(address) => {
                write!(f, "{address} belongs to the gateway or to its database; write another address")
            }
            Refusal::Denied(address) => write!(f, "{address} is in a network of the setting deny_networks"),
        }
    }
}

fn parsed(rows: &[Row]) -> Vec<(IpNet, bool, &'static str)> {
    let mut all: Vec<_> =
        rows.iter().filter_map(|(net, ok, name)| Some((net.parse::<IpNet>().ok()?, *ok, *name))).collect();
    all.sort_by_key(|(net, ..)| std::cmp::Reverse(net.prefix_len()));
    all
}

static REGISTRY_4: LazyLock<Vec<(IpNet, bool, &'static str)>> = LazyLock::new(|| parsed(IPV4));
static REGISTRY_6: LazyLock<Vec<(IpNet, bool, &'static str)>> = LazyLock::new(|| parsed(IPV6));

fn special(address: IpAddr) -> Option<&'static str> {
    let registry = if address.is_ipv4() { &REGISTRY_4 } else { &REGISTRY_6 };
    let row = registry.iter().find(|(net, ..)| net.contains(&address));
    row.and_then(|(_, reachable, name)| (!reachable).then_some(*name))
}

pub const fn check_port(port: u16) -> Result<(), Refusal> {
    if is_port_allowed(port) { Ok(()) } else { Err(Refusal::Port(port)) }
}

impl Guard {
    pub fn judge(&self, origin: &str, address: IpAddr, port: u16) -> Result<SocketAddr, Refusal> {
        let address = address.to_canonical();
        let socket = SocketAddr::new(address, port);
        check_port(port)?;
        if self.denied.iter().any(|network| network.contains(&address)) {
            return Err(Refusal::Denied(address));
        }
        if self.is_own(socket) {
            return Err(Refusal::Own(socket));
        }
        match special(address) {
            Some(name) if !self.opens(origin, address) => Err(Refusal::Special(address, name)),
            _ => Ok(socket),
        }
    }

    /// Returns whether a connection leads to the address that the guard has allowed, and not to one of the gateway's
    /// own listeners.
    pub fn is_as_judged(&self, judged: SocketAddr, peer: SocketAddr) -> bool {
        let peer = canonical(peer);
        peer == judged && !self.is_own(peer)
    }

    /// A port of the gateway or of its database counts for all addresses of this machine, because a server may listen
    /// on several.
    fn is_own(&self, socket: SocketAddr) -> bool {
        let of_port = self.own.iter().map(|own| canonical(*own)).filter(|own| own.port() == socket.port());
        of_port.map(|own| own.ip()).any(|own| own == socket.ip() || self.is_here(own) && self.is_here(socket.ip()))
    }

    fn is_here(&self, address: IpAddr) -> bool {
        let is_listed = || self.here.as_ref().is_none_or(|here| here.contains(&address));
        address.is_unspecified() || address.is_loopback() || is_listed()
    }

    fn opens(&self, origin: &str, address: IpAddr) -> bool {
        let for_it = |allowed: &&Allowed| allowed.origin.as_deref().is_none_or(|only| only == origin);
        self.allow_localhost && address.is_loopback()
            || self.allowed.iter().filter(for_it).any(|allowed| allowed.network.contains(&address))
    }
}

#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<RwLock<Arc<Guard>>>);

impl Shared {
    pub fn get(&self) -> Arc<Guard> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, guard: Guard) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(guard);
    }
}

impl From<Guard> for Shared {
    fn from(guard: Guard) -> Self {
        Shared(Arc::new(RwLock::new(Arc::new(guard))))
    }
}

/// Returns the addresses of this machine. Needs a file descriptor and the right to open a netlink socket.
pub fn addresses() -> Option<Vec<IpAddr>> {
    let interfaces = if_addrs::get_if_addrs().ok()?;
    Some(interfaces.iter().map(if_addrs::Interface::ip).collect())
}

fn canonical(socket: SocketAddr) -> SocketAddr {
    SocketAddr::new(socket.ip().to_canonical(), socket.port())
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
