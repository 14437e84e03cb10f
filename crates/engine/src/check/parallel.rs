//! Parallel work with ordered results, for lists that are read once and never held in memory.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, scope};

/// The maximum number of queued pieces of work per worker, and also of results that `consume` has not received.
const PIECES_PER_WORKER: usize = 3;

/// Processes pieces from `produce` on `workers` threads, and passes the results to `consume` on the calling thread, in
/// the order of the pieces. Only a few pieces are in memory at any time.
///
/// Each worker creates its own state by calling `create_state`. After `consume` breaks, `produce` can be called a few
/// more times. If the system cannot start threads, all work is done on the calling thread.
pub fn process_in_order<T: Send, U: Send, W>(
    workers: usize,
    mut produce: impl FnMut() -> Option<T> + Send,
    create_state: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, T) -> U + Sync,
    mut consume: impl FnMut(U) -> ControlFlow<()>,
) {
    if let Err(error) = process_on_threads(workers.max(1), &mut produce, &create_state, &work, &mut consume) {
        tracing::debug!("using a single thread, because the system cannot start another: {error}");
        process_sequentially(produce, create_state, work, consume);
    }
}

/// [`process_in_order`] without threads.
fn process_sequentially<T, U, W>(
    mut produce: impl FnMut() -> Option<T>,
    create_state: impl Fn() -> W,
    work: impl Fn(&mut W, T) -> U,
    mut consume: impl FnMut(U) -> ControlFlow<()>,
) {
    let mut state = create_state();
    while let Some(piece) = produce() {
        if consume(work(&mut state, piece)).is_break() {
            return;
        }
    }
}

/// [`process_in_order`] with threads, even for a single worker.
///
/// # Errors
/// If the system cannot start the threads. In that case, nothing was taken from `produce`.
fn process_on_threads<T: Send, U: Send, W>(
    workers: usize,
    produce: &mut (impl FnMut() -> Option<T> + Send),
    create_state: &(impl Fn() -> W + Sync),
    work: &(impl Fn(&mut W, T) -> U + Sync),
    consume: &mut impl FnMut(U) -> ControlFlow<()>,
) -> io::Result<()> {
    type Piece<T, U> = (T, SyncSender<U>);
    let (pieces, receiver) = sync_channel::<Piece<T, U>>(workers * PIECES_PER_WORKER);
    let (queue, results) = sync_channel::<Receiver<U>>(workers * PIECES_PER_WORKER);
    // Only the workers own the receiver of the pieces, so the producing thread stops when the last worker ends.
    let receiver = Arc::new(Mutex::new(receiver));
    scope(|scope| {
        for worker in 0..workers {
            let receiver = Arc::clone(&receiver);
            let started = Builder::new().spawn_scoped(scope, move || {
                let mut state = create_state();
                loop {
                    let piece = receiver.lock().ok().and_then(|receiver| receiver.recv().ok());
                    let Some((piece, reply)) = piece else { return };
                    // If the caller has stopped early, the receiver is gone.
                    let _ = reply.send(work(&mut state, piece));
                }
            });
            match started {
                Ok(_) => {}
                Err(error) if worker == 0 => return Err(error),
                Err(_) => break,
            }
        }
        drop(receiver);
        // The producing thread starts last, so that no piece is produced without a worker. It owns the sender, so that
        // the workers end after the last piece.
        Builder::new().spawn_scoped(scope, move || {
            while let Some(piece) = produce() {
                let (reply, result) = sync_channel(1);
                if queue.send(result).is_err() || pieces.send((piece, reply)).is_err() {
                    return;
                }
            }
        })?;
        for result in results {
            let Ok(result) = result.recv() else { break };
            if consume(result).is_break() {
                break;
            }
        }
        Ok(())
    })
}

/// The number of cores that this process can use, or 1 if it is unknown.
pub fn count_cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn results_keep_the_order_of_the_pieces(workers in 0_usize..5, pieces: Vec<u32>, stop in 0_usize..50) {
            let mut remaining = pieces.iter().copied();
            let mut results_seen = Vec::new();
            let work = |state: &mut u64, piece: u32| u64::from(piece) + *state;
            let consume = |result| {
                results_seen.push(result);
                if results_seen.len() > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            match workers {
                0 => process_sequentially(|| remaining.next(), || 1, work, consume),
                _ => process_in_order(workers, || remaining.next(), || 1, work, consume),
            }
            let expected: Vec<u64> = pieces.iter().take(stop + 1).map(|&piece| u64::from(piece) + 1).collect();
            prop_assert_eq!(results_seen, expected);
        }
    }
}
