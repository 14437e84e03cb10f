//! Catching panics in libraries without printing them to standard error.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside [`catch_panic`]. If so, the panic hook prints nothing.
    static IS_CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// Returns the result of a call. `None` if the call panics; the panic message is not printed.
pub fn catch_panic<T>(call: impl FnOnce() -> T) -> Option<T> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_CATCHING.get() {
                previous(panic);
            }
        }));
    });
    let was_catching = IS_CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    IS_CATCHING.set(was_catching);
    result.ok()
}
