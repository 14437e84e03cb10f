//! Places on the way of a message at which a test has the process die, or stand still.
//!
//! They exist only with the feature `failpoints`, which nothing but the tests of this crate switches on: in any
//! other build [`pass`] is empty. A failpoint ends or suspends the process, or does nothing; it must not decide anything
//! else.

#[cfg(feature = "failpoints")]
pub(crate) use armed::pass;

/// The process comes by the place of that name.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) fn pass(_: &str) {}

#[cfg(feature = "failpoints")]
mod armed {
    use std::io::Write as _;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// The environment variable that arms one: `name:count`; behind another colon what is done instead of dying:
    /// `panic`, `stay`, which is to stand there for ever, or `sleep`, which is to be suspended with the whole process until
    /// somebody wakes it.
    const VARIABLE: &str = "CAMPAIGN_FAILPOINT";

    /// By then a process is suspended that asked to be, however busy its machine is.
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

    /// The process comes by the place of that name, and dies there if it is told to: as by SIGKILL, nothing is
    /// flushed, closed or put in order.
    pub(crate) fn pass(name: &str) {
        let armed = ARMED.get_or_init(|| ArmedFailpoint::parse(&std::env::var(VARIABLE).ok()?));
        let Some(armed) = armed.as_ref().filter(|armed| armed.name == name) else { return };
        if armed.passes.fetch_add(1, Ordering::SeqCst) + 1 != armed.at {
            return;
        }
        // A test tells by this line that it died here; a reader that is gone changes nothing.
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
                // The system tells another thread first, and this one runs on until it is stopped too. What it measures
                // goes by while it is suspended, so that it goes on at once when it is woken.
                std::thread::sleep(SUSPEND_LIMIT);
            }
            _ => std::process::abort(),
        }
    }
}
