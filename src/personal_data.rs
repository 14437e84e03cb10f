//! `campaign find`, `forget` and `purge`: find and erase the data of recipients. Also `find --evidence`: evidence for
//! an authority about one phone number, on the terminal, as JSON or as a page.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use roaring::RoaringBitmap;
use serde_json::{Value, json};

use super::args::{EvidenceArgs, FindArgs, ForgetArgs, LanguageName, PurgeArgs};
use super::context::Context;
use super::events::describe_stale_results;
use super::exit::CommandFailure;
use super::numbers::parse_number_with_campaign_region;
use super::prompt::{ConfirmationPrompt, ExpectedAnswer, require_confirmation};
use super::state_folder::LedgerPurpose;
use super::text::{Span, StyledLine, StyledText, bad, caution, copyable, dim, join_spans, plain, strong};
use super::{exit, output, page_file, status, suppress};
use campaign_core::domain::Phone;
use campaign_core::finding::escape_to_one_line;
use campaign_engine::report::{
    EVIDENCE_FORMAT, Evidence, OptOutHistory, RecipientInRun, RecipientRecord, RowSelection, RunView, UnreadableRun,
    format_count, load_evidence_messages,
};
use campaign_ledger::{RowState, Run};
use campaign_runs::{ForgottenPerson, ForgottenRows, OldRuns, PrivateKey, PurgeBlocker};
use campaign_server::web::files::{EvidencePage, EvidenceSignature, render_evidence_page};

pub(super) async fn find_messages(context: &Context, args: &FindArgs) -> Result<u8, CommandFailure> {
    let region = args.region.region.as_deref();
    let typed = args.phone.as_ref().or(args.selection.to.as_ref());
    let typed = typed.ok_or_else(|| CommandFailure::invalid("specify a phone number"))?;
    context.note_system_ledger()?;
    let phone = parse_number_with_campaign_region(context, typed, region, None).await?;
    args.selection.refuse_contradiction()?;
    let selection = args.selection.row_selection_without_phone();
    if args.evidence.evidence {
        if !selection.is_unfiltered() {
            return Err(CommandFailure::invalid(
                "`--evidence` covers all messages, so it cannot be limited to some of them",
            ));
        }
        return show_evidence(context, phone, &args.evidence).await;
    }
    let (person, opt_outs) = match context.open_existing_ledger().await? {
        None => (RecipientRecord::default(), OptOutHistory::default()),
        Some(ledger) => {
            let opt_outs = OptOutHistory::load(ledger.as_ref(), phone).await?;
            (RecipientRecord::find(ledger.as_ref(), phone, &selection).await?, opt_outs)
        }
    };
    // An answer that lacks unreadable runs must not look complete.
    let code = if person.unreadable.is_empty() { exit::SUCCESS } else { exit::STORAGE };
    match context.output.json {
        true => context.output.print_object(&messages_json(phone, &person, &opt_outs, code)),
        false => {
            context.output.print_result(messages_text(context, phone, !selection.is_unfiltered(), &person, &opt_outs))
        }
    }
    Ok(code)
}

fn messages_json(phone: Phone, person: &RecipientRecord, opt_outs: &OptOutHistory, code: u8) -> Value {
    let RecipientRecord { runs, elsewhere, unreadable, purged } = person;
    let run_json = |RecipientInRun { run, rows: _, results }: &RecipientInRun| {
        json!({
            "run": run.name(), "live": run.live, "gateway": run.gateway, "began_at": format!("{:.3}", run.began_at),
            "rows": results,
        })
    };
    let unread_json = |UnreadableRun { run, why }: &UnreadableRun| json!({ "run": run, "why": why });
    let mut object = json!({
        "phone": phone.to_string(), "runs": runs.iter().map(run_json).collect::<Vec<_>>(),
        "suppressed": opt_outs.listed_json(), "no_longer_suppressed": opt_outs.ended_json(),
        "unread": unreadable.iter().map(unread_json).collect::<Vec<_>>(), "exit": code,
    });
    if !elsewhere.is_empty() {
        object["elsewhere"] = elsewhere_json(elsewhere);
    }
    if *purged > 0 {
        object["purged"] = (*purged).into();
    }
    if !unreadable.is_empty() {
        object["error"] = "some runs could not be searched".into();
    }
    object
}

fn messages_text(
    context: &Context,
    phone: Phone,
    is_filtered: bool,
    person: &RecipientRecord,
    opt_outs: &OptOutHistory,
) -> StyledText {
    let RecipientRecord { runs, elsewhere, unreadable, purged } = person;
    let mut text = StyledText::new();
    let summary = match person.count_rows() {
        0 if is_filtered => "no messages match this selection".to_owned(),
        0 => "not in any run".to_owned(),
        rows => format!("{} in {}", format_count(rows, "row"), format_count(runs.len() as u64, "run")),
    };
    text.add_line(0, [strong(format!("+{phone}")), plain(format!(": {summary}"))]);
    for RecipientInRun { run, rows: _, results } in runs {
        for row in results {
            text.push(StyledLine::new(message_spans(row, run.live)).with_indent(2));
        }
    }
    for (run, rows) in elsewhere {
        text.add_line(2, [plain(format!("{run}: in another column of {}", describe_other_rows(rows)))]);
    }
    suppress::add_opt_out_history(&mut text, opt_outs);
    for UnreadableRun { run, why } in unreadable {
        text.add_line(0, [bad(format!("cannot search {run}: ")), plain(why.as_str())]);
    }
    if *purged > 0 {
        let count = format_count(*purged, "purged run");
        text.add_line(0, [plain(format!("{count} cannot be searched, because the recipients were erased"))]);
    }
    let last = runs.iter().filter_map(|run| Some((run.run.name(), run.rows.max()?))).next_back();
    text.push(StyledLine::next_step(match last {
        Some((run, row)) => context.output.command(format!("show {run} --row {row}")),
        None => context.output.command("status"),
    }));
    text
}

/// The rows of other phone numbers that contain the number in another column, as JSON, by run.
fn elsewhere_json(elsewhere: &[(String, RoaringBitmap)]) -> Value {
    elsewhere.iter().map(|(run, rows)| json!({ "run": run, "rows": rows.iter().collect::<Vec<u32>>() })).collect()
}

/// The maximum number of rows of other numbers that are named.
const MAX_NAMED_ROWS: usize = 10;

/// Describes rows of a run that belong to other numbers.
fn describe_other_rows(rows: &RoaringBitmap) -> String {
    let numbers: Vec<String> = rows.iter().take(MAX_NAMED_ROWS).map(|row| row.to_string()).collect();
    let more = if rows.len() > MAX_NAMED_ROWS as u64 { ", …" } else { "" };
    format!("{} for other numbers ({}{more})", format_count(rows.len(), "row"), numbers.join(", "))
}

/// Formats a message from the columns of the results: run, row, state and times.
fn message_spans(row: &Value, is_live: bool) -> Vec<Span> {
    let cell = |name: &str| row[name].as_str().unwrap_or_default();
    let state = RowState::from_name(cell("state")).map(status::state_span);
    let channel = match cell("delivered_by") {
        "" => cell("operation").to_owned(),
        channel if channel == cell("operation") => channel.to_owned(),
        channel => format!("{}, delivered by {channel}", cell("operation")),
    };
    let mut parts = vec![
        vec![strong(cell("run")), plain(format!(" row {}", row["row"]))],
        vec![state.unwrap_or_else(|| plain(cell("state")))],
    ];
    if !channel.is_empty() {
        parts.push(vec![plain(channel)]);
    }
    if !is_live {
        parts.push(vec![plain("rehearsal")]);
    }
    let delivered = match cell("delivered_at_is") {
        "at_latest" => "delivered no later than",
        "uncertain" => "delivery time uncertain, reported as",
        _ => "delivered",
    };
    for (name, label) in [("submitted_at", "sent"), ("delivered_at", delivered), ("updated_at", "last update")] {
        if !cell(name).is_empty() {
            parts.push(vec![dim(format!("{label} {}", output::format_timestamp(cell(name)))).unbroken()]);
        }
    }
    let reasons = ["reason", "error"].map(cell).into_iter().filter(|text| !text.is_empty());
    parts.extend(reasons.map(|text| vec![plain(text)]));
    join_spans(parts, " · ")
}

/// The data that `forget` cannot remove.
const NOT_REMOVED_BY_FORGET: &str = "the lists that the number came from, reports, previews and other files that you \
                                     saved, such as those of `results --out`, `--excel`, `--people` or `replies \
                                     --out`, backups of the state folder, and data stored by the gateway";

pub(super) async fn forget_recipient(context: &Context, args: &ForgetArgs) -> Result<u8, CommandFailure> {
    let phone = parse_number_with_campaign_region(context, &args.phone, args.region.region.as_deref(), None).await?;
    let ledger = context.open_ledger(LedgerPurpose::SharedRecords).await?;
    if !args.yes {
        confirm_forgetting(
            context,
            phone,
            &RecipientRecord::find(ledger.as_ref(), phone, &RowSelection::default()).await?,
        )
        .await?;
    }
    let forgotten = campaign_runs::forget_person(&context.adapters(ledger)?, phone).await?;
    let code = if !forgotten.unread.is_empty() || !forgotten.unwritten.is_empty() {
        exit::STORAGE
    } else if !forgotten.doubtful.is_empty() {
        exit::IN_DOUBT
    } else if !forgotten.elsewhere.is_empty() {
        // The number is still stored, so the command must not look successful.
        exit::REJECTIONS
    } else {
        exit::SUCCESS
    };
    if context.output.json {
        let object = forgotten_recipient_json(context, phone, forgotten, code);
        context.output.print_object(&object);
    } else {
        let text = describe_forgotten_recipient(context, phone, forgotten, code);
        context.output.print_done(&text, code);
    }
    Ok(code)
}

/// Shows the data that will be erased, and asks for confirmation.
async fn confirm_forgetting(context: &Context, phone: Phone, person: &RecipientRecord) -> Result<(), CommandFailure> {
    let (rows, runs) = (format_count(person.count_rows(), "row"), format_count(person.runs.len() as u64, "run"));
    let prompt = ConfirmationPrompt::new(format!("Forget +{phone} for good?"), ExpectedAnswer::Yes, "forget it")
        .with_fact("rows", format!("{rows} in {runs}"))
        .with_note(
            "The number and all data in these rows are removed from the ledger, the list copies and the results.",
        )
        .with_note("Planned messages to the number are skipped. It no longer receives marketing messages.");
    let prompt = match person.elsewhere.iter().map(|(_, rows)| rows.len()).sum() {
        0 => prompt,
        others => prompt.with_note(format!(
            "Not erased: the number in another column of {} for other numbers.",
            format_count(others, "row")
        )),
    };
    require_confirmation(&context.output, prompt, "forgetting a recipient", "Nothing was forgotten.").await
}

fn forgotten_recipient_json(context: &Context, phone: Phone, forgotten: ForgottenPerson, code: u8) -> Value {
    let ForgottenPerson { runs, doubtful, elsewhere, unread, unwritten, dry_runs: _ } = forgotten;
    let list = |rows: &RoaringBitmap| rows.iter().collect::<Vec<u32>>();
    let runs = runs.iter().map(
        |ForgottenRows { run, rows, skipped }| json!({ "run": run, "rows": list(rows), "skipped": list(skipped) }),
    );
    let doubt = doubtful.iter().map(|(run, rows)| json!({ "run": run, "rows": list(rows) }));
    let unread = unread.iter().map(|UnreadableRun { run, why }| json!({ "run": run, "why": why }));
    let mut object = json!({
        "phone": phone.to_string(), "forgotten": runs.collect::<Vec<_>>(), "in_doubt": doubt.collect::<Vec<_>>(),
        "unread": unread.collect::<Vec<_>>(), "suppressed": true, "remains": NOT_REMOVED_BY_FORGET, "exit": code,
    });
    let unwritten: Vec<String> =
        unwritten.into_iter().map(|stale_results| describe_stale_results(&context.output, stale_results)).collect();
    object["unwritten"] = unwritten.into();
    if !elsewhere.is_empty() {
        object["elsewhere"] = elsewhere_json(&elsewhere);
    }
    if code == exit::STORAGE {
        object["error"] = "some changes could not be written; run the same command again to finish".into();
    }
    object
}

fn describe_forgotten_recipient(context: &Context, phone: Phone, forgotten: ForgottenPerson, code: u8) -> String {
    let ForgottenPerson { runs, doubtful, elsewhere, unread, unwritten, dry_runs } = forgotten;
    let rows: u64 = runs.iter().map(|forgotten| forgotten.rows.len()).sum();
    let (row_count, run_count) = (format_count(rows, "row"), format_count(runs.len() as u64, "run"));
    let extent = if code == exit::SUCCESS { "forgotten" } else { "only partly forgotten" };
    let mut text = format!("+{phone} was {extent}: {row_count} in {run_count}\n");
    for ForgottenRows { run, rows, skipped } in &runs {
        let skipped = if skipped.is_empty() { String::new() } else { format!(", {} skipped", skipped.len()) };
        text += &format!("  {run} · {}{skipped}\n", format_count(rows.len(), "row"));
    }
    for (path, rows) in &dry_runs {
        let path = escape_to_one_line(&path.display().to_string());
        text += &format!("  `{path}` · {} of a dry run\n", format_count(*rows, "row"));
    }
    text += "  The number no longer receives marketing messages. A keyed hash is kept so that the number is \
             recognized in later lists.\n";
    text += &format!("  Not removed: {NOT_REMOVED_BY_FORGET}.\n");
    text += "  Remove the person from your lists before the next run, because the run stores each row of its list.\n";
    for (run, rows) in &doubtful {
        let rows: Vec<String> = rows.iter().map(|row| row.to_string()).collect();
        let decide = context.output.command(format!("resolve {run} --rows {} --as DECISION", rows.join(",")));
        text += &format!(
            "not forgotten: {} in {run}, in doubt because the message might have been sent\n  first: {decide}\n",
            format_count(rows.len() as u64, "row")
        );
    }
    for (run, rows) in &elsewhere {
        let show = context.output.command(format!("show {run} --row {}", rows.min().unwrap_or_default()));
        text += &format!(
            "not forgotten: {run} still contains the number in another column of {}; to erase such a row, forget its \
             own number\n  first: {show}\n",
            describe_other_rows(rows)
        );
    }
    for UnreadableRun { run, why } in &unread {
        text += &format!("not forgotten: {run} could not be read or written: {}\n", escape_to_one_line(why));
    }
    for stale_results in unwritten {
        text += &format!(
            "not forgotten: {}\n",
            escape_to_one_line(&describe_stale_results(&context.output, stale_results))
        );
    }
    text + &format!("next: {}\n", context.output.command(format!("find +{phone}")))
}

/// The data that `purge` does not remove.
const NOT_REMOVED_BY_PURGE: &str = "your results files, also of dry runs, the lists that recipients came from, backups of the state folder, and data \
                       stored by the gateway";

pub(super) async fn purge_runs(context: &Context, args: &PurgeArgs) -> Result<u8, CommandFailure> {
    let before = Timestamp::now().checked_sub(args.older_than);
    let before = before.map_err(|_| CommandFailure::invalid("`--older-than` is too long"))?;
    let Some(ledger) = context.open_existing_ledger().await? else {
        return report_purge(context, before, &OldRuns::default());
    };
    let mut old = OldRuns::load(ledger.as_ref(), before).await?;
    if !old.purgeable.is_empty() && !args.yes {
        confirm_purge(context, before, &old).await?;
    }
    let purgeable: Vec<Run> = old.purgeable.iter().map(|view| view.run.clone()).collect();
    let blocked = campaign_runs::purge_runs(&context.adapters(ledger)?, purgeable).await?;
    old.purgeable.retain(|view| !blocked.iter().any(|(run, _)| *run == view.run.name()));
    old.kept.extend(blocked);
    report_purge(context, before, &old)
}

/// Shows the runs whose recipients will be erased, and asks for confirmation.
async fn confirm_purge(context: &Context, before: Timestamp, old: &OldRuns) -> Result<(), CommandFailure> {
    let runs = format_count(old.purgeable.len() as u64, "run");
    let title = format!("Purge {runs} from before {}?", format_day(before));
    let mut prompt = ConfirmationPrompt::new(title, ExpectedAnswer::Yes, format!("purge {runs}"));
    for (index, view) in old.purgeable.iter().enumerate() {
        prompt.add_fact(if index == 0 { "runs" } else { "" }, [run_line(view).into()]);
    }
    let prompt = prompt
        .with_note("The recipients are permanently removed from the ledger and the list copies. The counts are kept.");
    require_confirmation(&context.output, prompt, &format!("purging {runs}"), "Nothing was purged.").await
}

fn report_purge(context: &Context, before: Timestamp, old: &OldRuns) -> Result<u8, CommandFailure> {
    let is_kept = |wanted_blocker| old.kept.iter().any(|(_, blocker)| *blocker == wanted_blocker);
    let code = if is_kept(PurgeBlocker::Forgetting) || is_kept(PurgeBlocker::Unreadable) {
        exit::STORAGE
    } else if is_kept(PurgeBlocker::InDoubt) {
        exit::IN_DOUBT
    } else if is_kept(PurgeBlocker::InUse) {
        exit::BUSY
    } else {
        exit::SUCCESS
    };
    match context.output.json {
        true => context.output.print_object(&purge_json(before, old, code)),
        false => context.output.print_done(describe_purge(context, before, old), code),
    }
    Ok(code)
}

fn purge_json(before: Timestamp, old: &OldRuns, code: u8) -> Value {
    let OldRuns { purgeable, kept } = old;
    let purged_json =
        |RunView { run, .. }: &RunView| json!({ "run": run.name(), "rows": run.recipients, "results": run.results });
    let kept_json = |(run, why): &(String, PurgeBlocker)| json!({ "run": run, "why": purge_blocker_name(*why) });
    json!({
        "before": before.to_string(), "purged": purgeable.iter().map(purged_json).collect::<Vec<_>>(),
        "kept": kept.iter().map(kept_json).collect::<Vec<_>>(), "remains": NOT_REMOVED_BY_PURGE, "exit": code,
    })
}

fn describe_purge(context: &Context, before: Timestamp, old: &OldRuns) -> String {
    let mut text = match old.purgeable.len() {
        0 => format!("there are no runs from before {} to purge\n", format_day(before)),
        _ => {
            format!(
                "purged {} from before {}\n{}",
                format_count(old.purgeable.len() as u64, "run"),
                format_day(before),
                run_lines(&old.purgeable)
            )
        }
    };
    if !old.purgeable.is_empty() {
        text += "  Counts and identifiers are kept. A keyed hash of each number is kept too, so that later runs \
                 still skip \
                 these recipients.\n";
        text += &format!("  Not removed: {NOT_REMOVED_BY_PURGE}.\n");
        for results in old.purgeable.iter().filter_map(|view| view.run.results.as_ref()) {
            text += &format!("  results: {results}\n");
        }
        let dry_runs: BTreeSet<PathBuf> =
            old.purgeable.iter().flat_map(|view| campaign_runs::list_dry_runs_of(&view.run)).collect();
        for results in dry_runs {
            text += &format!("  results of a dry run: {}\n", results.display());
        }
    }
    for (run, why) in &old.kept {
        text += &format!("not purged: {run}, {}\n", explain_kept_run(context, run, *why));
    }
    text + &format!("next: {}\n", context.output.command("status --all"))
}

/// Formats runs, one on each line.
fn run_lines(views: &[RunView]) -> String {
    views.iter().map(|view| format!("  {}\n", run_line(view))).collect()
}

fn run_line(RunView { run, .. }: &RunView) -> String {
    let ended = run.ended_at.unwrap_or(run.began_at);
    let rehearsal = if run.live { "" } else { " · rehearsal" };
    format!("{} · {}{rehearsal} · {}", run.name(), format_day(ended), format_count(run.recipients, "row"))
}

fn purge_blocker_name(blocker: PurgeBlocker) -> &'static str {
    match blocker {
        PurgeBlocker::Unfinished => "unfinished",
        PurgeBlocker::InDoubt => "in_doubt",
        PurgeBlocker::InUse => "in_use",
        PurgeBlocker::Forgetting => "forgetting",
        PurgeBlocker::Unreadable => "unreadable",
    }
}

fn explain_kept_run(context: &Context, run: &str, blocker: PurgeBlocker) -> String {
    let first = |command: String| format!("first: {}", context.output.command(command));
    match blocker {
        PurgeBlocker::Unfinished => format!("which is unfinished; {}", first(format!("stop {run} --for-good"))),
        PurgeBlocker::InDoubt => {
            format!("which has rows in doubt; {}", first(format!("resolve {run} --all --as DECISION")))
        }
        PurgeBlocker::InUse => {
            "which another process is using; run this command again when that process has finished".to_owned()
        }
        PurgeBlocker::Forgetting => {
            "whose copies or results still contain a forgotten recipient; `find` shows why".to_owned()
        }
        PurgeBlocker::Unreadable => format!(
            "whose list cannot be read; after a purge, later runs would send to its cancelled recipients; {}",
            first("ledger check".to_owned())
        ),
    }
}

/// Formats the day of a moment in the local time zone.
fn format_day(at: Timestamp) -> String {
    at.to_zoned(TimeZone::system()).date().to_string()
}

/// The format of an evidence file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvidenceFormat {
    Page,
    Json,
}

/// Evidence with its signature.
struct SignedEvidence {
    evidence: Evidence,
    signature: Option<EvidenceSignature>,
}

async fn show_evidence(context: &Context, phone: Phone, args: &EvidenceArgs) -> Result<u8, CommandFailure> {
    let format = args.out.as_deref().map(choose_format).transpose()?;
    let key = args.key.as_deref().map(PrivateKey::read).transpose()?;
    let (person, opt_outs, evidence) = match context.open_existing_ledger().await? {
        None => {
            let (empty_record, opt_outs) = (RecipientRecord::default(), OptOutHistory::default());
            let evidence = Evidence::from_messages(phone, &empty_record, Vec::new(), &opt_outs, Timestamp::now());
            (empty_record, opt_outs, evidence)
        }
        Some(ledger) => {
            let ledger = ledger.as_ref();
            let person = RecipientRecord::find(ledger, phone, &RowSelection::default()).await?;
            let opt_outs = OptOutHistory::load(ledger, phone).await?;
            let messages = load_evidence_messages(ledger, &person).await?;
            let evidence = Evidence::from_messages(phone, &person, messages, &opt_outs, Timestamp::now());
            (person, opt_outs, evidence)
        }
    };
    let signature = key.map(|key| EvidenceSignature {
        key: key.public_key().map(|key| key.to_string()).unwrap_or_default(),
        signature: key.sign_evidence(&evidence.digest),
    });
    let signed = SignedEvidence { evidence, signature };
    // Evidence that omits a run must not look complete.
    let code = if person.unreadable.is_empty() { exit::SUCCESS } else { exit::STORAGE };
    if let Some((path, format)) = args.out.as_deref().zip(format) {
        let content = match format {
            EvidenceFormat::Json => format!("{:#}\n", signed.to_json()),
            EvidenceFormat::Page => {
                let page = EvidencePage { evidence: &signed.evidence, signature: signed.signature.as_ref() };
                render_evidence_page(&page, LanguageName::choose_language(args.lang))?
            }
        };
        page_file::write_page(path, &content)?;
    }
    if context.output.json {
        let mut object = signed.to_json();
        if let Some(path) = &args.out {
            object["file"] = json!(path);
        }
        object["exit"] = code.into();
        if code != exit::SUCCESS {
            object["error"] = "some runs could not be searched".into();
        }
        context.output.print_object(&object);
    } else {
        let mut text = describe_messages(phone, &signed, &person);
        suppress::add_opt_out_history(&mut text, &opt_outs);
        text.extend(describe_proof(&signed, &person));
        match &args.out {
            Some(path) => text.push(StyledLine::new([plain(format!("evidence: {}", path.display()))]).unbroken()),
            None => text.push(StyledLine::next_step(
                context.output.command(format!("find +{phone} --evidence --out evidence.html")),
            )),
        }
        context.output.print_result(text);
    }
    Ok(code)
}

/// Chooses the format of a file by its extension, and checks that the file can be written.
fn choose_format(path: &Path) -> Result<EvidenceFormat, CommandFailure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => page_file::check_page_path(path).map(|()| EvidenceFormat::Page),
        Some("json") => {
            let description = "evidence written by campaign";
            page_file::check_output_path(path, EVIDENCE_FORMAT, description).map(|()| EvidenceFormat::Json)
        }
        _ => Err(CommandFailure::invalid(format!("`{}` must end in `.html` or `.json`", path.display()))),
    }
}

impl SignedEvidence {
    fn to_json(&self) -> Value {
        let Self { evidence: Evidence { facts, digest, text: _ }, signature } = self;
        let mut object = json!({ "digest": format!("sha256:{digest}"), "evidence": facts });
        if let Some(EvidenceSignature { key, signature }) = signature {
            object["signature"] = json!({ "key": key, "signature": signature });
        }
        object
    }
}

/// Describes the messages to a phone number.
fn describe_messages(phone: Phone, signed: &SignedEvidence, person: &RecipientRecord) -> StyledText {
    let messages = signed.evidence.facts["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text = StyledText::new();
    let summary = match messages.len() as u64 {
        0 => "not in any run".to_owned(),
        rows => format!("{} in {}", format_count(rows, "row"), format_count(person.runs.len() as u64, "run")),
    };
    text.add_line(0, [strong(format!("+{phone}")), plain(format!(": {summary}"))]);
    messages.iter().for_each(|message| add_message(&mut text, message));
    text
}

/// Describes the runs that could not be searched, the digest and the signature.
fn describe_proof(signed: &SignedEvidence, person: &RecipientRecord) -> StyledText {
    let mut text = StyledText::new();
    for UnreadableRun { run, why } in &person.unreadable {
        text.add_line(0, [bad(format!("cannot search {run}: ")), plain(why.as_str())]);
    }
    if person.purged > 0 {
        let runs = format_count(person.purged, "purged run");
        text.add_line(0, [caution("incomplete: "), plain(format!("the recipients of {runs} were erased"))]);
    }
    text.add_line(0, [plain("SHA-256: "), copyable(signed.evidence.digest.as_str())]);
    if let Some(EvidenceSignature { key, signature }) = &signed.signature {
        text.add_line(0, [plain("signature: "), copyable(signature.as_str())]);
        text.add_line(0, [plain("public key: "), copyable(key.as_str())]);
    }
    text
}

/// Adds a message with its consent and approvals.
fn add_message(text: &mut StyledText, message: &Value) {
    let cell = |name: &str| message[name].as_str().unwrap_or_default();
    let mut parts = vec![format!("row {}", message["row"]), cell("state").to_owned(), cell("purpose").to_owned()];
    for property in ["mandatory", "rehearsal"].into_iter().filter(|property| message[*property] == true) {
        parts.push(property.to_owned());
    }
    let times = [("sent", "sent_at"), ("delivered", "delivered_at")];
    for (label, name) in times.into_iter().filter(|(_, name)| !cell(name).is_empty()) {
        parts.push(format!("{label} {}", output::format_timestamp(cell(name))));
    }
    parts.extend(["reason", "error"].map(cell).into_iter().filter(|why| !why.is_empty()).map(str::to_owned));
    text.add_line(2, [strong(cell("run").to_owned()), plain(format!(" {}", parts.join(" · ")))]);
    let consent = match &message["consent"] {
        Value::Object(consent) => {
            let cells = ["value", "at", "source", "wording"].map(|name| consent[name].as_str().unwrap_or_default());
            escape_to_one_line(&cells.into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(" · "))
        }
        _ => "none recorded".to_owned(),
    };
    text.add_line(4, [plain(format!("consent: {consent}"))]);
    for approval in message["approvals"].as_array().into_iter().flatten() {
        let (by, at) = (approval["by"].as_str().unwrap_or_default(), approval["at"].as_str().unwrap_or_default());
        let by = escape_to_one_line(by);
        text.add_line(4, [plain(format!("approved by {by}, {}", output::format_timestamp(at)))]);
    }
}
