//! Failpoints: places at which a test kills or suspends the process.
//!
//! They exist only with the feature `failpoints`, which only the tests of this crate enable: in other builds [`pass`]
//! is empty. A failpoint ends or suspends the process, or does nothing; it must not decide anything else.

#[cfg(feature = "failpoints")]
pub(crate) use armed::pass;

/// The process passes the place with this name.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) fn pass(_: &str) {}

#[cfg(feature = "failpoints")]
mod armed {
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The environment variable of the failpoint: `name:count`, with an optional action after another colon: `panic`,
    /// `stay`, which blocks for ever, or `sleep`, which suspends the whole process until a test wakes it.
    const VARIABLE: &str = "CAMPAIGN_FAILPOINT";

    /// The time within which the suspension takes effect, even on a busy machine.
    #[cfg(unix)]
    const SUSPEND_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);

    /// The failpoint of this process, if it has one.
    static ARMED: OnceLock<Option<ArmedFailpoint>> = OnceLock::new();

    struct ArmedFailpoint {
        name: String,
        /// The pass at which it goes off; the first is 1.
        at: u32,
        passes: AtomicU32,
        otherwise: Option<String>,
    }

    impl ArmedFailpoint {
        fn parse(text: &str) -> Option<Self> {
            let mut parts = text.split(':');
            let name = parts.next()?.to_owned();
            let at = parts.next()?.parse().ok()?;
            Some(Self { name, at, passes: AtomicU32::new(0), otherwise: parts.next().map(str::to_owned) })
        }
    }

    /// The process passes the place with this name, and dies there if it is armed: as by SIGKILL, nothing is flushed,
    /// closed or cleaned up.
    pub(crate) fn pass(name: &str) {
        let armed = ARMED.get_or_init(|| ArmedFailpoint::parse(&std::env::var(VARIABLE).ok()?));
        let Some(armed) = armed.as_ref().filter(|armed| armed.name == name) else { return };
        if armed.passes.fetch_add(1, Ordering::SeqCst) + 1 != armed.at {
            return;
        }
        // A test recognizes by this line that the process died here. A closed pipe changes nothing.
        let _ = writeln!(std::io::stderr(), "failpoint {name} went off");
        match armed.otherwise.as_deref() {
            Some("panic") => panic!("failpoint {name}"),
            Some("stay") => loop {
                std::thread::park();
            },
            #[cfg(unix)]
            Some("sleep") => {
                use rustix::process::{Signal, getpid, kill_process};

                let _ = kill_process(getpid(), Signal::STOP);
                // The signal reaches another thread first, and this one continues until it is stopped too. Its sleep
                // ends during the suspension, so that it continues at once after it is woken.
                std::thread::sleep(SUSPEND_LIMIT);
            }
            _ => std::process::abort(),
        }
    }
}
