//! A connection that ends when nothing moves on it for too long.
//!
//! hyper bounds only the head of a request. Whoever stops in the middle of a body, or takes no answer, would hold a
//! connection for ever.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// A connection on which bytes have to move.
pub(super) struct IdleTimeoutStream {
    stream: TcpStream,
    silence: Option<IdleTimer>,
}

/// How long nothing moved, and may not move.
struct IdleTimer {
    longest: Duration,
    over: Pin<Box<Sleep>>,
}

impl IdleTimeoutStream {
    /// A connection that may be silent for so long, or for ever.
    pub(super) fn new(stream: TcpStream, longest: Option<Duration>) -> Self {
        let silence = longest.map(|longest| IdleTimer { longest, over: Box::pin(sleep(longest)) });
        Self { stream, silence }
    }

    /// What an attempt to move bytes came to: progress starts the silence anew, and one that was too long is an error.
    fn check_idle<T>(&mut self, context: &mut Context<'_>, moved: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        let Some(silence) = &mut self.silence else { return moved };
        if moved.is_pending() {
            ready!(silence.over.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        silence.over.as_mut().reset(Instant::now() + silence.longest);
        moved
    }
}

impl AsyncRead for IdleTimeoutStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.check_idle(cx, read)
    }
}

impl AsyncWrite for IdleTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.check_idle(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.check_idle(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
