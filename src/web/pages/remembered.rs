//! A value that is costly to make and a moment old, for everybody who looks.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::ledger::LedgerError;

/// The least time for which a value is shown.
const MIN_TTL: Duration = Duration::from_secs(10);
/// How much longer than it took to make it a value is shown.
const TTL_FACTOR: u32 = 50;
/// How long a visitor waits for a value.
const READ_TIMEOUT: Duration = Duration::from_secs(4);

/// The last value, which is made again after a while.
pub(super) struct CachedValue<T>(Arc<Mutex<CachedEntry<T>>>);

/// The last value, and until when it is shown.
type CachedEntry<T> = Option<(Arc<T>, Instant)>;

impl<T> Default for CachedValue<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Send + Sync + 'static> CachedValue<T> {
    /// The last value, or a new one; nothing while making it takes long.
    ///
    /// # Errors
    /// The error of making it.
    pub(super) async fn get_or_make(
        &self,
        make: impl Future<Output = Result<T, LedgerError>> + Send + 'static,
    ) -> Result<Option<Arc<T>>, LedgerError> {
        let last = Arc::clone(&self.0);
        // A task of its own: the next visitor gets what this one no longer waits for.
        let making = tokio::spawn(async move {
            let mut last = last.lock().await;
            if let Some((value, fresh_until)) = &*last
                && Instant::now() < *fresh_until
            {
                return Ok(Arc::clone(value));
            }
            let began = Instant::now();
            let value = Arc::new(make.await?);
            *last = Some((Arc::clone(&value), Instant::now() + (began.elapsed() * TTL_FACTOR).max(MIN_TTL)));
            Ok(value)
        });
        match tokio::time::timeout(READ_TIMEOUT, making).await {
            Ok(Ok(value)) => value.map(Some),
            Ok(Err(_)) | Err(_) => Ok(None),
        }
    }

    /// Forgets the value, since it changed.
    pub(super) async fn invalidate(&self) {
        *self.0.lock().await = None;
    }
}
