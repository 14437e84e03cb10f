//! Work that reads files, on a thread that may wait.

use super::Error;

/// Runs what reads files on a thread that may wait.
///
/// # Errors
/// When the work ended by a panic, which is a bug.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Internal(format!("a task ended early: {error}")))
}
