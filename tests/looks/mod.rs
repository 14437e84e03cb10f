//! Snapshots of command output on terminals of 80 and 120 columns, with and without colour.
//!
//! After a text change, review the difference and accept it: `INSTA_UPDATE=always cargo test --test stories looks`.

mod administration;
mod help;
pub(crate) mod screen;
mod sending;
mod winter_sale;
mod writing;

use std::process::Command;
use std::sync::OnceLock;

use insta::Settings;
#[cfg(target_os = "linux")]
use jiff::Timestamp;
use regex::Regex;
use screen::screen;

#[cfg(target_os = "linux")]
use crate::support::Clock;
use crate::support::{Folder, Terminal, in_files};

/// The operator's input: each text to wait for on the terminal, and the line to type then.
type TerminalInput<'t> = &'t [(&'t str, &'t str)];

/// Compares the output of a command with its snapshot. Each run of the command gets a new folder.
fn compare(name: &str, folder: impl Fn() -> Folder, arguments: &[&str]) {
    compare_with_input(name, folder, arguments, &[]);
}

/// Compares the output of an interactive command with its snapshot.
fn compare_with_input(name: &str, folder: impl Fn() -> Folder, arguments: &[&str], typed: TerminalInput<'_>) {
    let _files = in_files();
    #[cfg(target_os = "linux")]
    let clock = Clock::new();
    let run = |columns: u16, environment: (&str, &str)| {
        let folder = folder();
        let mut command = folder.command(arguments);
        command.env("TZ", "Europe/Kyiv").env(environment.0, environment.1);
        #[cfg(target_os = "linux")]
        clock.set_for(&mut command, noon_in_kyiv());
        let output = capture_output(command, columns, typed);
        move |show_styles| mask_varying(&screen(&output, columns, show_styles), &folder)
    };
    let coloured = run(80, ("CLICOLOR_FORCE", "1"));
    let (narrow, wide) = (run(80, ("NO_COLOR", "1")), run(120, ("NO_COLOR", "1")));
    let (styled, narrow, wide) = (narrow(true), narrow(false), wide(false));
    assert_eq!(coloured(false), narrow, "colours do not change the text");
    assert_eq!(styled, narrow, "`NO_COLOR` removes all colours");
    let wide = if wide == narrow { "the same".to_owned() } else { wide };
    let command = arguments.join(" ");
    let text = format!(
        "$ campaign {command}\n{narrow}\n\n--- at 120 columns\n{wide}\n\n--- with colours\n{}\n",
        coloured(true)
    );
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Noon today in Kyiv. At night, the output would contain another warning.
#[cfg(target_os = "linux")]
fn noon_in_kyiv() -> Timestamp {
    let today = Timestamp::now().in_tz("Europe/Kyiv").expect("a time zone").date();
    today.at(12, 0, 0, 0).in_tz("Europe/Kyiv").expect("an existing time").timestamp()
}

/// The output of a command on a terminal of this width.
fn capture_output(command: Command, columns: u16, typed: TerminalInput<'_>) -> String {
    let terminal = Terminal::start_on(columns, command);
    for (question, answer) in typed {
        terminal.shows(question).types(answer);
    }
    terminal.finish_with_output().1
}

/// Masks the parts that differ between two runs: times, durations, ports, digests, identifiers and the folder.
fn mask_varying(text: &str, folder: &Folder) -> String {
    static VARYING: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
    let varying = VARYING.get_or_init(|| {
        let patterns = [
            (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?Z?", "[moment]"),
            (r"\d{4}-\d\d-\d\d", "[date]"),
            (r"\w{3} \d{1,2} \w{3} \d{4}, \d\d:\d\d", "[day]"),
            (r"local time(›?) {3}.*", "local time$1   [time]"),
            (r"(?m)(^| )\d\d:\d\d(:\d\d)?\b", "$1[time]"),
            (r"\b\d+(\.\d+)? (ms|s)\b", "[duration]"),
            (r"127\.0\.0\.1:\d+", "127.0.0.1:[port]"),
            (r"\b[0-9a-f]{13,64}\b", "[digest]"),
            (r"\b\d{15,20}\b", "[id]"),
        ];
        patterns.map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name)).to_vec()
    });
    let folder = folder.path("").display().to_string();
    let text = text.replace(folder.trim_end_matches('/'), "[folder]");
    varying.iter().fold(text, |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
}
