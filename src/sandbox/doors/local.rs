//! Webhooks that are taken in this process, whatever they are addressed to.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

type ReceiveFn = dyn Fn(Arc<str>, Vec<u8>) -> BoxFuture<'static, u16> + Send + Sync;

/// Who takes webhooks in this process: the address and the body go in, and the HTTP status of an answer comes out.
#[derive(Clone)]
pub struct LocalReceiver(Arc<ReceiveFn>);

impl LocalReceiver {
    /// Webhooks are taken by this.
    pub fn new(take: impl Fn(Arc<str>, Vec<u8>) -> BoxFuture<'static, u16> + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Brings a webhook; the HTTP status of the answer.
    pub(super) async fn receive(&self, url: Arc<str>, body: Vec<u8>) -> u16 {
        (self.0)(url, body).await
    }
}

impl fmt::Debug for LocalReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalReceiver")
    }
}
