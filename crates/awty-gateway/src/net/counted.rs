//! Invariant: if a request has not changed the count of sent bytes, no byte of the request was sent.

use super::fault::Endless;
use super::paced::Paced;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

pub type Count = Arc<AtomicU64>;

/// Maximum number of bytes that the gateway reads before an answer's head is complete. Without a maximum, a server
/// could send any number of interim (1xx) answers, because the HTTP library skips such answers.
const EARLY: u64 = 128 * 1024;
const ANY: u64 = u64::MAX;

#[derive(Clone)]
pub struct Early(Arc<AtomicU64>);

impl Default for Early {
    fn default() -> Self {
        Early(Arc::new(AtomicU64::new(ANY)))
    }
}

impl Early {
    pub fn begin(&self) {
        self.0.store(EARLY, Ordering::Relaxed);
    }

    pub fn end(&self) {
        self.0.store(ANY, Ordering::Relaxed);
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left| (left != ANY).then(|| u64::saturating_sub(left, bytes as u64));
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less); // fails only for `ANY`, which means no limit
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Maximum number of TLS 1.3 session tickets on one connection. Servers usually send two. Each ticket makes TLS copy the
/// endpoint's certificates.
const TICKETS: u32 = 16;

pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<Paced>>),
}

pub struct Counted {
    pub stream: Stream,
    pub count: Count,
    pub early: Early,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Tls(stream) => {
                let polled = Pin::new(&mut *stream).poll_read(cx, buf);
                if stream.get_ref().1.tls13_tickets_received() > TICKETS {
                    return Poll::Ready(Err(io::Error::other(Endless(
                        "the endpoint sends too many TLS session tickets",
                    ))));
                }
                polled
            }
        };
        if self.early.take(buf.filled().len() - before) {
            return polled;
        }
        Poll::Ready(Err(io::Error::other(Endless("the header section of the answer is too long"))))
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        };
        if let Poll::Ready(Ok(written)) = &polled {
            self.count.fetch_add(*written as u64, Ordering::Relaxed);
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
        };
        if let Poll::Ready(Ok(written)) = &polled {
            self.count.fetch_add(*written as u64, Ordering::Relaxed);
        }
        polled
    }

    /// Supports vectored writes, so that hyper does not copy each body.
    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
