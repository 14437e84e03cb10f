//! `campaign show`: the history of messages, with attempts, answers, delivery status and decisions.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use serde_json::{Value, json};

use super::args::{SelectionArgs, ShowArgs, parse_phone};
use super::context::Context;
use super::exit::CommandFailure;
use super::single::format_answer_members;
use super::text::{SpanMeaning, StyledLine, StyledText, dim, plain, span};
use super::{exit, status};
use campaign_core::domain::{
    DeliveryState, Media, OperationOutcome, Receipt, ReceiptSource, RecipientReply, ReportedChannel, Row, RowSet,
};
use campaign_engine::check::ALREADY_SENT;
use campaign_engine::delivery::{FrozenInputs, SingleKind};
use campaign_engine::report::{
    HistoryEntry, HistoryEvent, MessageHistory, RecipientKey, RunResults, RunView, find_recipients,
    find_recipients_by_row, format_count, format_local_second, is_owned, load_copies,
};
use campaign_ledger::{AskedRow, Author, Ledger, RowChange, RowState, Run, RunProgress};
use campaign_manifest::CampaignBrief;
use campaign_runs::Error;

/// The maximum number of messages that are shown as text.
const MAX_SHOWN: usize = 20;
/// The maximum number of messages that are shown with `--json`.
const MAX_IN_JSON: usize = 1_000;
/// The maximum number of characters of a gateway response that are shown as text.
const MAX_RESPONSE_LENGTH: usize = 400;

pub(super) async fn show_messages(context: &Context, args: ShowArgs) -> Result<u8, CommandFailure> {
    if args.selection.is_empty() {
        let help = "add `--rows`, `--to`, `--state`, `--error` or `--channel`";
        return Err(CommandFailure::invalid("no messages are selected").with_help(help));
    }
    let (ledger, run) = context.find_run(&args.run).await?;
    campaign_runs::report_results_conflict(ledger.as_ref(), &run, &context.observer).await?;
    let has_owner = is_owned(ledger.as_ref(), &run).await?;
    let copies = load_copies(ledger.as_ref(), &run).await?;
    let frozen = FrozenInputs::from_copies(&copies)?;
    let last = read_last_row(ledger.as_ref(), &run).await?;
    let limit = if context.output.json { MAX_IN_JSON } else { MAX_SHOWN };
    if !args.selection.names_one_recipient() {
        if let Some(row) = args.selection.rows.as_ref().map(RowSet::last_row).filter(|row| *row > last) {
            return Err(Error::NoSuchRow { row, last }.into());
        }
        let selection = args.selection.row_selection(frozen.brief.region)?;
        let rows = RunResults::open(ledger.as_ref(), &run, has_owner)
            .await?
            .with_selection(selection)
            .load_listed_rows()
            .await?;
        let listed: RoaringBitmap = rows.iter().take(limit).collect();
        let recipients = find_recipients_by_row(&copies, &frozen, &listed)?;
        let histories = MessageHistory::load_all(ledger.as_ref(), &run, has_owner, &recipients).await?;
        let earlier_runs = find_earlier_runs(context, ledger.as_ref(), &run, has_owner, &histories).await?;
        show_histories(context, &run, &histories, &earlier_runs, rows.len() - listed.len());
        return Ok(exit::SUCCESS);
    }
    let key = recipient_key(&run, last, &args.selection, &frozen.brief)?;
    let recipients = find_recipients(&copies, &frozen, key)?;
    let (histories, more) =
        MessageHistory::load_for_number(ledger.as_ref(), &run, has_owner, &recipients, limit).await?;
    let earlier_runs = find_earlier_runs(context, ledger.as_ref(), &run, has_owner, &histories).await?;
    match histories.as_slice() {
        [] => return Err(unknown_recipient(&run, key)),
        [history] if context.output.json => context.output.print_object(&history_json(&run, history)),
        [history] => context.output.print_result(describe_history(context, &run, history, &earlier_runs)),
        histories => show_histories(context, &run, histories, &earlier_runs, more),
    }
    Ok(exit::SUCCESS)
}

/// The names of the runs that had already sent the message, by skipped row.
type EarlierRuns = BTreeMap<Row, String>;

/// Finds the runs that sent the messages to the rows of `run` that were skipped as already sent. JSON does not show
/// these runs.
async fn find_earlier_runs(
    context: &Context,
    ledger: &dyn Ledger,
    run: &Run,
    has_owner: bool,
    histories: &[MessageHistory],
) -> Result<EarlierRuns, CommandFailure> {
    let is_already_sent = |history: &&MessageHistory| history.left_out.as_deref() == Some(ALREADY_SENT);
    let rows: RoaringBitmap = histories.iter().filter(is_already_sent).map(|history| history.row.get()).collect();
    if rows.is_empty() || context.output.json {
        return Ok(EarlierRuns::new());
    }
    let results = RunResults::open(ledger, run, has_owner).await?.with_rows(rows);
    let mut objects = Vec::new();
    results.write_json(&mut objects).await?;
    let rows: Vec<Value> = serde_json::from_slice(&[b"[", objects.as_slice(), b"]"].concat())
        .map_err(|error| CommandFailure::new(exit::BUG, error.to_string()))?;
    let earlier_run = |row: &Value| {
        let number = u32::try_from(row["row"].as_u64()?).ok()?;
        let name = row["message_run"].as_str().filter(|name| !name.is_empty())?;
        Some((Row::new(number), name.to_owned()))
    };
    Ok(rows.iter().filter_map(earlier_run).collect())
}

/// Prints the histories of selected messages. `more` counts the selected messages that are not shown.
fn show_histories(context: &Context, run: &Run, histories: &[MessageHistory], earlier_runs: &EarlierRuns, more: u64) {
    let (output, name) = (&context.output, run.name());
    if output.json {
        let messages: Vec<Value> = histories.iter().map(|history| message_json(run, history)).collect();
        output.print_object(&json!({ "run": name, "messages": messages, "more": more, "exit": exit::SUCCESS }));
        return;
    }
    let mut text = StyledText::new();
    for history in histories {
        // Only the history of a single message includes answer bodies.
        let is_shown = |event: &HistoryEvent| !matches!(event, HistoryEvent::Answer { .. });
        text.extend(render_history(run, history, earlier_runs, is_shown));
        text.add_blank();
    }
    let listed = histories.len() as u64;
    let count = match listed {
        0 => format!("{name}: no messages match this selection"),
        _ if more > 0 => format!("{name}: {listed} of {}", format_count(listed + more, "message")),
        _ => format!("{name}: {}", format_count(listed, "message")),
    };
    text.add_line(0, [count.into()]);
    if histories.is_empty() || more > 0 {
        text.push(StyledLine::next_step(output.command(format!("results {name} --out -"))));
    }
    output.print_result(text);
}

/// Reads the last row of a run. Lookups, tests and code calls share a run, to which each of them adds a row.
async fn read_last_row(ledger: &dyn Ledger, run: &Run) -> Result<Row, CommandFailure> {
    if !run.shared {
        return Ok(run.last_row());
    }
    let rows = RunView::load(ledger, run.clone(), false).await?.run.recipients;
    Ok(Row::new(u32::try_from(rows).unwrap_or(u32::MAX).saturating_add(Row::HEADER.get())))
}

/// Returns the key of the selected row or phone number; a selected row must exist in the run.
fn recipient_key(
    run: &Run,
    last: Row,
    selected: &SelectionArgs,
    brief: &CampaignBrief,
) -> Result<RecipientKey, CommandFailure> {
    match (selected.rows.as_ref().and_then(RowSet::single_row), &selected.to) {
        (Some(row), _) if row > Row::HEADER && row <= last => Ok(RecipientKey::Row(row)),
        (None, Some(typed)) => parse_phone(typed, brief.region).map(RecipientKey::Number),
        (Some(row), _) if run.shared => {
            let rows = if last > Row::HEADER { format!("; its rows are 2 to {last}") } else { String::new() };
            Err(CommandFailure::invalid(format!("{} has no row {row}{rows}", run.name())))
        }
        _ => Err(CommandFailure::invalid(format!("{} has rows 2 to {last}; row 1 is the header", run.name()))),
    }
}

fn unknown_recipient(run: &Run, key: RecipientKey) -> CommandFailure {
    CommandFailure::invalid(match key {
        RecipientKey::Row(row) if run.shared => format!("{} has no row {row}", run.name()),
        RecipientKey::Row(row) => format!("row {row} in the list for {} is blank", run.name()),
        RecipientKey::Number(_) if run.shared => format!("{} has no message to that number", run.name()),
        RecipientKey::Number(_) => format!("that number is not in the list of {}", run.name()),
    })
}

fn history_json(run: &Run, history: &MessageHistory) -> Value {
    let mut object = message_json(run, history);
    object["exit"] = exit::SUCCESS.into();
    object
}

fn message_json(run: &Run, history: &MessageHistory) -> Value {
    let MessageHistory { row, phone, state, left_out, entries } = history;
    json!({
        "run": run.name(), "row": row.get(), "to": phone.map(|phone| phone.to_string()),
        "state": state.name(), "reason": left_out,
        "history": entries.iter().filter_map(entry_json).collect::<Vec<_>>(),
        "questions": history.find_inquiries().map(inquiries_json),
    })
}

/// An entry of a message's history as JSON. `None` for status requests, which have a separate member.
fn entry_json(HistoryEntry { at, event }: &HistoryEntry) -> Option<Value> {
    let mut json = match event {
        HistoryEvent::Attempt { envelope, id, others: _ } => {
            json!({ "event": "attempt", "envelope": envelope, "id": id.map_or(0, |id| id.get()) })
        }
        HistoryEvent::Outcome { envelope, outcome } => {
            json!({ "event": "outcome", "envelope": envelope, "outcome": outcome_json(outcome) })
        }
        HistoryEvent::Answer { envelope, body } => json!({ "event": "answer", "envelope": envelope, "body": body }),
        HistoryEvent::Change { envelope, change } => {
            json!({ "event": "change", "envelope": envelope, "change": change_json(change) })
        }
        HistoryEvent::Receipt(receipt) => receipt_json(receipt),
        HistoryEvent::Inquiries(_) => return None,
    };
    json["at"] = at.to_string().into();
    Some(json)
}

/// The status requests about a message as JSON.
fn inquiries_json(inquiries: &AskedRow) -> Value {
    // The row is in the message, and the time of the last denial only determines whether the gateway is asked again.
    let AskedRow { row: _, envelope, asked, negatives, first_at, last_at, negative_at: _, answer } = inquiries;
    json!({
        "envelope": envelope, "asked": asked, "denials": negatives, "first_at": first_at.to_string(),
        "last_at": last_at.to_string(), "answer": answer,
    })
}

/// The outcome of an attempt as JSON.
fn outcome_json(outcome: &OperationOutcome) -> Value {
    let mut json = match outcome {
        OperationOutcome::Accepted { msg_id, parts, answer } => json!({
            "msg_id": msg_id.as_ref().map(ToString::to_string), "parts": parts, "answer": answer,
        }),
        OperationOutcome::Queued { request_id } => json!({ "request_id": request_id }),
        OperationOutcome::Rejected { error } => json!({ "error": error }),
        OperationOutcome::NotSent { reason } | OperationOutcome::InDoubt { reason } => json!({ "reason": reason }),
    };
    let state = match outcome {
        OperationOutcome::NotSent { .. } => RowState::NotSent,
        other => RowState::from_outcome(other),
    };
    json["state"] = state.name().into();
    json
}

/// A change of a message as JSON.
fn change_json(change: &RowChange) -> Value {
    let decided = |decision: &str, by: &Author, why: Option<&String>| {
        let (by, rule) = match by {
            Author::Person(name) => (Some(name), None),
            Author::Policy(rule) => (None, Some(rule)),
        };
        json!({ "what": decision, "by": by, "rule": rule, "why": why })
    };
    match change {
        RowChange::Found { status, msg_id, channel } => {
            let mut json =
                json!({ "what": "found", "status": status, "msg_id": msg_id.as_ref().map(ToString::to_string) });
            if let Some(channel) = channel {
                json["channel"] = channel.as_str().into();
            }
            json
        }
        RowChange::NotFound { asked } => json!({ "what": "not_found", "asked": asked }),
        RowChange::Unresolved { asked } => json!({ "what": "unresolved", "asked": asked }),
        RowChange::AssumedSent { by, why } => decided("sent", by, why.as_ref()),
        RowChange::NotSent { by, why } => decided("not_sent", by, why.as_ref()),
        RowChange::SendAgain { by, why } => decided("send_again", by, why.as_ref()),
        RowChange::Retry { by, order } => {
            let mut json = decided("retry", by, None);
            json["order"] = (*order).into();
            json
        }
    }
}

/// Describes the history of a message, with the gateway's answer and the next step.
fn describe_history(context: &Context, run: &Run, history: &MessageHistory, earlier_runs: &EarlierRuns) -> StyledText {
    let mut text = render_history(run, history, earlier_runs, |_| true);
    text.extend(history.find_answer().map(format_answer_members).unwrap_or_default());
    text.push(StyledLine::next_step(next_command(context, run, history)));
    text
}

/// Renders the history of a message, with the entries for which `is_shown` is true.
fn render_history(
    run: &Run,
    history: &MessageHistory,
    earlier_runs: &EarlierRuns,
    is_shown: impl Fn(&HistoryEvent) -> bool,
) -> StyledText {
    let MessageHistory { row, phone, state, left_out, entries } = history;
    let to = phone.map(|phone| format!(" to +{phone}")).unwrap_or_default();
    let mut heading = status::run_heading(&run.name(), [format!("row {row}{to}").as_str()]);
    heading.extend([dim(" · "), status::state_span(*state)]);
    let mut text = StyledText::new();
    text.add_line(0, heading);
    if let Some(reason) = left_out {
        let outcome = if *state == RowState::Skipped { "skipped in this run" } else { "never sent" };
        let earlier = earlier_runs.get(row).map(|earlier| format!(" in {earlier}")).unwrap_or_default();
        text.add_line(2, [plain(format!("{outcome}: {reason}{earlier}"))]);
    }
    for HistoryEntry { at, event } in entries.iter().filter(|entry| is_shown(&entry.event)) {
        let time = format_local_second(*at);
        let hang = time.len() + 2;
        let words = span(event_meaning(event), describe_event(event, history.count_attempts()));
        text.push(StyledLine::new([dim(time), plain("  "), words]).with_indent(2).with_hang(hang));
    }
    text
}

/// The meaning of a history event for the message, which determines the colour of the event.
fn event_meaning(event: &HistoryEvent) -> SpanMeaning {
    match event {
        HistoryEvent::Outcome { outcome, .. } => match outcome {
            OperationOutcome::NotSent { .. } => SpanMeaning::Bad,
            other => status::state_meaning(RowState::from_outcome(other)),
        },
        HistoryEvent::Receipt(receipt) => match receipt.status.delivery_state() {
            DeliveryState::Delivered | DeliveryState::Read => SpanMeaning::Good,
            DeliveryState::Failed => SpanMeaning::Bad,
            DeliveryState::Pending => SpanMeaning::Plain,
        },
        HistoryEvent::Change { change: RowChange::NotFound { .. } | RowChange::Unresolved { .. }, .. } => {
            SpanMeaning::Caution
        }
        _ => SpanMeaning::Plain,
    }
}

fn describe_event(event: &HistoryEvent, attempts: usize) -> String {
    match event {
        HistoryEvent::Attempt { envelope, id, others } => {
            let id = id.map_or(0, |id| id.get());
            let with_others =
                if *others == 0 { String::new() } else { format!(", with {}", format_count(*others, "other message")) };
            format!("sent in request {envelope} as id {id}{with_others}")
        }
        HistoryEvent::Outcome { envelope: _, outcome } => describe_outcome(outcome),
        HistoryEvent::Answer { envelope: _, body } => {
            let beginning: String = body.chars().take(MAX_RESPONSE_LENGTH).collect();
            format!("gateway response: {}", beginning.escape_debug())
        }
        HistoryEvent::Inquiries(inquiries) => describe_inquiries(inquiries, attempts),
        HistoryEvent::Receipt(receipt) => describe_receipt(receipt),
        HistoryEvent::Change { envelope: _, change } => describe_change(change),
    }
}

fn describe_outcome(outcome: &OperationOutcome) -> String {
    match outcome {
        OperationOutcome::Accepted { msg_id, parts, answer: _ } => {
            let msg_id = msg_id.as_ref().map(|id| format!(" as msg_id {id}")).unwrap_or_default();
            let parts = parts.map(|parts| format!(", {}", format_count(parts.into(), "part"))).unwrap_or_default();
            format!("accepted by the gateway{msg_id}{parts}")
        }
        OperationOutcome::Queued { request_id } => format!("queued by the gateway as request_id {request_id}"),
        OperationOutcome::Rejected { error } => format!("rejected by the gateway: {error}"),
        OperationOutcome::NotSent { reason } => format!("not sent: {reason}"),
        OperationOutcome::InDoubt { reason } => format!("in doubt: {reason}"),
    }
}

fn describe_change(change: &RowChange) -> String {
    let because = |reason: &Option<String>| reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let decided =
        |by: &Author| if campaign_runs::is_known_author(by) { format!(", decided by {by}") } else { String::new() };
    match change {
        RowChange::Found { status, msg_id, channel } => {
            let msg_id = msg_id.as_ref().map(|id| format!(" as msg_id {id}")).unwrap_or_default();
            let channel = channel.as_ref().map(|channel| format!(" on {}", channel.as_str())).unwrap_or_default();
            format!("reconciled: the gateway has a record of the message{msg_id}: {status}{channel}")
        }
        RowChange::NotFound { asked } => {
            format!(
                "not found: the gateway was asked {} and has no record of the message",
                format_count((*asked).into(), "time")
            )
        }
        RowChange::Unresolved { asked } => {
            format!(
                "unresolved: the gateway was asked {} and gave no conclusive response",
                format_count((*asked).into(), "time")
            )
        }
        RowChange::AssumedSent { by, why: reason } => format!("marked as sent{}{}", decided(by), because(reason)),
        RowChange::NotSent { by, why: reason } => format!("marked as not sent{}{}", decided(by), because(reason)),
        RowChange::SendAgain { by, why: reason } => format!("resend requested{}{}", decided(by), because(reason)),
        RowChange::Retry { by, order: _ } => format!("retry requested{}", decided(by)),
    }
}

fn describe_inquiries(inquiries: &AskedRow, attempts: usize) -> String {
    // The line already starts with the time of the last request, so `last_at` is not repeated.
    let AskedRow { row: _, envelope, asked, negatives, first_at: _, last_at: _, negative_at: _, answer } = inquiries;
    // Older ledgers do not record the attempt.
    let about = match (attempts, envelope) {
        (0 | 1, _) | (_, 0) => String::new(),
        _ => format!(" about the attempt in request {envelope}"),
    };
    let denials = match negatives {
        0 => String::new(),
        1 => ", 1 negative response counted".to_owned(),
        several => format!(", {several} negative responses counted"),
    };
    format!("asked the gateway {}{about}{denials}; last response: {answer}", format_count((*asked).into(), "time"))
}

fn next_command(context: &Context, run: &Run, history: &MessageHistory) -> String {
    let (row, name, output) = (history.row, run.name(), &context.output);
    match history.state {
        RowState::InDoubt => {
            let reconcile = output.command(format!("reconcile {name}"));
            format!("{reconcile}, or {}", output.command(format!("resolve {name} --rows {row} --as DECISION")))
        }
        RowState::Unresolved => output.command(format!("resolve {name} --rows {row} --as DECISION")),
        RowState::Rejected | RowState::NotSent => match SingleKind::from_run(run) {
            Some(single) => output.repeat_command(single, run),
            None if run.progress == RunProgress::Finished => output.command(format!("retry {name}")),
            None => output.command(format!("status {name}")),
        },
        _ => output.command(format!("status {name}")),
    }
}

/// A receipt as JSON.
fn receipt_json(receipt: &Receipt) -> Value {
    let Receipt { source, status, channel, updated, msg_id, request_id, error, digit, duration, replies } = receipt;
    let media_json =
        |Media { url, filename, filesize }: &Media| json!({ "url": url, "filename": filename, "filesize": filesize });
    let reply_json = |RecipientReply { at, text, media }: &RecipientReply| {
        let media = media.as_ref().map(media_json);
        json!({ "at": at.map(|at| at.to_string()), "text": text, "media": media })
    };
    let source = match source {
        ReceiptSource::Webhook => "webhook",
        ReceiptSource::Asked => "asked",
        ReceiptSource::AskedLast => "asked_last",
    };
    json!({
        "event": "receipt", "source": source, "status": status.name(),
        "channel": channel.as_ref().map(ReportedChannel::as_str), "updated": updated.map(|at| at.to_string()),
        "msg_id": msg_id.as_ref().map(ToString::to_string), "request_id": request_id,
        "error": error, "digit": digit, "duration": duration,
        "replies": replies.iter().map(reply_json).collect::<Vec<_>>(),
    })
}

fn describe_receipt(receipt: &Receipt) -> String {
    // The identifiers are in the entries of the attempt and its outcome.
    let Receipt { source, status, channel, updated, msg_id: _, request_id: _, error, digit, duration, replies } =
        receipt;
    let mut text = match source {
        ReceiptSource::Webhook => format!("receipt: {status}"),
        ReceiptSource::Asked => format!("receipt (requested): {status}"),
        ReceiptSource::AskedLast => {
            format!("last receipt (requested after all channel lifetimes had expired): {status}")
        }
    };
    text += &channel.as_ref().map(|channel| format!(" on {}", channel.as_str())).unwrap_or_default();
    text += &updated.map(|at| format!(", since {}", format_local_second(at))).unwrap_or_default();
    text += &error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    text += &duration.map(|seconds| format!(", call duration {seconds} s")).unwrap_or_default();
    text += &digit.as_ref().map(|digit| format!(", pressed {digit}")).unwrap_or_default();
    for RecipientReply { at: _, text: reply, media: _ } in replies {
        text += &format!(", replied: {}", if reply.is_empty() { "(a file)" } else { reply });
    }
    text
}
