//! A pseudo-terminal that runs a process: what it displays, and the input typed into it.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::process::{Finished, Process};
use super::wait::until;

/// A terminal and the process that runs on it.
pub(crate) struct Terminal {
    process: Process,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// Starts the command on a terminal with 100 columns.
    pub(crate) fn start(command: Command) -> Self {
        Self::start_on(100, command)
    }

    /// Starts the command on a terminal with this number of columns.
    pub(crate) fn start_on(columns: u16, mut command: Command) -> Self {
        command.env("TERM", "xterm");
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keyboard).and_then(|()| unlockpt(&keyboard)).expect("a terminal");
        let size = Winsize { ws_row: 30, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&keyboard, size).expect("a terminal with a size");
        let name = ptsname(&keyboard, Vec::new()).expect("its name");
        let name = OsStr::from_bytes(name.as_bytes());
        let other_end = || OpenOptions::new().read(true).write(true).open(name).expect("its other end");
        let process = Process::start_on(command, [other_end(), other_end(), other_end()]);
        let keyboard = File::from(keyboard);
        let screen = Arc::<Mutex<Vec<u8>>>::default();
        let (mut shown, output) = (keyboard.try_clone().expect("a second handle"), Arc::clone(&screen));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when the process has ended.
            while let Ok(length @ 1..) = shown.read(&mut bytes) {
                output.lock().expect("the screen").extend_from_slice(&bytes[..length]);
            }
        });
        Self { process, keyboard, screen, reader }
    }

    /// The output so far, with cursor movements and colours.
    pub(crate) fn coloured(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("the screen")).into_owned()
    }

    /// The output so far, with cursor movements and without colours.
    pub(crate) fn shown(&self) -> String {
        let coloured = self.coloured();
        let mut parts = coloured.split("\u{1b}[");
        let mut shown = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let code = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
            match code.strip_prefix('m') {
                Some(text) => shown += text,
                None => shown.extend(["\u{1b}[", part]),
            }
        }
        shown
    }

    /// Waits until the terminal displays this text, on any number of lines.
    pub(crate) fn shows(&self, text: &str) -> &Self {
        let flatten = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        until(&format!("the terminal shows `{text}`"), || {
            let shown = self.shown();
            shown.contains(text) || flatten(&shown).contains(&flatten(text))
        });
        self
    }

    /// Types a line and presses Enter.
    pub(crate) fn types(&self, line: &str) {
        writeln!(&self.keyboard, "{line}").expect("the keyboard");
    }

    /// Sends a signal such as `INT` to the process.
    pub(crate) fn signal(&mut self, name: &str) {
        self.process.signal(name);
    }

    /// Waits until the process ends; also returns the complete output with cursor movements and colours.
    pub(crate) fn finish_with_output(self) -> (Finished, String) {
        let Self { process, keyboard, screen, reader } = self;
        let finished = process.finish();
        // The reader ends when the other end is closed.
        reader.join().expect("the reader of the screen");
        drop(keyboard);
        let bytes = screen.lock().expect("the screen").clone();
        (finished, String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits until the process ends.
    pub(crate) fn finish(self) -> Finished {
        self.process.finish()
    }
}
