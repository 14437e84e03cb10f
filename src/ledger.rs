//! `campaign ledger`: checks, copies, upgrades, backs up and restores the ledger.

use std::path::Path;

use serde_json::{Value, json};

use super::args::{LedgerCommand, LedgerUrl};
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::Output;
use super::suggested::shell_path;
use super::text::{StyledLine, StyledText, bad, caution, copyable, plain};
use campaign_core::finding::{escape_to_one_line, quote_for_shell};
use campaign_engine::report::{format_count, format_local_minute};
use campaign_ledger::{CopiedLedger, PostgresAddress, PostgresAddressError, PostgresLedger, RecordKind};
use campaign_runs::{CheckedLedger, LedgerProblem, RestoredLedger, accept_restored_ledger, check_ledger};

pub(super) async fn run_ledger_command(context: &Context, command: LedgerCommand) -> Result<u8, CommandFailure> {
    match command {
        LedgerCommand::Check => report_ledger_check(context).await,
        LedgerCommand::Copy { to } => copy_to_database(context, &to).await,
        LedgerCommand::Backup { dir } => back_up_ledger(context, &dir).await,
        LedgerCommand::Restore { dir } => restore_ledger(context, &dir).await,
        LedgerCommand::Upgrade => upgrade_tables(context).await,
    }
}

/// Upgrades the tables of a database to this version. A ledger file needs no upgrade here: the first command that
/// writes to the file upgrades it.
async fn upgrade_tables(context: &Context) -> Result<u8, CommandFailure> {
    let (place, upgraded) = (context.ledger_location()?, context.upgrade_ledger().await?);
    if context.output.json {
        context.output.print_object(&json!({ "ledger": place, "upgraded": upgraded, "exit": exit::SUCCESS }));
        return Ok(exit::SUCCESS);
    }
    let description = match upgraded {
        true => "was upgraded to this version. Processes running an earlier version stop sending and exit with code 74",
        false => "is already at this version; nothing changed",
    };
    let mut text = StyledText::new();
    text.push(StyledLine::success([plain("the ledger in "), copyable(place), plain(format!(" {description}"))]));
    text.push(StyledLine::next_step(context.output.command("status")));
    context.output.print_done(text, exit::SUCCESS);
    Ok(exit::SUCCESS)
}

/// Copies the ledger from its file to a database.
async fn copy_to_database(context: &Context, to: &LedgerUrl) -> Result<u8, CommandFailure> {
    let invalid_address = |error: PostgresAddressError| CommandFailure::invalid(error.to_string());
    let address = PostgresAddress::parse(to.url().unwrap_or_default()).map_err(invalid_address)?;
    let (file_ledger, place) = (context.open_file_ledger().await?, context.ledger_location()?);
    let copied = PostgresLedger::take_over(&address, &file_ledger).await;
    file_ledger.close().await;
    let next =
        context.output.command(format!("ledger check --ledger {}", quote_for_shell(address.url_without_password())));
    let advice = format!(
        "the ledger in `{place}` is unchanged, but can no longer be used to send\n\
         next: {next}; from now on, use `--ledger` or CAMPAIGN_LEDGER\n"
    );
    report_copy(context, address.display_name(), copied?, "ledger copied", &advice)
}

async fn report_ledger_check(context: &Context) -> Result<u8, CommandFailure> {
    let place = context.ledger_location()?;
    let Some(ledger) = context.open_existing_ledger().await? else {
        match context.output.json {
            true => {
                context.output.print_object(&json!({ "runs": 0, "rows": 0, "problems": [], "exit": exit::SUCCESS }))
            }
            false => context.output.print_result(format!("no ledger yet in `{place}`\n")),
        }
        return Ok(exit::SUCCESS);
    };
    let CheckedLedger { runs, rows, problems } = check_ledger(ledger.as_ref()).await?;
    let code = if problems.is_empty() { exit::SUCCESS } else { exit::STORAGE };
    if context.output.json {
        let problem_json = |problem: &LedgerProblem| {
            let LedgerProblem { run, what, kind } = problem;
            let mut object = json!({ "run": run, "what": what });
            if let Some(kind) = kind {
                object["help"] = record_help(kind, &context.output).into();
            }
            object
        };
        let mut object = json!({
            "runs": runs, "rows": rows, "problems": problems.iter().map(problem_json).collect::<Vec<_>>(), "exit": code,
        });
        if code == exit::STORAGE {
            object["error"] = "some ledger records are damaged".into();
        }
        context.output.print_object(&object);
        return Ok(code);
    }
    let content = format!("{} with {}", format_count(runs, "run"), format_count(rows, "row"));
    let mut text = StyledText::new();
    let (ledger, records) = ([plain("the ledger in "), copyable(place)], "all records and copies are intact");
    match problems.len() as u64 {
        0 => text
            .push(StyledLine::success(ledger.into_iter().chain([plain(format!(" is sound: {content}; {records}"))]))),
        count => {
            let problems = [bad(format_count(count, "problem")), plain(" in ")].into_iter().chain(ledger);
            text.push(StyledLine::failure(problems.chain([plain(format!(", which has {content}:"))])));
        }
    }
    for LedgerProblem { run, what, kind } in &problems {
        let run = run.as_ref().map(|run| format!("{run}: ")).unwrap_or_default();
        text.add_line(2, [plain(run), plain(what.as_str())]);
        if let Some(kind) = kind {
            text.extend(format!("    help: {}", record_help(kind, &context.output)));
        }
    }
    if !problems.is_empty() {
        text.add_line(
            0,
            [plain("Nothing was changed. Restore a good copy of the ledger, or keep this one and ask for help.")],
        );
    }
    text.push(StyledLine::next_step(context.output.command("status")));
    context.output.print_done(text, code);
    Ok(code)
}

/// The remedy for a damaged record.
fn record_help(kind: &RecordKind, output: &Output) -> String {
    let activate = |campaign: &str| output.command(format!("schedule add {}", shell_path(Path::new(campaign))));
    match kind {
        RecordKind::Schedule { name, file } => format!(
            "use `{}` to check whether the last run of this schedule sent its messages, then activate the schedule \
             again with `{}`, or remove it with `{}`; until then, the schedule sends nothing",
            output.command("status"),
            activate(file),
            output.command(format!("schedule remove {}", quote_for_shell(name)))
        ),
        RecordKind::Occurrence { schedule } => format!(
            "use `{}` to check whether this scheduled run was sent, then activate the schedule {} again with `{}`; \
             until then, the schedule sends nothing",
            output.command("status"),
            escape_to_one_line(schedule),
            activate("FILE")
        ),
        RecordKind::Plan => format!(
            "create the plan again with `{}`; this one cannot be approved or sent. If a schedule is waiting for it, \
             activate the schedule again with `{}`",
            output.command("plan FILE"),
            activate("FILE")
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
            "you can ignore this problem: the notification will not be sent, but nothing else is affected".to_owned()
        }
        RecordKind::Account => {
            "restore a good copy of the ledger; until then, nothing is sent through this account".to_owned()
        }
        RecordKind::Consent => {
            "restore a good copy of the ledger; sending does not use this record, but `find --evidence` cannot show it"
                .to_owned()
        }
        RecordKind::Forgetting => "restore a good copy of the ledger; until then, nothing is sent".to_owned(),
    }
}

pub(super) async fn back_up_ledger(context: &Context, folder: &Path) -> Result<u8, CommandFailure> {
    let (copied, folder_name) = (context.back_up_ledger(folder).await?, folder.display().to_string());
    // The suggested command omits the options of this command: the backup itself is its state folder.
    let advice = format!(
        "Keep the backup private: it contains phone numbers and messages. Messages sent from now on are not in it.\n\
         next: campaign ledger check --state-dir {}\n",
        quote_for_shell(&folder_name)
    );
    report_copy(context, &folder_name, copied, "backup of the ledger", &advice)
}

/// Reports the location and the contents of a copy of the ledger, and the next step.
fn report_copy(
    context: &Context,
    to: &str,
    CopiedLedger { runs, rows, without_copies }: CopiedLedger,
    title: &str,
    advice: &str,
) -> Result<u8, CommandFailure> {
    if context.output.json {
        context.output.print_object(&json!({
            "from": context.ledger_location()?, "to": to, "runs": runs, "rows": rows, "without_copies": without_copies,
            "exit": exit::SUCCESS,
        }));
        return Ok(exit::SUCCESS);
    }
    let content = format!("{} with {}", format_count(runs, "run"), format_count(rows, "row"));
    let mut text = StyledText::from(StyledLine::success([plain(format!("{title}: ")), copyable(to)]));
    text.add_line(2, [plain(format!("{content}, the suppression list, receipts, plans and schedules"))]);
    if without_copies > 0 {
        let runs = format_count(without_copies, "run");
        text.add_line(
            2,
            [caution(format!(
                "{runs} cannot be resumed, because the copies of the campaign files and lists are missing"
            ))],
        );
    }
    text.extend(StyledText::from(advice));
    context.output.print_done(text, exit::SUCCESS);
    Ok(exit::SUCCESS)
}

pub(super) async fn restore_ledger(context: &Context, folder: &Path) -> Result<u8, CommandFailure> {
    let ledger = context.restore_ledger(folder).await?;
    let restored = accept_restored_ledger(&context.adapters(ledger)?).await?;
    let doubtful: u64 = restored.doubtful.iter().map(|(_, rows)| rows).sum();
    let code = if doubtful > 0 { exit::IN_DOUBT } else { exit::SUCCESS };
    match context.output.json {
        true => context.output.print_object(&restored_ledger_json(context, folder, &restored, code)?),
        false => context.output.print_done(&describe_restored_ledger(context, &restored)?, code),
    }
    Ok(code)
}

fn restored_ledger_json(
    context: &Context,
    folder: &Path,
    restored: &RestoredLedger,
    code: u8,
) -> Result<Value, CommandFailure> {
    let RestoredLedger { made_at, runs, rows, without_copies, doubtful, ended, paused, forgotten, not_forgotten } =
        restored;
    Ok(json!({
        "from": folder.display().to_string(), "to": context.ledger_location()?, "made_at": made_at.to_string(),
        "runs": runs, "rows": rows, "without_copies": without_copies,
        "in_doubt": doubtful.iter().map(|(run, rows)| json!({ "run": run, "rows": rows })).collect::<Vec<_>>(),
        "ended": ended.iter().map(|(run, why)| json!({ "run": run, "why": why })).collect::<Vec<_>>(),
        "paused": paused, "forgotten": forgotten, "not_forgotten": not_forgotten, "exit": code,
    }))
}

fn describe_restored_ledger(context: &Context, restored: &RestoredLedger) -> Result<String, CommandFailure> {
    let RestoredLedger { made_at, runs, rows, without_copies, doubtful, ended, paused, forgotten, not_forgotten } =
        restored;
    let command = |arguments: String| context.output.command(arguments);
    let content = format!("{} with {}", format_count(*runs, "run"), format_count(*rows, "row"));
    let made_at = format_local_minute(*made_at);
    let mut text = format!("restored the backup from {made_at} to `{}`: {content}\n", context.ledger_location()?);
    for (run, rows) in doubtful {
        let rows = format_count(*rows, "row");
        text += &format!(
            "  {run} was unfinished when the backup was made: {rows} might have been sent since, so they are in doubt and \
             will not be sent automatically. Ask the gateway: {}\n",
            command(format!("reconcile {run}"))
        );
    }
    for (run, why) in ended {
        text += &format!(
            "  {run} was unfinished when the backup was made and cannot be resumed: {}\n",
            escape_to_one_line(why)
        );
    }
    for schedule in paused {
        let resume = command(format!("schedule resume {schedule}"));
        text += &format!("  schedule {schedule} is paused. To resume it: {resume}\n");
    }
    if *without_copies > 0 {
        text += &format!(
            "  {} cannot be retried or exported, because the backup lacks the copies of the campaign files and lists\n",
            format_count(*without_copies, "run")
        );
    }
    if *forgotten > 0 {
        text += &format!(
            "  erased again: {}, because `campaign forget` had erased them before\n",
            format_count(*forgotten, "recipient")
        );
    }
    if *not_forgotten > 0 {
        text += &format!(
            "  {} could not be forgotten again, because some rows are in doubt or cannot be read. Resolve these \
             rows, then run `campaign forget` again\n",
            format_count(*not_forgotten, "recipient")
        );
    }
    text += "Opt-outs recorded since the backup are missing from the suppression list. Add them before you send.\n";
    text += "Campaigns that have not run since the restore need `--i-accept-duplicates` for their next run.\n";
    text += &format!("next: {}\n", command("status".to_owned()));
    Ok(text)
}
