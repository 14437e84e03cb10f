//! `campaign ledger`: looking after the ledger itself.

use std::path::Path;

use serde_json::json;

use super::args::{LedgerCommand, LedgerUrl};
use super::backup;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::suggested::file;
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

/// Brings the tables of a database to this version; those of a file are, since the first command that wrote.
async fn upgrade(context: &Context) -> Result<u8, Failure> {
    let (place, upgraded) = (context.place()?, context.upgrade_ledger().await?);
    if context.output.json {
        context.output.object(&json!({ "ledger": place, "upgraded": upgraded, "exit": exit::FINE }));
        return Ok(exit::FINE);
    }
    let what = match upgraded {
        true => "is of this version now; processes of an earlier one send nothing more with it, and end with 74",
        false => "is of this version: there is nothing to do",
    };
    let next = context.output.command("status");
    context.output.result(&format!("the ledger in `{place}` {what}\nnext: {next}\n"));
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
        "what is in `{place}` stays as it was, and sends nothing any more\n\
         next: {next}, and from then on `--ledger` or CAMPAIGN_LEDGER\n"
    );
    backup::tell(context, address.shown(), copied?, ("now", &rest))
}

async fn check(context: &Context) -> Result<u8, Failure> {
    let place = context.place()?;
    let Some(ledger) = context.existing_ledger().await? else {
        match context.output.json {
            true => context.output.object(&json!({ "runs": 0, "rows": 0, "problems": [], "exit": exit::FINE })),
            false => context.output.result(&format!("no ledger yet in `{place}`\n")),
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
            object["error"] = "not everything in the ledger is as it was written".into();
        }
        context.output.object(&object);
        return Ok(code);
    }
    let held = format!("{} with {}", plural(runs, "run"), plural(rows, "row"));
    let mut text = match problems.len() {
        0 => format!("the ledger in `{place}` is sound: {held}, each record and copy as it was written\n"),
        count => format!("{} in the ledger in `{place}`, of {held}:\n", plural(count as u64, "problem")),
    };
    for LedgerProblem { run, what, kind } in &problems {
        let run = run.as_ref().map(|run| format!("{}: ", one_line(run))).unwrap_or_default();
        text += &format!("  {run}{}\n", one_line(what));
        text += &kind.as_ref().map(|kind| format!("    help: {}\n", help(kind, &context.output))).unwrap_or_default();
    }
    if !problems.is_empty() {
        text += "nothing was changed; put a good copy of the ledger back, or keep it and ask for help\n";
    }
    text += &format!("next: {}\n", context.output.command("status"));
    context.output.done(&text, code);
    Ok(code)
}

/// What to do about a damaged record.
fn help(kind: &RecordKind, output: &Output) -> String {
    let add = |campaign: &str| output.command(format!("schedule add {}", file(Path::new(campaign))));
    match kind {
        RecordKind::Schedule { name, file } => format!(
            "this schedule does not send. Check with `{}` whether its last date was sent, then activate it again with `{}`, or remove \
             it with `{}`",
            output.command("status"),
            add(file),
            output.command(format!("schedule remove {}", quoted(name)))
        ),
        RecordKind::Occurrence { schedule } => format!(
            "the schedule {} does not send; check whether this occurrence was sent (`{}`), then activate the schedule again with `{}`",
            one_line(schedule),
            output.command("status"),
            add("FILE")
        ),
        RecordKind::Plan => format!(
            "it cannot be approved or sent; make it again with `{}`. If a schedule waits for it, activate the schedule again with \
             `{}`",
            output.command("plan FILE"),
            add("FILE")
        ),
        RecordKind::Approval => {
            "approvals of this plan or schedule cannot be used; restore a good copy of the ledger, or change the campaign file so \
             that it needs a new approval"
                .to_owned()
        }
        RecordKind::ApprovalRule => {
            "nothing is sent through live gateways; restore a good copy of the ledger".to_owned()
        }
        RecordKind::Notification => "it is not sent; everything else goes on".to_owned(),
        RecordKind::Account => "nothing is sent through this account; put a good copy of the ledger back".to_owned(),
        RecordKind::Forgetting => "nothing is sent; put a good copy of the ledger back".to_owned(),
    }
}
