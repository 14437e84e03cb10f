//! A list that a program prints: no shell, no key of ours in its environment, and an end for it and whatever it started.

use std::io::Write as _;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::FetchError;
use super::spool::ListSpool;
use crate::manifest::ListCommand;

/// The most that is shown of what a program complained about, in bytes: its end.
const MAX_COMPLAINT: usize = 2_000;
/// How much is read at once.
const BUFFER_BYTES: usize = 1 << 16;

pub(super) async fn fetch_from_command(
    wanted: &ListCommand,
    hidden: &[String],
    mut spool: ListSpool,
) -> Result<ListSpool, FetchError> {
    let Some((program, arguments)) = wanted.words.split_first() else {
        return Err(FetchError::new("no program is named"));
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&wanted.folder).kill_on_drop(true);
    for name in hidden {
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
    let (copied, complaint) = tokio::join!(copy_output(stdout, &mut spool), read_tail(stderr));
    copied?;
    let status = group
        .child
        .wait()
        .await
        .map_err(|error| FetchError::new(format!("cannot learn how `{program}` ended: {error}")))?;
    if status.success() {
        return Ok(spool);
    }
    let complaint = complaint.trim();
    Err(match complaint {
        "" => FetchError::new(format!("`{program}` failed without an error message ({status})")),
        complaint => FetchError::new(format!("`{program}` failed ({status}): {complaint}")),
    })
}

async fn copy_output(from: Option<impl AsyncRead + Unpin>, spool: &mut ListSpool) -> Result<(), FetchError> {
    let Some(mut from) = from else { return Ok(()) };
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let unreadable = |error| FetchError::new(format!("the output of the program cannot be read: {error}"));
        match from.read(&mut buffer).await.map_err(unreadable)? {
            0 => return Ok(()),
            count => spool.write_all(&buffer[..count])?,
        }
    }
}

/// The end of what is read there, however much it is.
async fn read_tail(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), vec![0; MAX_COMPLAINT]);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..count]);
        kept.drain(..kept.len().saturating_sub(MAX_COMPLAINT));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// A program and whatever it started: when nobody waits for them any more, they are ended.
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
