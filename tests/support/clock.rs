//! Processes with a shifted system clock, so that no story has to wait for real time to pass.

use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

use jiff::Timestamp;
use tempfile::TempDir;

/// An adjustable system clock for processes.
pub(crate) struct Clock(TempDir);

impl Clock {
    pub(crate) fn new() -> Self {
        static LIBRARY: LazyLock<Vec<u8>> = LazyLock::new(build_library);
        let clock = Self(tempfile::tempdir().expect("a folder"));
        std::fs::write(clock.library(), &*LIBRARY).expect("a file");
        clock
    }

    /// The shell command that makes a process start with its clock at `moment`.
    pub(crate) fn set_to(&self, moment: Timestamp) -> String {
        format!("export LD_PRELOAD='{}' CLOCK_AHEAD={}", self.library(), offset_to(moment))
    }

    /// Makes a command start with its clock at `moment`.
    pub(crate) fn set_for(&self, command: &mut Command, moment: Timestamp) {
        command.env("LD_PRELOAD", self.library()).env("CLOCK_AHEAD", offset_to(moment).to_string());
    }

    /// The shell command that makes a process start with the right time and a clock that can [advance](Self::advance).
    pub(crate) fn adjustable(&self) -> String {
        format!("export LD_PRELOAD='{}' CLOCK_FILE='{}'", self.library(), self.offset_file().display())
    }

    /// Moves the clock of running processes to this moment.
    pub(crate) fn move_to(&self, moment: Timestamp) {
        self.write_offset(offset_to(moment));
    }

    /// Moves the clock of running processes forward, as if their machine had slept.
    pub(crate) fn advance(&self, seconds: u32) {
        self.write_offset(seconds.into());
    }

    fn write_offset(&self, seconds: i64) {
        // Rename, so that no process reads a half-written file.
        let new_file = self.0.path().join("written");
        std::fs::write(&new_file, seconds.to_string()).expect("a file");
        std::fs::rename(new_file, self.offset_file()).expect("a file");
    }

    fn library(&self) -> String {
        self.0.path().join("clock.so").display().to_string()
    }

    fn offset_file(&self) -> std::path::PathBuf {
        self.0.path().join("ahead")
    }
}

/// Builds the library that shifts the clock (`clock.c`), and returns its bytes.
fn build_library() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/clock.c");
    let library = folder.path().join("clock.so");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).args([source, "-ldl"]).status();
    assert!(built.is_ok_and(|status| status.success()), "`cc`, which links this test, cannot build {source}");
    std::fs::read(library).expect("a file")
}

/// The offset of a clock that shows `moment` now.
fn offset_to(moment: Timestamp) -> i64 {
    let now = Timestamp::try_from(SystemTime::now()).expect("a moment");
    moment.as_second() - now.as_second()
}
