//! Invariant: if a request has not changed the count of sent bytes, no byte of the request was sent.

use super::allowance::{Allowance, Metered};
use super::fault::Endless;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

pub type Count = Arc<AtomicU64>;

/// Maximum number of TLS 1.3 session tickets on one connection. Servers usually send two. Each ticket makes TLS copy the
/// endpoint's certificates.
const TICKETS: u32 = 16;

pub enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<Metered>>),
}

pub struct Counted {
    pub stream: Stream,
    pub count: Count,
    pub allowance: Allowance,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match &mut self.stream {
            Stream::Plain(stream) => ready!(Pin::new(stream).poll_read(cx, buf))?,
            // Takes one chunk at a time, because data increases the allowance only when it is taken.
            Stream::Tls(stream) => {
                let copied = Pin::new(&mut *stream).poll_fill_buf(cx).map_ok(|data| {
                    let length = data.len().min(buf.remaining());
                    buf.put_slice(&data[..length]);
                    length
                });
                if stream.get_ref().1.tls13_tickets_received() > TICKETS {
                    let problem = Endless("the endpoint sends too many TLS session tickets");
                    return Poll::Ready(Err(io::Error::other(problem)));
                }
                Pin::new(stream).consume(ready!(copied)?);
            }
        }
        Poll::Ready(self.allowance.take_data(buf.filled().len() - before))
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
