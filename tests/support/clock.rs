//! A process whose clock shows another time than that of the system, so that nobody waits for the time to come.

use std::process::Command;
use std::time::SystemTime;

use jiff::Timestamp;
use tempfile::TempDir;

/// Clocks of processes that can be set.
pub(crate) struct Clock(TempDir);

impl Clock {
    /// Builds what stands between a process and the system's clock.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/clock.c");
        let library = folder.path().join("clock.so");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]).status();
        assert!(built.is_ok_and(|status| status.success()), "`cc`, which links this test, cannot build {source}");
        Self(folder)
    }

    /// What a shell does before a process that shows `moment` when it starts.
    pub(crate) fn set_to(&self, moment: Timestamp) -> String {
        format!("export LD_PRELOAD='{}' CLOCK_AHEAD={}", self.library(), seconds_until(moment))
    }

    /// What a shell does before a process whose clock goes right until it is [moved](Self::move_on).
    pub(crate) fn movable(&self) -> String {
        format!("export LD_PRELOAD='{}' CLOCK_FILE='{}'", self.library(), self.ahead().display())
    }

    /// Has the clock of processes that run show this moment.
    pub(crate) fn move_to(&self, moment: Timestamp) {
        self.put_ahead(seconds_until(moment));
    }

    /// Has so many seconds go by on the clock of processes that run: as when their machine slept.
    pub(crate) fn move_on(&self, seconds: u32) {
        self.put_ahead(seconds.into());
    }

    fn put_ahead(&self, seconds: i64) {
        // Never read in the middle of being written.
        let written = self.0.path().join("written");
        std::fs::write(&written, seconds.to_string()).expect("a file");
        std::fs::rename(written, self.ahead()).expect("a file");
    }

    fn library(&self) -> String {
        self.0.path().join("clock.so").display().to_string()
    }

    fn ahead(&self) -> std::path::PathBuf {
        self.0.path().join("ahead")
    }
}

/// By how many seconds a clock is ahead that shows this moment.
fn seconds_until(moment: Timestamp) -> i64 {
    let now = Timestamp::try_from(SystemTime::now()).expect("a moment");
    moment.as_second() - now.as_second()
}
