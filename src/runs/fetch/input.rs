//! A list that is piped into standard input.

use std::io::{self, ErrorKind, Read, Write as _};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::spool::ListSpool;
use super::{FetchError, PipedInput};

/// How much is read at once.
const BUFFER_BYTES: usize = 1 << 16;
/// How many of them wait to be written.
const READ_AHEAD: usize = 4;

/// What was read; nothing is the end.
type InputChunk = io::Result<Vec<u8>>;

pub(super) async fn fetch_from_input(piped: PipedInput, spool: ListSpool) -> Result<ListSpool, FetchError> {
    let Some(input) = piped() else {
        return Err(FetchError::new("standard input is not a pipe or a file")
            .with_help("pipe the list in, or give the path of a file"));
    };
    let (parts, read) = channel(READ_AHEAD);
    // Whoever waits for more of it cannot be stopped: on a thread of its own it holds up no end of the process.
    let reading =
        std::thread::Builder::new().name("standard input".to_owned()).spawn(move || read_chunks(input, &parts));
    reading.map_err(|error| FetchError::new(format!("cannot start a thread: {error}")))?;
    spool_chunks(read, spool).await
}

async fn spool_chunks(mut parts: Receiver<InputChunk>, mut spool: ListSpool) -> Result<ListSpool, FetchError> {
    while let Some(part) = parts.recv().await {
        let part = part.map_err(|error| FetchError::new(error.to_string()))?;
        if part.is_empty() {
            return Ok(spool);
        }
        spool.write_all(&part)?;
    }
    Err(FetchError::new("the input ended early"))
}

/// Reads it to its end, or until nobody wants more.
fn read_chunks(mut input: impl Read, parts: &Sender<InputChunk>) {
    loop {
        let mut buffer = vec![0; BUFFER_BYTES];
        let part = match input.read(&mut buffer) {
            Ok(count) => {
                buffer.truncate(count);
                Ok(buffer)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = part.as_ref().map_or(true, Vec::is_empty);
        if parts.blocking_send(part).is_err() || is_last {
            return;
        }
    }
}
