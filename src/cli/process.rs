//! Settings of the process: core files, memory protection, limits and threads.
//!
//! A system without one of these is accepted. Only a system without free threads or files fails a command.

use std::io;
use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::Mutex;
use std::thread;

use tokio::runtime::{Builder, Runtime};

use super::failure::CommandFailure;
use crate::check::count_cores;

/// The most threads that a command has at the same time for each core: one of the runtime, one for the list.
const THREADS_PER_CORE: usize = 2;
/// The most further threads that a command has at the same time: for the ledger, what writes it, its list and its inputs.
const EXTRA_THREADS: usize = 7;

/// Lets no core file, and no other process of the same user, get at the memory: the key and people's numbers are in it.
pub(super) fn keep_memory_private() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let none = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
        if let Err(error) = setrlimit(Resource::Core, none) {
            tracing::debug!("cannot disable core files: {error}");
        }
    }
    // A program that takes core files through a pipe is given them whatever the limit.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::debug!("cannot protect the memory from other processes: {error}");
    }
}

/// How people know this process among those of several machines: `web-1, process 4711`.
pub(super) fn process_name() -> String {
    #[cfg(unix)]
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let machine = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "this machine".to_owned());
    format!("{machine}, process {}", std::process::id())
}

/// Has a write beyond the limit on the size of files fail, as on a full disk, instead of ending the process.
///
/// The handler stays for the rest of the process, whoever listens. It needs the runtime.
pub(super) fn ignore_file_size_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
            tracing::debug!("cannot ignore SIGXFSZ: {error}");
        }
    }
}

/// The threads that a command runs on.
///
/// # Errors
/// When the system has too few open files, threads or memory for them. The library tells of some of that by a panic,
/// which is no bug here, and is told as what it is.
pub(super) fn build_runtime() -> Result<Runtime, CommandFailure> {
    let reason = match try_threads(count_cores() * THREADS_PER_CORE + EXTRA_THREADS) {
        Err(error) => format!("cannot start a new thread: {error}"),
        Ok(()) => {
            let hook = take_hook();
            set_hook(Box::new(|_| {}));
            let built = catch_unwind(|| Builder::new_multi_thread().enable_all().build());
            set_hook(hook);
            match built {
                Ok(Ok(runtime)) => return Ok(runtime),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "not enough file handles, threads or memory".to_owned(),
            }
        }
    };
    let help = "raise the limits that `ulimit -a` shows, then run the same command again";
    Err(CommandFailure::storage_failure(format!("the system has too few resources: {reason}; nothing was sent"))
        .with_help(help))
}

/// Whether the system lets the program have so many threads at the same time.
///
/// The library waits for ever when it gets its first thread and not its second, so that this is known beforehand.
fn try_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    let closed = gate.lock();
    thread::scope(|scope| {
        // Opened at the end, whatever it is, and then they are through.
        let _closed = closed;
        (0..count).try_for_each(|_| thread::Builder::new().spawn_scoped(scope, || drop(gate.lock())).map(drop))
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use rustix::process::{DumpableBehavior, dumpable_behavior};

    use super::*;

    #[test]
    fn memory_is_private_to_the_process() {
        const ALONE: &str = "CAMPAIGN_TEST_ALONE";
        if std::env::var_os(ALONE).is_some() {
            assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::Dumpable);
            keep_memory_private();
            assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
            return;
        }
        // In a process of its own: other tests here look at themselves from outside.
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "cli::process::tests::memory_is_private_to_the_process"]).env(ALONE, "1");
        let ended = alone.output().unwrap();
        let told = String::from_utf8_lossy(&ended.stdout);
        assert!(ended.status.success() && told.contains("1 passed"), "{told}");
    }
}
