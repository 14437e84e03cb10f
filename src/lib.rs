//! The command line of `campaign`, a declarative campaign runner for a multi-channel messaging gateway: it parses
//! arguments, prints output and sets exit codes. There is one file for each command or command family.
//!
//! A campaign file names recipients, channels and texts. Each recipient becomes one operation; operations travel in
//! envelopes. An intent is on disk before an envelope is sent, and its outcome after the response. An outcome counts as
//! accepted, rejected or not sent only if that is proven. Everything else is in doubt and is never sent again
//! automatically.
//!
//! Only this crate combines the concrete ledger, gateway and clock. The crates below it, from the surfaces to the
//! foundation:
//!
//! | crate | purpose |
//! |---|---|
//! | [`campaign_server`] | the servers: receipts, dashboard, metrics, scheduler, tools for AI assistants |
//! | [`campaign_editor`] | language features that `campaign lsp` offers: findings, explanations, completions |
//! | [`campaign_runs`] | runs for every surface: a request goes in, events and an outcome come out |
//! | [`campaign_engine`] | the survey before sending, the sending engine, projections of the ledger |
//! | [`campaign_sandbox`] | the emulated gateway; shares only the vocabulary with the client |
//! | [`campaign_manifest`] [`campaign_content`] | campaign files and profiles; lists and texts |
//! | [`campaign_gateway`] [`campaign_ledger`] | the port to the gateway; the durable record |
//! | [`campaign_core`] [`campaign_net`] | vocabulary, calendar, findings, files; servers, HTTP client, counters |

mod args;
mod campaign_tests;
mod check;
mod connector;
mod consent;
mod context;
mod demo;
mod doctor;
mod events;
mod exit;
mod explain;
mod fix;
mod forecast;
mod gateway;
mod hint;
mod init;
mod ledger;
mod lsp;
mod numbers;
mod output;
mod page_file;
mod personal_data;
mod plan;
mod preview;
mod process;
mod progress;
mod prompt;
mod report;
mod results;
mod retry;
mod run;
mod sandbox;
mod schedule;
mod serve;
mod settle;
mod shell;
mod show;
mod single;
mod state_folder;
mod status;
mod suggested;
mod suppress;
mod text;
mod worker;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use clap::FromArgMatches as _;

use args::{CliArguments, Command};
use context::Context;
use exit::CommandFailure;
use output::Output;
use suggested::RepeatedOptions;

/// Runs one command line and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    main_with_system_folder(arguments, Path::new(state_folder::SYSTEM_FOLDER))
}

/// Runs one command line on a machine whose system ledger is in `system_folder`, and returns its exit code.
///
/// Tests use this function so that they do not depend on the machine's own system ledger.
pub fn main_with_system_folder(arguments: impl IntoIterator<Item = OsString>, system_folder: &Path) -> u8 {
    let arguments = with_help(arguments.into_iter().collect());
    let json = arguments.iter().any(|argument| argument == "--json");
    let parse = |command| shell::with_chosen_colors(command, &arguments).try_get_matches_from(&arguments);
    // Only help texts and errors need the complete parser, which takes longer to build.
    let matches = parse(args::build_parser()).or_else(|_| parse(args::build_command()));
    let parsed = matches.and_then(|matches| Ok((CliArguments::from_arg_matches(&matches)?, matches)));
    let (mut parsed, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let error = args::hide_environment_options(error, &arguments);
            let error = args::suggest_command(args::remove_risky_advice(error), &arguments);
            return shell::print_usage_error(&error, json);
        }
    };
    parsed.global.json |= parsed.command.prints_json();
    shell::start_log(&parsed.global);
    process::keep_memory_private();
    let progress = parsed.command.progress_form();
    let output = Output::new(&parsed.global, progress, RepeatedOptions::from_matches(&parsed.global, &matches));
    let context = Context::new(parsed.global, output.clone(), system_folder.to_owned());
    match run_to_end(&context, parsed.command) {
        Ok(code) => output.final_code(code),
        Err(failure) => {
            let code = output.print_failure(failure);
            output.final_code(code)
        }
    }
}

/// Adds `--help` if the arguments are empty, and replaces a single `help` with `--help`.
fn with_help(mut arguments: Vec<OsString>) -> Vec<OsString> {
    match &arguments[..] {
        [] => arguments.push("campaign".into()),
        [_, help] if help == "help" => drop(arguments.pop()),
        _ => {}
    }
    if arguments.len() == 1 {
        arguments.push("--help".into());
    }
    arguments
}

/// Runs a command and closes the ledger, even if the command fails or panics.
fn run_to_end(context: &Context, command: Command) -> Result<u8, CommandFailure> {
    let runtime = process::build_runtime()?;
    // A panic is a bug, but it still ends with an exit code and the single object that `--json` promises.
    let result = catch_unwind(AssertUnwindSafe(|| runtime.block_on(self::run_command(context, command))));
    runtime.block_on(context.close_ledgers());
    // Do not wait for blocking tasks, such as an interrupted survey that is still reading.
    runtime.shutdown_background();
    result.unwrap_or_else(|_| {
        let message = "the command stopped because of an internal error, which is a bug in `campaign`; everything \
                       that was \
                       sent is in the ledger; to continue, run the same command again";
        Err(CommandFailure::new(exit::BUG, message))
    })
}

async fn run_command(context: &Context, command: Command) -> Result<u8, CommandFailure> {
    process::ignore_file_size_signal();
    match command {
        Command::Init(args) => init::create_campaign(context, &args),
        Command::Check(args) => check::check_campaigns(context, args).await,
        Command::Explain(args) => explain::explain_rule(context, &args),
        Command::Preview(args) => preview::preview_messages(context, args).await,
        Command::Test(args) => single::send_test(context, args).await,
        Command::Run(args) => run::run_campaign(context, args).await,
        Command::Plan(args) => plan::make_plan(context, &args).await,
        Command::Approve(args) => plan::approve_plan(context, &args).await,
        Command::Stop(args) => settle::stop_run(context, args).await,
        Command::Status(args) => status::show_status(context, &args).await,
        Command::Results(args) => results::write_results(context, args).await,
        Command::Report(args) => report::write_report(context, args).await,
        Command::Replies(args) => results::show_replies(context, args).await,
        Command::Outcome(args) => results::show_outcome(context, args).await,
        Command::Reconcile(args) => settle::reconcile_run(context, args).await,
        Command::Resolve(args) => settle::resolve_doubt(context, args).await,
        Command::Retry(args) => retry::retry_run(context, args).await,
        Command::Show(args) => show::show_messages(context, args).await,
        Command::Gateway(command) => gateway::run_gateway_command(context, command).await,
        Command::Suppress(command) => suppress::run_suppress_command(context, command).await,
        Command::Find(args) => personal_data::find_messages(context, &args).await,
        Command::Forget(args) => personal_data::forget_recipient(context, &args).await,
        Command::Purge(args) => personal_data::purge_runs(context, &args).await,
        Command::Ledger(command) => ledger::run_ledger_command(context, command).await,
        Command::Schedule(command) => schedule::run_schedule_command(context, command).await,
        Command::Doctor(args) => doctor::run_doctor(context, &args).await,
        Command::Demo(args) => demo::run_demo(context, &args).await,
        Command::Sandbox(args) => sandbox::run_sandbox(context, args).await,
        Command::Serve(args) => serve::run_serve_command(context, args).await,
        Command::Worker(args) => worker::run_worker(context, args).await,
        Command::Connector(args) => connector::run_connector(context, args).await,
        Command::Lsp => lsp::run_language_server(context),
        Command::Schema { of } => Ok(shell::print_schema(context, of)),
        Command::Completions { names: Some(names), .. } => shell::print_names(context, names).await,
        Command::Completions { shell, .. } => {
            Ok(shell.map_or(exit::SUCCESS, |shell| shell::print_completions(context, shell)))
        }
        Command::Man { folder } => shell::write_manual_pages(context, &folder),
    }
}
