//! Lists from a program or from standard input. A program runs without a shell and without our keys in its environment,
//! and it is ended together with its child processes.

use std::io::{self, ErrorKind, Read, Write as _};
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::{FetchError, ListSpool, PipedInput};
use campaign_manifest::ListCommand;

/// The maximum number of bytes that are shown from the end of a program's error output.
const MAX_ERROR_OUTPUT: usize = 2_000;
/// The size of the read buffer in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// Runs the program and stores its standard output. The program does not get the variables `hidden_variables`.
pub(super) async fn fetch_from_command(
    source: &ListCommand,
    hidden_variables: &[String],
    mut spool: ListSpool,
) -> Result<ListSpool, FetchError> {
    let Some((program, arguments)) = source.words.split_first() else {
        return Err(FetchError::new("no program is specified"));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&source.folder).kill_on_drop(true);
    for name in hidden_variables {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    command.process_group(0);
    let started = command.spawn().map_err(|error| {
        let help = "write the program and each argument as a separate item; no shell is used";
        FetchError::new(format!("`{program}` cannot be started: {error}")).with_help(help)
    });
    let mut group = ProcessGroup::from_child(started?);
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    let (copied, error_output) = tokio::join!(copy_output(stdout, &mut spool), read_tail(stderr));
    copied?;
    let status = group
        .child
        .wait()
        .await
        .map_err(|error| FetchError::new(format!("cannot determine how `{program}` exited: {error}")))?;
    if status.success() {
        return Ok(spool);
    }
    let error_output = error_output.trim();
    Err(match error_output {
        "" => FetchError::new(format!("`{program}` failed without an error message ({status})")),
        error_output => FetchError::new(format!("`{program}` failed ({status}): {error_output}")),
    })
}

async fn copy_output(from: Option<impl AsyncRead + Unpin>, spool: &mut ListSpool) -> Result<(), FetchError> {
    let Some(mut from) = from else { return Ok(()) };
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let unreadable = |error| FetchError::new(format!("the program's output cannot be read: {error}"));
        match from.read(&mut buffer).await.map_err(unreadable)? {
            0 => return Ok(()),
            count => spool.write_all(&buffer[..count])?,
        }
    }
}

/// Reads a stream and returns its end.
async fn read_tail(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut tail, mut buffer) = (Vec::new(), vec![0; MAX_ERROR_OUTPUT]);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        tail.extend_from_slice(&buffer[..count]);
        tail.drain(..tail.len().saturating_sub(MAX_ERROR_OUTPUT));
    }
    String::from_utf8_lossy(&tail).into_owned()
}

/// A program with its child processes. Dropping the group kills them.
struct ProcessGroup {
    child: Child,
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl ProcessGroup {
    fn from_child(child: Child) -> Self {
        #[cfg(unix)]
        let leader = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        Self {
            child,
            #[cfg(unix)]
            leader,
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

/// The maximum number of chunks that are read ahead.
const READ_AHEAD: usize = 4;

/// A chunk of the input. An empty chunk marks the end.
type InputChunk = io::Result<Vec<u8>>;

/// Stores the piped input until its end.
pub(super) async fn fetch_from_input(piped: PipedInput, spool: ListSpool) -> Result<ListSpool, FetchError> {
    let Some(input) = piped() else {
        return Err(FetchError::new("standard input is not a pipe or a file")
            .with_help("pipe the list in, or give the path to a file"));
    };
    let (sender, receiver) = channel(READ_AHEAD);
    // A blocked read cannot be cancelled. On its own thread, the read does not delay the end of the process.
    let spawned =
        std::thread::Builder::new().name("standard input".to_owned()).spawn(move || read_chunks(input, &sender));
    spawned.map_err(|error| FetchError::new(format!("cannot start a thread: {error}")))?;
    spool_chunks(receiver, spool).await
}

async fn spool_chunks(mut chunks: Receiver<InputChunk>, mut spool: ListSpool) -> Result<ListSpool, FetchError> {
    while let Some(chunk) = chunks.recv().await {
        let chunk = chunk.map_err(|error| FetchError::new(error.to_string()))?;
        if chunk.is_empty() {
            return Ok(spool);
        }
        spool.write_all(&chunk)?;
    }
    Err(FetchError::new("the input ended early"))
}

/// Reads the input until its end or an error, or until the receiver is dropped.
fn read_chunks(mut input: impl Read, sender: &Sender<InputChunk>) {
    loop {
        let mut buffer = vec![0; BUFFER_BYTES];
        let chunk = match input.read(&mut buffer) {
            Ok(count) => {
                buffer.truncate(count);
                Ok(buffer)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = chunk.as_ref().map_or(true, Vec::is_empty);
        if sender.blocking_send(chunk).is_err() || is_last {
            return;
        }
    }
}
