//! The moving line on standard error: a spinner with words while a command waits, or the bar of a run.
//!
//! A process has one standard error, and so has at most one such line. Everything else that is written to a terminal is
//! written while the line is suspended.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::runtime::Handle;

/// How long a command waits before a spinner appears: a fast one shows none.
const SPINNER_DELAY: Duration = Duration::from_millis(200);
/// How often a spinner moves.
const SPINNER_INTERVAL: Duration = Duration::from_millis(100);

/// Whether the operator is typing behind a prompt, so that the next line of output needs a line break first.
static IS_TYPING: AtomicBool = AtomicBool::new(false);

static CURRENT: Mutex<Option<Arc<ProgressBar>>> = Mutex::new(None);

fn lock_current() -> MutexGuard<'static, Option<Arc<ProgressBar>>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A moving line, which disappears when it is dropped.
pub(super) struct LiveLine(Arc<ProgressBar>);

/// Shows a bar until the line is dropped.
pub(super) fn show_bar(bar: ProgressBar) -> LiveLine {
    clear_line();
    let bar = Arc::new(bar);
    *lock_current() = Some(Arc::clone(&bar));
    LiveLine(bar)
}

/// Shows a spinner with these words until the line is dropped or something else takes its place.
pub(super) fn show_spinner(words: &'static str) -> LiveLine {
    let style =
        ProgressStyle::with_template("{spinner:.cyan} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
    let line = show_bar(
        ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style).with_message(words),
    );
    if let Ok(runtime) = Handle::try_current() {
        let bar = Arc::clone(&line.0);
        runtime.spawn(async move {
            tokio::time::sleep(SPINNER_DELAY).await;
            while tick_spinner(&bar) {
                tokio::time::sleep(SPINNER_INTERVAL).await;
            }
        });
    }
    line
}

/// Moves a spinner, if it is still the moving line.
fn tick_spinner(bar: &Arc<ProgressBar>) -> bool {
    let current = lock_current();
    let is_current = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, bar));
    if is_current {
        bar.tick();
    }
    is_current
}

/// Removes the moving line, for example before a question.
pub(super) fn clear_line() {
    if let Some(bar) = lock_current().take() {
        bar.finish_and_clear();
    }
}

/// Records whether the operator is typing behind a prompt.
pub(super) fn set_typing(is_typing: bool) {
    IS_TYPING.store(is_typing, Ordering::Relaxed);
}

/// Writes to a terminal while the moving line is out of the way, and below an unanswered prompt.
pub(super) fn with_suspended_line<T>(write: impl FnOnce() -> T) -> T {
    if IS_TYPING.swap(false, Ordering::Relaxed) {
        let _ = writeln!(io::stderr().lock());
    }
    match lock_current().as_ref() {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}

impl LiveLine {
    /// The bar.
    pub(super) fn bar(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for LiveLine {
    fn drop(&mut self) {
        let mut current = lock_current();
        if current.as_ref().is_some_and(|current| Arc::ptr_eq(current, &self.0)) {
            *current = None;
        }
        self.0.finish_and_clear();
    }
}

/// Standard error for the log.
pub(super) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        with_suspended_line(|| io::stderr().lock().write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
