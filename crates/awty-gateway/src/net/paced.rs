//! Invariant: between two turns of other tasks, TLS processes at most [`PIECE`] new bytes of an endpoint.
//!
//! TLS reads until data comes, but an endpoint may send any number of messages without data, such as session tickets.

use super::fault::Endless;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

const PIECE: usize = 4 * 1024;
/// Maximum number of bytes that an endpoint may send during the handshake. This limits how much memory its certificates
/// take. A usual chain of certificates has less than 8 KiB.
const HANDSHAKE: usize = 32 * 1024;

pub struct Paced {
    tcp: TcpStream,
    has_read: bool,
    left: Option<usize>,
}

impl Paced {
    pub fn new(tcp: TcpStream) -> Self {
        Paced { tcp, has_read: false, left: Some(HANDSHAKE) }
    }

    pub fn end_handshake(&mut self) {
        self.left = None;
    }
}

impl AsyncRead for Paced {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.has_read) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let room = buf.remaining().min(PIECE);
        let mut piece = ReadBuf::new(buf.initialize_unfilled_to(room));
        std::task::ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut piece))?;
        let read = piece.filled().len();
        if let Some(left) = &mut self.left {
            let too_long = || io::Error::other(Endless("the TLS handshake is too long"));
            *left = left.checked_sub(read).ok_or_else(too_long)?;
        }
        buf.advance(read);
        self.has_read = true;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Paced {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
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
#[path = "paced_tests.rs"]
mod tests;
