//! A terminal with a process on it: what it shows, and what a person types.

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

/// A terminal, and the process that a test started on it.
pub(crate) struct Terminal {
    process: Process,
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Terminal {
    /// Starts the binary on a terminal of its own, of 100 columns.
    pub(crate) fn start(command: Command) -> Self {
        Self::start_on(100, command)
    }

    /// Starts the binary on a terminal of its own, of so many columns.
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
        let (mut shown, kept) = (keyboard.try_clone().expect("a second handle"), Arc::clone(&screen));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It cannot be read any more when the process has ended.
            while let Ok(length @ 1..) = shown.read(&mut bytes) {
                kept.lock().expect("the screen").extend_from_slice(&bytes[..length]);
            }
        });
        Self { process, keyboard, screen, reader }
    }

    /// Everything that was written on it so far, with what moves the cursor and with colours.
    pub(crate) fn coloured(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("the screen")).into_owned()
    }

    /// Everything that was written on it so far, with what moves the cursor and without colours.
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

    /// Waits until these words stand on it, on whatever lines.
    pub(crate) fn shows(&self, words: &str) -> &Self {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        until(&format!("the terminal shows `{words}`"), || {
            let shown = self.shown();
            shown.contains(words) || flat(&shown).contains(&flat(words))
        });
        self
    }

    /// Types a line.
    pub(crate) fn types(&self, line: &str) {
        writeln!(&self.keyboard, "{line}").expect("the keyboard");
    }

    /// Sends the process a signal such as `INT`.
    pub(crate) fn signal(&mut self, name: &str) {
        self.process.signal(name);
    }

    /// Waits for the end of the process, and gives everything that was written, with what moves the cursor.
    pub(crate) fn finish_shown(self) -> (Finished, String) {
        let Self { process, keyboard, screen, reader } = self;
        let finished = process.finish();
        // It ends once nobody has the other end open.
        reader.join().expect("the reader of the screen");
        drop(keyboard);
        let bytes = screen.lock().expect("the screen").clone();
        (finished, String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Finished {
        self.process.finish()
    }
}
