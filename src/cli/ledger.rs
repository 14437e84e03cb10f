//! `campaign ledger`: checks, copies and upgrades the ledger.

use std::path::Path;

use serde_json::json;

use super::args::{LedgerCommand, LedgerUrl};
use super::backup;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::suggested::file;
use super::text::{Line, Text, bad, copied, plain};
use crate::finding::{one_line, quoted};
use crate::ledger::{NoPostgresAddress, PostgresAddress, PostgresLedger, RecordKind};
use crate::report::plural;
use crate::runs::{CheckedLedger, LedgerProblem, check_ledger};

pub(super) async fn ledger(context: &Context, command: LedgerCommand) -> Result<u8, Failure> {
    match command {
        LedgerCommand::Check => check(context).await,
        LedgerCommand::Copy { to } => copy(context, &to).await,
        LedgerCommand::Backup { dir } => backup::back_up(context, &dir).await,
        LedgerCommand::Restore { dir } => backup::restore(context, &dir).await,
        LedgerCommand::Upgrade => upgrade(context).await,
    }
}

/// Upgrades the tables of a database to this version. A file is upgraded by the first command that writes to it.
async fn upgrade(context: &Context) -> Result<u8, Failure> {
    let (place, upgraded) = (context.place()?, context.upgrade_ledger().await?);
    if context.output.json {
        context.output.object(&json!({ "ledger": place, "upgraded": upgraded, "exit": exit::FINE }));
        return Ok(exit::FINE);
    }
    let what = match upgraded {
        true => "was upgraded to this version. Processes of an earlier version stop sending and exit with code 74",
        false => "already has this version; nothing changed",
    };
    let mut text = Text::new();
    text.push(Line::success([plain("the ledger in "), copied(place), plain(format!(" {what}"))]));
    text.push(Line::next(context.output.command("status")));
    context.output.done(text, exit::FINE);
    Ok(exit::FINE)
}

/// Moves the ledger from its file to a database.
async fn copy(context: &Context, to: &LedgerUrl) -> Result<u8, Failure> {
    let wrong = |error: NoPostgresAddress| Failure::wrong(error.to_string());
    let address = PostgresAddress::parse(to.given().unwrap_or_default()).map_err(wrong)?;
    let (from, place) = (context.ledger_in_a_file().await?, context.place()?);
    let copied = PostgresLedger::take_over(&address, &from).await;
    from.close().await;
    let next = context.output.command(format!("ledger check --ledger {}", quoted(address.repeatable())));
    let rest = format!(
        "the ledger in `{place}` is unchanged, but can no longer be used to send\n\
         next: {next}; from now on, use `--ledger` or CAMPAIGN_LEDGER\n"
    );
    backup::tell(context, address.shown(), copied?, ("ledger copied", &rest))
}

async fn check(context: &Context) -> Result<u8, Failure> {
    let place = context.place()?;
    let Some(ledger) = context.existing_ledger().await? else {
        match context.output.json {
            true => context.output.object(&json!({ "runs": 0, "rows": 0, "problems": [], "exit": exit::FINE })),
            false => context.output.result(format!("no ledger yet in `{place}`\n")),
        }
        return Ok(exit::FINE);
    };
    let CheckedLedger { runs, rows, problems } = check_ledger(ledger.as_ref()).await?;
    let code = if problems.is_empty() { exit::FINE } else { exit::STORAGE };
    if context.output.json {
        let problem = |problem: &LedgerProblem| {
            let LedgerProblem { run, what, kind } = problem;
            let mut object = json!({ "run": run, "what": what });
            if let Some(kind) = kind {
                object["help"] = help(kind, &context.output).into();
            }
            object
        };
        let mut object = json!({
            "runs": runs, "rows": rows, "problems": problems.iter().map(problem).collect::<Vec<_>>(), "exit": code,
        });
        if code == exit::STORAGE {
            object["error"] = "some ledger records are damaged".into();
        }
        context.output.object(&object);
        return Ok(code);
    }
    let held = format!("{} with {}", plural(runs, "run"), plural(rows, "row"));
    let mut text = Text::new();
    let (ledger, records) = ([plain("the ledger in "), copied(place)], "all records and copies are intact");
    match problems.len() as u64 {
        0 => text.push(Line::success(ledger.into_iter().chain([plain(format!(" is sound: {held}; {records}"))]))),
        count => {
            let problems = [bad(plural(count, "problem")), plain(" in ")].into_iter().chain(ledger);
            text.push(Line::failure(problems.chain([plain(format!(", which has {held}:"))])));
        }
    }
    for LedgerProblem { run, what, kind } in &problems {
        let run = run.as_ref().map(|run| format!("{run}: ")).unwrap_or_default();
        text.line(2, [plain(run), plain(what.as_str())]);
        if let Some(kind) = kind {
            text.extend(format!("    help: {}", help(kind, &context.output)));
        }
    }
    if !problems.is_empty() {
        text.line(
            0,
            [plain("Nothing was changed. Restore a good copy of the ledger, or keep this one and ask for help.")],
        );
    }
    text.push(Line::next(context.output.command("status")));
    context.output.done(text, code);
    Ok(code)
}

/// What to do about a damaged record.
fn help(kind: &RecordKind, output: &Output) -> String {
    let add = |campaign: &str| output.command(format!("schedule add {}", file(Path::new(campaign))));
    match kind {
        RecordKind::Schedule { name, file } => format!(
            "check with `{}` whether the last run of this schedule was sent, then activate the schedule again with `{}`, or \
             remove it with `{}`; until then, it sends nothing",
            output.command("status"),
            add(file),
            output.command(format!("schedule remove {}", quoted(name)))
        ),
        RecordKind::Occurrence { schedule } => format!(
            "check with `{}` whether this scheduled run was sent, then activate the schedule {} again with `{}`; until then, \
             it sends nothing",
            output.command("status"),
            one_line(schedule),
            add("FILE")
        ),
        RecordKind::Plan => format!(
            "create the plan again with `{}`; this one cannot be approved or sent. If a schedule is waiting for it, \
             activate the schedule again with `{}`",
            output.command("plan FILE"),
            add("FILE")
        ),
        RecordKind::Approval => {
            "restore a good copy of the ledger, or change the campaign file so that it needs a new approval; approvals \
             of this plan or schedule cannot be used"
                .to_owned()
        }
        RecordKind::ApprovalRule => {
            "restore a good copy of the ledger; until then, nothing is sent through live gateways".to_owned()
        }
        RecordKind::Notification => {
            "ignore this problem: the notification is not sent, but nothing else is affected".to_owned()
        }
        RecordKind::Account => {
            "restore a good copy of the ledger; until then, nothing is sent through this account".to_owned()
        }
        RecordKind::Forgetting => "restore a good copy of the ledger; until then, nothing is sent".to_owned(),
    }
}
