//! Invariant: the peer of a connection is the address that the guard has checked and allowed.

use super::allowance::{Allowance, Metered};
use super::counted::{Count, Counted, Stream};
use super::fault::{Failure, Fault};
use super::guard::Guard;
use super::tls;
use rustls::ClientConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// A call tries no other address after this many failed handshakes, because they cost much more than connections.
const HANDSHAKES: u32 = 3;

pub struct Connected {
    pub stream: Counted,
    pub address: SocketAddr,
    pub connect: Duration,
    pub tls: Option<Duration>,
}

pub struct Place<'a> {
    pub tls: Option<(&'a Arc<ClientConfig>, &'a str)>,
    pub addresses: &'a [SocketAddr],
}

/// Connects to one of the addresses. Sets `tried` to the connected address, or to the address whose failure is
/// returned.
pub async fn connect(
    place: &Place<'_>,
    guard: &Guard,
    deadline: Instant,
    tried: &mut Option<SocketAddr>,
) -> Result<Connected, Failure> {
    let mut last = Failure::new(Fault::Name, "the name has no address");
    let (mut failed, mut handshakes) = (None, 0);
    for (index, address) in place.addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let shares = u32::try_from(place.addresses.len() - index).unwrap_or(u32::MAX);
        let until = Instant::now() + left / shares;
        *tried = Some(*address);
        match timeout_at(until, one(place, guard, *address)).await {
            Ok(Ok(connected)) => return Ok(connected),
            Ok(Err(failure)) if failure.fault != Fault::Connect => {
                handshakes += 1;
                if handshakes == HANDSHAKES {
                    return Err(failure);
                }
                (last, failed) = (failure, *tried);
            }
            // Keeps the specific failure of an earlier address, such as a bad certificate. Later failures replace only
            // a failed connection.
            _ if handshakes > 0 => {}
            Ok(Err(failure)) => (last, failed) = (failure, *tried),
            Err(_) => {
                (last, failed) = (Failure::new(Fault::Connect, format!("{address} did not answer in time")), *tried);
            }
        }
    }
    *tried = failed;
    Err(last)
}

async fn one(place: &Place<'_>, guard: &Guard, judged: SocketAddr) -> Result<Connected, Failure> {
    let start = Instant::now();
    let failed = |error: std::io::Error| Failure::unless_own(Fault::Connect, &error, format!("{judged}: {error}"));
    let tcp = TcpStream::connect(judged).await.map_err(failed)?;
    let peer = tcp.peer_addr().map_err(failed)?;
    if !guard.is_as_judged(judged, peer) {
        return Err(Failure::new(
            Fault::BlockedAddress,
            format!("{peer} is not the address that was checked, or is the gateway itself"),
        ));
    }
    tcp.set_nodelay(true).map_err(failed)?;
    let connect = start.elapsed();
    let allowance = Allowance::default();
    let counted = |stream, allowance| Counted { stream, count: Count::default(), allowance };
    let Some((config, host)) = place.tls else {
        return Ok(Connected { stream: counted(Stream::Plain(tcp), allowance), address: peer, connect, tls: None });
    };
    let start = Instant::now();
    let stream = tls::handshake(config, host, Metered::new(tcp, allowance.clone())).await?;
    let stream = counted(Stream::Tls(Box::new(stream)), allowance);
    Ok(Connected { stream, address: peer, connect, tls: Some(start.elapsed()) })
}
