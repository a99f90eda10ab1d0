//! Invariant: a call, and an idle connection, make the gateway process a limited number of an endpoint's bytes, whatever
//! they mean.

use super::fault::Endless;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Maximum number of bytes before an answer's head is complete. Without a maximum, a server could send any number of
/// interim (1xx) answers, because the HTTP library skips such answers.
const HEAD: u64 = 128 * 1024;
/// Maximum number of bytes after an answer's head, with the sizes of chunks.
const BODY: u64 = 192 * 1024;
/// Maximum number of bytes of TLS that contain no data. TLS 1.3 can send any number of them, such as session tickets and
/// key updates. This also limits the size of an endpoint's certificates: a usual chain has less than 8 KiB.
const OVERHEAD: u64 = 32 * 1024;
/// A byte of data gives back itself and one byte more, so an endpoint may send as many bytes without data.
const SHARE: u64 = 2;

/// How many bytes an endpoint may still send.
#[derive(Clone)]
pub struct Allowance(Arc<Left>);

struct Left {
    data: AtomicU64,
    /// Bytes of TLS. Data reduces this number, and increases it again by twice as much when TLS has decrypted it.
    raw: AtomicU64,
}

impl Default for Allowance {
    fn default() -> Self {
        Allowance(Arc::new(Left { data: AtomicU64::new(HEAD), raw: AtomicU64::new(OVERHEAD) }))
    }
}

impl Allowance {
    pub fn begin_call(&self) {
        self.0.data.store(HEAD, Ordering::Relaxed);
        self.0.raw.store(OVERHEAD, Ordering::Relaxed);
    }

    pub fn begin_body(&self) {
        self.0.data.store(BODY, Ordering::Relaxed);
    }

    pub fn take_data(&self, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        let more = |left: u64| Some(left.saturating_add(SHARE * bytes).min(OVERHEAD));
        let _ = self.0.raw.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more); // cannot fail
        take(&self.0.data, bytes, "the answer is too long")
    }
}

fn take(left: &AtomicU64, bytes: u64, problem: &'static str) -> io::Result<()> {
    let less = |left: u64| left.checked_sub(bytes);
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    taken.map(drop).map_err(|_| io::Error::other(Endless(problem)))
}

/// A connection below TLS.
pub struct Metered {
    tcp: TcpStream,
    allowance: Allowance,
}

impl Metered {
    pub fn new(tcp: TcpStream, allowance: Allowance) -> Self {
        Metered { tcp, allowance }
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        Poll::Ready(take(&self.allowance.0.raw, read as u64, "the endpoint sends too much that is no data"))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "allowance_tests.rs"]
mod tests;
