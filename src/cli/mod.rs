//! The command line: arguments, output, exit codes, one file per command.
//!
//! The only place that names the concrete ledger, gateway and clock together.

mod answer;
mod approve;
mod args;
mod backup;
mod check;
mod clock;
mod completions;
mod connector;
mod consent;
mod context;
mod events;
mod exit;
mod explain;
mod exposure;
mod failure;
mod fetching;
mod find;
mod forecast;
mod forget;
mod gateway;
mod hint;
mod init;
mod ledger;
mod ledgers;
mod listing;
mod live_line;
mod number;
mod outcome;
mod output;
mod page;
mod plan;
mod preview;
mod process;
mod progress;
mod purge;
mod question;
mod receipt;
mod reconcile;
mod region;
mod replies;
mod report;
mod resolve;
mod resources;
mod results;
mod retry;
mod retry_errors;
mod run;
mod sandbox;
mod schedule;
mod screen;
mod serve;
mod shell;
mod show;
mod signals;
mod single_report;
mod slips;
mod spark;
mod states;
mod status;
mod stop;
mod suggested;
mod suppress;
mod table;
mod test;
mod text;
mod watch;
mod worker;

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::FromArgMatches as _;

use args::{Arguments, Command};
use context::Context;
use failure::Failure;
use output::Output;
use suggested::Options;

/// Runs one command line and returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = with_help(arguments.into_iter().collect());
    let json = arguments.iter().any(|argument| argument == "--json");
    let matches = shell::coloured(args::command(), &arguments).try_get_matches_from(&arguments);
    let parsed = matches.and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (mut parsed, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let error = slips::without_environment(error, &arguments);
            let error = args::suggest_command(slips::without_risky_advice(error), &arguments);
            return shell::refuse(&error, json);
        }
    };
    parsed.global.json |= parsed.command.prints_json();
    shell::start_log(&parsed.global);
    process::keep_memory_private();
    let progress = parsed.command.progress();
    let output = Output::new(&parsed.global, progress, Options::typed(&parsed.global, &matches));
    let context = Context::new(parsed.global, output.clone());
    match to_end(&context, parsed.command) {
        Ok(code) => output.code(code),
        Err(failure) => {
            let code = output.failure(failure);
            output.code(code)
        }
    }
}

/// The arguments, with `--help` if the program alone or `help` was typed: all three print the same.
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

/// Runs a command to its end, and closes the ledger, however it ended.
fn to_end(context: &Context, command: Command) -> Result<u8, Failure> {
    let runtime = process::runtime()?;
    // A panic is a bug, and an end like any other: with its code, and with the one object that `--json` promises.
    let ended = catch_unwind(AssertUnwindSafe(|| runtime.block_on(self::command(context, command))));
    runtime.block_on(context.close());
    // A survey that was interrupted may still be reading; nobody waits for it.
    runtime.shutdown_background();
    ended.unwrap_or_else(|_| {
        let message = "the command stopped because of an internal error, which is a bug in campaign; everything that was \
                       sent is in the ledger; to continue, run the same command again";
        Err(Failure::new(exit::BUG, message))
    })
}

async fn command(context: &Context, command: Command) -> Result<u8, Failure> {
    process::outlive_full_files();
    match command {
        Command::Init(args) => init::init(context, &args),
        Command::Check(args) => check::check(context, args).await,
        Command::Explain(args) => explain::explain(context, &args),
        Command::Preview(args) => preview::preview(context, args).await,
        Command::Test(args) => test::test(context, args).await,
        Command::Run(args) => run::run(context, args).await,
        Command::Plan(args) => plan::plan(context, &args).await,
        Command::Approve(args) => approve::approve(context, &args).await,
        Command::Stop(args) => stop::stop(context, args).await,
        Command::Status(args) => status::status(context, &args).await,
        Command::Results(args) => results::results(context, args).await,
        Command::Report(args) => report::report(context, args).await,
        Command::Replies(args) => replies::replies(context, args).await,
        Command::Outcome(args) => outcome::outcome(context, args).await,
        Command::Reconcile(args) => reconcile::reconcile(context, args).await,
        Command::Resolve(args) => resolve::resolve(context, args).await,
        Command::Retry(args) => retry::retry(context, args).await,
        Command::Show(args) => show::show(context, args).await,
        Command::Gateway(command) => gateway::gateway(context, command).await,
        Command::Suppress(command) => suppress::suppress(context, command).await,
        Command::Find(args) => find::find(context, &args).await,
        Command::Forget(args) => forget::forget(context, &args).await,
        Command::Purge(args) => purge::purge(context, &args).await,
        Command::Ledger(command) => ledger::ledger(context, command).await,
        Command::Schedule(command) => schedule::schedule(context, command).await,
        Command::Sandbox(args) => sandbox::sandbox(context, args).await,
        Command::Serve(args) => serve::command(context, args).await,
        Command::Worker(args) => worker::worker(context, args).await,
        Command::Connector(args) => connector::connector(context, args).await,
        Command::Schema { of } => Ok(shell::schema(context, of)),
        Command::Completions { names: Some(names), .. } => completions::names(context, names).await,
        Command::Completions { shell, .. } => {
            Ok(shell.map_or(exit::FINE, |shell| completions::completions(context, shell)))
        }
    }
}
