//! The body of a request that asks, right before its first byte, whether it may still leave.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use crate::gateway::MayLeave;

/// A body that ends the request instead of being sent, if it may not leave when the connection takes it.
///
/// Making a connection can take seconds, and a process may be suspended in them.
pub(super) struct GuardedBody {
    bytes: Option<Bytes>,
    may_leave: MayLeave,
    withheld: WithheldFlag,
}

/// Whether a body was withheld.
#[derive(Clone, Default)]
pub(super) struct WithheldFlag(Arc<AtomicBool>);

impl WithheldFlag {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl GuardedBody {
    pub(super) fn new(bytes: Vec<u8>, may_leave: MayLeave) -> (Self, WithheldFlag) {
        let withheld = WithheldFlag::default();
        (Self { bytes: Some(bytes.into()), may_leave, withheld: withheld.clone() }, withheld)
    }
}

impl Body for GuardedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(bytes) = self.bytes.take() else { return Poll::Ready(None) };
        if (self.may_leave)() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        self.withheld.0.store(true, Ordering::Release);
        Poll::Ready(Some(Err(io::Error::other("it is too late to send the request"))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn poll_body(may_leave: bool) -> (Poll<Option<io::Result<Bytes>>>, bool) {
        let (body, withheld) = GuardedBody::new(b"[1]".to_vec(), Arc::new(move || may_leave));
        let mut body = Box::pin(body);
        assert_eq!(body.size_hint().exact(), Some(3));
        let frame = body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop()));
        assert!(body.is_end_stream());
        (frame.map(|frame| frame.map(|frame| frame.map(|frame| frame.into_data().unwrap()))), withheld.is_set())
    }

    #[test]
    fn body_is_sent_whole_or_not_at_all() {
        let (frame, withheld) = poll_body(true);
        assert!(matches!(frame, Poll::Ready(Some(Ok(bytes))) if bytes == "[1]".as_bytes()) && !withheld);
        let (frame, withheld) = poll_body(false);
        assert!(matches!(frame, Poll::Ready(Some(Err(_)))) && withheld);
    }
}
