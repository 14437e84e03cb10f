//! A list that is piped into standard input.

use std::io::{self, ErrorKind, Read, Write as _};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::spool::Spool;
use super::{Failed, PipedInput};

/// How much is read at once.
const BUFFER: usize = 1 << 16;
/// How many of them wait to be written.
const AHEAD: usize = 4;

/// What was read; nothing is the end.
type Part = io::Result<Vec<u8>>;

pub(super) async fn fetch(piped: PipedInput, spool: Spool) -> Result<Spool, Failed> {
    let Some(input) = piped() else {
        return Err(
            Failed::new("standard input is not a pipe or a file").help("pipe the list in, or give the path of a file")
        );
    };
    let (parts, read) = channel(AHEAD);
    // Whoever waits for more of it cannot be stopped: on a thread of its own it holds up no end of the process.
    let reading = std::thread::Builder::new().name("standard input".to_owned()).spawn(move || read_all(input, &parts));
    reading.map_err(|error| Failed::new(format!("cannot start a thread: {error}")))?;
    keep(read, spool).await
}

async fn keep(mut parts: Receiver<Part>, mut spool: Spool) -> Result<Spool, Failed> {
    while let Some(part) = parts.recv().await {
        let part = part.map_err(|error| Failed::new(error.to_string()))?;
        if part.is_empty() {
            return Ok(spool);
        }
        spool.write_all(&part)?;
    }
    Err(Failed::new("the input ended early"))
}

/// Reads it to its end, or until nobody wants more.
fn read_all(mut input: impl Read, parts: &Sender<Part>) {
    loop {
        let mut buffer = vec![0; BUFFER];
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
