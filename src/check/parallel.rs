//! Work on all cores whose results come back in order.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

/// Pieces of work that wait or are being done at the same time, per core.
const AHEAD: usize = 3;

/// Takes pieces from `produce`, works on them on `workers` threads, and hands the results to
/// `consume` on this thread, in the order of the pieces. Holds a few pieces, never all of them.
///
/// Each worker makes its own tool with `tool`. When `consume` breaks, no further piece is taken.
pub fn ordered<T: Send, U: Send, W>(
    workers: usize,
    mut produce: impl FnMut() -> Option<T> + Send,
    tool: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, T) -> U + Sync,
    mut consume: impl FnMut(U) -> ControlFlow<()>,
) {
    type Piece<T, U> = (T, SyncSender<U>);
    let workers = workers.max(1);
    let (pieces, taken) = sync_channel::<Piece<T, U>>(workers * AHEAD);
    let (queue, results) = sync_channel::<Receiver<U>>(workers * AHEAD);
    // Owned by the workers alone: when the last of them is gone, handing out work ends too.
    let taken = Arc::new(Mutex::new(taken));
    let (tool, work) = (&tool, &work);
    std::thread::scope(|scope| {
        // Moved in, so that the workers end when the last piece is through.
        scope.spawn(move || {
            while let Some(piece) = produce() {
                let (done, result) = sync_channel(1);
                if queue.send(result).is_err() || pieces.send((piece, done)).is_err() {
                    return;
                }
            }
        });
        for _ in 0..workers {
            let taken = Arc::clone(&taken);
            scope.spawn(move || {
                let mut own = tool();
                loop {
                    let piece = taken.lock().ok().and_then(|taken| taken.recv().ok());
                    let Some((piece, done)) = piece else { return };
                    // Nobody waits for it any more after a break.
                    let _ = done.send(work(&mut own, piece));
                }
            });
        }
        drop(taken);
        for result in results {
            let Ok(result) = result.recv() else { return };
            if consume(result).is_break() {
                return;
            }
        }
    });
}

/// As many threads as this machine has cores.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn results_come_in_the_order_of_the_pieces(workers in 1_usize..5, pieces: Vec<u32>, stop in 0_usize..50) {
            let mut left = pieces.iter().copied();
            let mut seen = Vec::new();
            ordered(workers, || left.next(), || 1, |one, piece| u64::from(piece) + *one, |result| {
                seen.push(result);
                if seen.len() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let expected: Vec<u64> = pieces.iter().take(stop + 1).map(|&piece| u64::from(piece) + 1).collect();
            prop_assert_eq!(seen, expected);
        }
    }
}
