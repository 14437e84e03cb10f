//! A list that a program prints: no shell, no key of ours in its environment, and an end for it and whatever it started.

use std::io::Write as _;
use std::process::Stdio;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::Failed;
use super::spool::Spool;
use crate::manifest::ListCommand;

/// The most that is shown of what a program complained about, in bytes: its end.
const SHOWN: usize = 2_000;
/// How much is read at once.
const BUFFER: usize = 1 << 16;

pub(super) async fn fetch(wanted: &ListCommand, hidden: &[String], mut spool: Spool) -> Result<Spool, Failed> {
    let Some((program, arguments)) = wanted.words.split_first() else { return Err(Failed::new("no program is named")) };
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
        Failed::new(format!("`{program}` cannot be started: {error}")).help(help)
    });
    let mut group = Group::of(started?);
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    let (copied, complaint) = tokio::join!(copy(stdout, &mut spool), end_of(stderr));
    copied?;
    let status = group
        .child
        .wait()
        .await
        .map_err(|error| Failed::new(format!("cannot learn how `{program}` ended: {error}")))?;
    if status.success() {
        return Ok(spool);
    }
    let complaint = complaint.trim();
    Err(match complaint {
        "" => Failed::new(format!("`{program}` failed without an error message ({status})")),
        complaint => Failed::new(format!("`{program}` failed ({status}): {complaint}")),
    })
}

async fn copy(from: Option<impl AsyncRead + Unpin>, spool: &mut Spool) -> Result<(), Failed> {
    let Some(mut from) = from else { return Ok(()) };
    let mut buffer = vec![0; BUFFER];
    loop {
        let unreadable = |error| Failed::new(format!("the output of the program cannot be read: {error}"));
        match from.read(&mut buffer).await.map_err(unreadable)? {
            0 => return Ok(()),
            count => spool.write_all(&buffer[..count])?,
        }
    }
}

/// The end of what is read there, however much it is.
async fn end_of(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), vec![0; SHOWN]);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..count]);
        kept.drain(..kept.len().saturating_sub(SHOWN));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// A program and whatever it started: when nobody waits for them any more, they are ended.
struct Group {
    child: Child,
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    fn of(child: Child) -> Self {
        #[cfg(unix)]
        let leader = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        Self {
            child,
            #[cfg(unix)]
            leader,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(leader) = self.leader {
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}
