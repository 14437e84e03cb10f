//! What serves the shell and the editor: refusals of the command line, the log, completions, the schema.

use std::io::IsTerminal as _;

use clap::CommandFactory as _;
use tracing_subscriber::filter::LevelFilter;

use super::args::{Arguments, Global};
use super::context::Context;
use super::exit;
use super::output::is_unwritten;

/// Says why the command line cannot be understood, or prints the help that was asked for.
pub(super) fn refuse(error: &clap::Error, json: bool) -> u8 {
    if !error.use_stderr() {
        return if is_unwritten(error.print()) { exit::STORAGE } else { exit::FINE };
    }
    if json {
        let message = error.render().to_string();
        let object = serde_json::json!({ "exit": exit::WRONG, "error": message.trim() });
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), "{object}");
    } else {
        let _ = error.print();
    }
    exit::WRONG
}

/// Logs to standard error as much as was asked for; what a person has to know is told without being asked for.
pub(super) fn start_log(global: &Global) {
    let level = match global.verbose {
        0 if global.quiet => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Only our own events: libraries may log what they send.
    let filter = tracing_subscriber::filter::Targets::new().with_target("campaign", level);
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let format =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let registry = tracing_subscriber::registry().with(filter);
    let _ = if global.verbose == 0 {
        registry.with(format.without_time().with_target(false)).try_init()
    } else {
        registry.with(format).try_init()
    };
}

/// Prints the JSON Schema of campaign files.
pub(super) fn schema(context: &Context) -> u8 {
    context.output.verbatim(&format!("{:#}\n", crate::manifest::schema()));
    exit::FINE
}

/// Prints completions for a shell.
pub(super) fn completions(context: &Context, shell: clap_complete::Shell) -> u8 {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "campaign", &mut script);
    context.output.verbatim(&String::from_utf8_lossy(&script));
    exit::FINE
}
