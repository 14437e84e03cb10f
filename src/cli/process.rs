//! What the process arranges with the system before it does anything.
//!
//! Nothing here fails a command: a system that knows no such thing goes without it.

/// Lets no core file, and no other process of the same user, get at the memory: the key and people's numbers are in it.
pub(super) fn keep_memory_private() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let none = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
        if let Err(error) = setrlimit(Resource::Core, none) {
            tracing::debug!("core files cannot be switched off: {error}");
        }
    }
    // A program that takes core files through a pipe is given them whatever the limit.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable) {
        tracing::debug!("the memory cannot be closed to others: {error}");
    }
}

/// Has a write beyond the limit on the size of files fail, as on a full disk, instead of ending the process.
///
/// The handler stays for the rest of the process, whoever listens. It needs the runtime.
pub(super) fn outlive_full_files() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
            tracing::debug!("SIGXFSZ is left as it is: {error}");
        }
    }
}
