//! What serves the shell and the editor: refusals of the command line, the log, schemas.

use std::ffi::OsString;

use clap::{ColorChoice, Command};
use serde_json::{Value, json};
use tracing_subscriber::filter::{LevelFilter, Targets};

use super::args::{GlobalOptions, SchemaOf};
use super::context::Context;
use super::exit;
use super::live_line::LogWriter;
use super::output::{error_has_colours, report_unwritten};
use crate::{manifest, sandbox};

/// Says why the command line cannot be understood, or prints the help that was asked for.
pub(super) fn print_usage_error(error: &clap::Error, json: bool) -> u8 {
    if !error.use_stderr() {
        return if report_unwritten(error.print()) { exit::STORAGE } else { exit::SUCCESS };
    }
    if json {
        let object = usage_error_json(&error.render().to_string());
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout().lock(), "{object}");
    } else {
        let _ = error.print();
    }
    exit::INVALID
}

/// A refusal of the command line as an object: its message, and its tip as help. People get the usage too.
fn usage_error_json(rendered: &str) -> Value {
    let line = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut parts = rendered.trim().split("\n\n");
    let message = line(parts.next().unwrap_or_default());
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let mut object = json!({ "exit": exit::INVALID, "error": message });
    if let Some(tip) = parts.find_map(|part| part.trim_start().strip_prefix("tip: ").map(line)) {
        object["help"] = tip.into();
    }
    object
}

/// A command line whose help and errors have colours as `--color` among these arguments says.
pub(super) fn with_chosen_colors(command: Command, arguments: &[OsString]) -> Command {
    with_color(command, color_of_help(arguments))
}

/// Each command has its own setting, because the command line was built before.
fn with_color(command: Command, choice: ColorChoice) -> Command {
    command.color(choice).mut_subcommands(|inner| with_color(inner, choice))
}

/// The value of `--color`, before the other arguments are parsed.
fn color_of_help(arguments: &[OsString]) -> ColorChoice {
    let given = |at: usize| match arguments[at].to_str()? {
        "--color" => arguments.get(at + 1)?.to_str(),
        argument => argument.strip_prefix("--color="),
    };
    match (0..arguments.len()).find_map(given) {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// The filter of the log: what `RUST_LOG` says of this program, else as much as `-v` was said.
///
/// Only our own events: libraries may log what they send.
fn log_filter(global: &GlobalOptions, variable: Option<&str>) -> Targets {
    const OURS: &str = "campaign";
    let named: Targets = variable.and_then(|directives| directives.parse().ok()).unwrap_or_default();
    let within = |target: &str| target == OURS || target.starts_with("campaign::");
    let whole = named.default_level().map(|level| (OURS.to_owned(), level));
    let ours = named.iter().filter(|(target, _)| within(target)).map(|(target, level)| (target.to_owned(), level));
    let ours: Vec<(String, LevelFilter)> = whole.into_iter().chain(ours).collect();
    if !ours.is_empty() {
        return Targets::new().with_targets(ours);
    }
    Targets::new().with_target(OURS, log_level(global))
}

fn log_level(global: &GlobalOptions) -> LevelFilter {
    match global.verbose {
        0 if global.quiet => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

/// Logs to standard error as much as was asked for; what a person has to know is told without being asked for.
pub(super) fn start_log(global: &GlobalOptions) {
    // An empty variable counts as not set.
    let variable = std::env::var("RUST_LOG").ok().filter(|directives| !directives.trim().is_empty());
    let filter = log_filter(global, variable.as_deref());
    let detailed = global.verbose > 0 || variable.is_some();
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let format = tracing_subscriber::fmt::layer().with_writer(|| LogWriter).with_ansi(error_has_colours(global.color));
    let registry = tracing_subscriber::registry().with(filter);
    let _ = if !detailed {
        registry.with(format.without_time().with_target(false)).try_init()
    } else {
        registry.with(format).try_init()
    };
}

/// Prints the JSON Schema of files.
pub(super) fn print_schema(context: &Context, of: SchemaOf) -> u8 {
    let schema = match of {
        SchemaOf::Campaign => manifest::campaign_schema(),
        SchemaOf::Gateways => manifest::gateways_schema(),
        SchemaOf::Scenario => sandbox::scenario_schema(),
    };
    context.output.print_verbatim(&format!("{schema:#}\n"));
    exit::SUCCESS
}
