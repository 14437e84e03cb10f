//! Process setup: signals, core dumps, memory protection, resource limits and threads.
//!
//! Features that the system lacks are skipped. A command fails only if no threads or files are available.

use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::Mutex;
use std::{io, thread};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::exit::CommandFailure;
use campaign_engine::check::count_cores;
use campaign_engine::delivery::Interrupt;

/// The maximum number of threads for each core: one of the runtime, and one for the list.
const THREADS_PER_CORE: usize = 2;
/// The maximum number of further threads: for the ledger, its writer, the list and the inputs.
const EXTRA_THREADS: usize = 7;

// The numbers of the signals that interrupt a command.
#[cfg(unix)]
const SIGHUP: u8 = 1;
pub(super) const SIGINT: u8 = 2;
#[cfg(unix)]
const SIGTERM: u8 = 15;

/// Protects the memory, which contains the API key and phone numbers, from core dumps and from other processes of the
/// same user.
pub(super) fn keep_memory_private() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let no_core_files = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
        if let Err(error) = setrlimit(Resource::Core, no_core_files) {
            tracing::debug!("cannot disable core files: {error}");
        }
    }
    // The limit does not apply to a program that reads core dumps through a pipe.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::debug!("cannot protect the memory from other processes: {error}");
    }
}

/// A name that identifies this process across machines, such as `web-1, process 4711`.
pub(super) fn process_name() -> String {
    #[cfg(unix)]
    let machine = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let machine = std::env::var("COMPUTERNAME").unwrap_or_else(|_| "this machine".to_owned());
    format!("{machine}, process {}", std::process::id())
}

/// Makes a write beyond the file-size limit fail, as on a full disk, instead of killing the process.
///
/// The handler stays for the lifetime of the process. Installing the handler requires the asynchronous runtime.
pub(super) fn ignore_file_size_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
            tracing::debug!("cannot ignore SIGXFSZ: {error}");
        }
    }
}

/// Builds the asynchronous runtime of a command.
///
/// # Errors
/// If the system runs out of file handles, threads or memory. Tokio reports some of these cases with a panic, which is
/// converted into an error here.
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
    Err(CommandFailure::storage_failure(format!("the system is short of resources: {reason}; nothing was sent"))
        .with_help(help))
}

/// Checks whether the system allows `count` threads at the same time.
///
/// Tokio hangs if it can start its first thread but not its second, so the number of threads is checked in advance.
fn try_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    let closed = gate.lock();
    thread::scope(|scope| {
        // Dropping this guard opens the gate, so the threads end.
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
        // A separate process, because other tests inspect this one from outside.
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "process::tests::memory_is_private_to_the_process"]).env(ALONE, "1");
        let result = command.output().unwrap();
        let output = String::from_utf8_lossy(&result.stdout);
        assert!(result.status.success() && output.contains("1 passed"), "{output}");
    }
}

/// Listens for SIGINT, SIGTERM and SIGHUP for the rest of the process.
///
/// # Errors
/// If the system does not allow the process to listen.
#[cfg(unix)]
pub(super) fn watch_signals() -> std::io::Result<watch::Receiver<Interrupt>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    // Under `nohup`, the process keeps ignoring SIGHUP.
    let mut hangup = if is_ignored(SIGHUP) { None } else { Some(signal(SignalKind::hangup())?) };
    let (sender, receiver) = watch::channel(Interrupt::None);
    tokio::spawn(async move {
        loop {
            let number = tokio::select! {
                _ = interrupt.recv() => SIGINT,
                _ = terminate.recv() => SIGTERM,
                _ = async { match &mut hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                } } => SIGHUP,
            };
            sender.send_modify(|state| *state = next_interrupt(*state, number));
        }
    });
    Ok(receiver)
}

/// Whether the process was started with this signal ignored, if the system reports it.
#[cfg(unix)]
fn is_ignored(signal: u8) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Listens for Ctrl-C for the rest of the process.
///
/// # Errors
/// Never.
#[cfg(not(unix))]
pub(super) fn watch_signals() -> std::io::Result<watch::Receiver<Interrupt>> {
    let (sender, receiver) = watch::channel(Interrupt::None);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() {
            sender.send_modify(|state| *state = next_interrupt(*state, SIGINT));
        }
    });
    Ok(receiver)
}

/// The interrupt state after a signal. The second signal interrupts the command immediately.
fn next_interrupt(state: Interrupt, signal: u8) -> Interrupt {
    match state {
        Interrupt::None => Interrupt::Graceful(signal),
        Interrupt::Graceful(_) | Interrupt::Immediate(_) => Interrupt::Immediate(signal),
    }
}
