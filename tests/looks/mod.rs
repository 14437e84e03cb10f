//! What commands print on a terminal of 80 and of 120 columns, with and without colour: a snapshot for each.
//!
//! After a change of words, review the difference and accept it: `INSTA_UPDATE=always cargo test --test stories looks`.

mod help;
mod screen;
mod sending;
mod tending;
mod winter;
mod writing;

use std::process::Command;
use std::sync::OnceLock;

use insta::Settings;
use regex::Regex;
use screen::screen;

use crate::support::{Folder, Terminal, in_files};

/// What a person does after a question appears: what the terminal shows, and the line that is typed then.
type Typed<'t> = &'t [(&'t str, &'t str)];

/// Compares what a command prints with its snapshot. Each run of the command has a folder of its own.
fn compare(name: &str, folder: impl Fn() -> Folder, arguments: &[&str]) {
    compare_typed(name, folder, arguments, &[]);
}

/// The same of a command that asks.
fn compare_typed(name: &str, folder: impl Fn() -> Folder, arguments: &[&str], typed: Typed<'_>) {
    let _files = in_files();
    let run = |columns: u16, environment: (&str, &str)| {
        let folder = folder();
        let mut command = folder.command(arguments);
        command.env("TZ", "Europe/Kyiv").env(environment.0, environment.1);
        let shown = shown(command, columns, typed);
        move |named| steady(&screen(&shown, columns, named), &folder)
    };
    let coloured = run(80, ("CLICOLOR_FORCE", "1"));
    let (narrow, wide) = (run(80, ("NO_COLOR", "1")), run(120, ("NO_COLOR", "1")));
    assert_eq!(coloured(false), narrow(false), "colours change no word");
    assert_eq!(narrow(true), narrow(false), "`NO_COLOR` leaves no colour");
    let (narrow, wide) = (narrow(false), wide(false));
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

/// Everything that a command writes on a terminal of so many columns.
fn shown(command: Command, columns: u16, typed: Typed<'_>) -> String {
    let terminal = Terminal::start_on(columns, command);
    for (question, answer) in typed {
        terminal.shows(question).types(answer);
    }
    terminal.finish_shown().1
}

/// The text without what differs between two runs: moments, lengths of time, ports, speeds and the folder.
fn steady(text: &str, folder: &Folder) -> String {
    static CHANGING: OnceLock<Vec<(Regex, &str)>> = OnceLock::new();
    let changing = CHANGING.get_or_init(|| {
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
    changing.iter().fold(text, |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
}
