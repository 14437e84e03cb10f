//! The `campaign` program with failpoints, for tests. At the chosen failpoint, the process aborts, panics, blocks or
//! suspends itself.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use campaign_core::failpoint;

/// The environment variable of the failpoint: `name:count`, with an optional action after another colon: `panic`,
/// `stay`, which blocks for ever, or `sleep`, which suspends the whole process until a test wakes it.
const VARIABLE: &str = "CAMPAIGN_FAILPOINT";

/// The environment variable with the folder of the system ledger.
const SYSTEM_FOLDER: &str = "CAMPAIGN_SYSTEM_FOLDER";

/// The maximum time until the suspension takes effect, even on a busy machine.
#[cfg(unix)]
const SUSPEND_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);

/// The failpoint of this process, if it has one.
static ARMED: OnceLock<ArmedFailpoint> = OnceLock::new();

struct ArmedFailpoint {
    name: String,
    /// The pass at which the failpoint goes off; the first is 1.
    at: u32,
    passes: AtomicU32,
    /// What the failpoint does instead of aborting the process.
    action: Option<String>,
}

impl ArmedFailpoint {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let name = parts.next()?.to_owned();
        let at = parts.next()?.parse().ok()?;
        Some(Self { name, at, passes: AtomicU32::new(0), action: parts.next().map(str::to_owned) })
    }
}

fn main() -> ExitCode {
    if let Some(armed) = std::env::var(VARIABLE).ok().as_deref().and_then(ArmedFailpoint::parse) {
        ARMED.get_or_init(|| armed);
        failpoint::set_action(pass_failpoint);
    }
    // The help shows the name of the real program instead of this test binary.
    let arguments = std::iter::once("campaign".into()).chain(std::env::args_os().skip(1));
    // No test uses the system ledger of this machine.
    let system_folder = std::env::var_os(SYSTEM_FOLDER).unwrap_or_else(|| "/nonexistent/campaign".into());
    ExitCode::from(campaign::main_with_system_folder(arguments, Path::new(&system_folder)))
}

/// Performs the action of the armed failpoint. An abort acts like SIGKILL: nothing is flushed, closed or cleaned up.
fn pass_failpoint(name: &str) {
    let Some(armed) = ARMED.get().filter(|armed| armed.name == name) else { return };
    if armed.passes.fetch_add(1, Ordering::SeqCst) + 1 != armed.at {
        return;
    }
    // Tests look for this line to know that the failpoint went off. The write error of a closed pipe is ignored.
    let _ = writeln!(std::io::stderr(), "failpoint {name} went off");
    match armed.action.as_deref() {
        Some("panic") => panic!("failpoint {name}"),
        Some("stay") => loop {
            std::thread::park();
        },
        #[cfg(unix)]
        Some("sleep") => {
            use rustix::process::{Signal, getpid, kill_process};

            let _ = kill_process(getpid(), Signal::STOP);
            // Another thread might receive the signal first, so this one continues until it is stopped too. The sleep
            // elapses during the suspension, so this thread continues as soon as the process resumes.
            std::thread::sleep(SUSPEND_LIMIT);
        }
        _ => std::process::abort(),
    }
}
