//! `campaign find`: every message to a phone number.

use serde_json::{Value, json};

use super::args::FindArgs;
use super::clock;
use super::context::Context;
use super::exit;
use super::failure::CommandFailure;
use super::region::parse_number_of_campaigns;
use super::states;
use super::suppress;
use super::text::{Span, StyledLine, StyledText, bad, caution, dim, join_spans, plain, strong};
use crate::domain::Phone;
use crate::ledger::{OptOut, RowState};
use crate::report::{RecipientInRun, RecipientRecord, UnreadableRun, format_count, opt_out_json};

pub(super) async fn find_messages(context: &Context, args: &FindArgs) -> Result<u8, CommandFailure> {
    let region = args.region.region.as_deref();
    let typed = args.phone.as_ref().or(args.selection.to.as_ref());
    let typed = typed.ok_or_else(|| CommandFailure::invalid("specify a phone number"))?;
    let phone = parse_number_of_campaigns(context, typed, (region, None)).await?;
    args.selection.refuse_contradiction()?;
    let selection = args.selection.rows_without_number();
    let (person, opt_outs) = match context.open_existing_ledger().await? {
        None => (RecipientRecord::default(), Vec::new()),
        Some(ledger) => {
            (RecipientRecord::find(ledger.as_ref(), phone, &selection).await?, ledger.find_opt_outs(phone).await?)
        }
    };
    // An empty answer about an unreadable run must not look complete.
    let code = if person.unreadable.is_empty() { exit::SUCCESS } else { exit::STORAGE };
    match context.output.json {
        true => context.output.print_object(&messages_json(phone, &person, &opt_outs, code)),
        false => {
            context.output.print_result(messages_text(context, (phone, !selection.is_everything()), &person, &opt_outs))
        }
    }
    Ok(code)
}

fn messages_json(phone: Phone, person: &RecipientRecord, opt_outs: &[OptOut], code: u8) -> Value {
    let run = |RecipientInRun { run, known, .. }: &RecipientInRun| {
        json!({
            "run": run.name(), "live": run.live, "gateway": run.gateway, "began_at": format!("{:.3}", run.began_at),
            "rows": known,
        })
    };
    let unread = |UnreadableRun { run, why }: &UnreadableRun| json!({ "run": run, "why": why });
    let mut object = json!({
        "phone": phone.to_string(), "runs": person.runs.iter().map(run).collect::<Vec<_>>(),
        "suppressed": opt_outs.iter().map(opt_out_json).collect::<Vec<_>>(),
        "unread": person.unreadable.iter().map(unread).collect::<Vec<_>>(), "exit": code,
    });
    if person.purged > 0 {
        object["purged"] = person.purged.into();
    }
    if !person.unreadable.is_empty() {
        object["error"] = "some runs could not be searched".into();
    }
    object
}

fn messages_text(
    context: &Context,
    (phone, selective): (Phone, bool),
    person: &RecipientRecord,
    opt_outs: &[OptOut],
) -> StyledText {
    let (rows, runs) = (format_count(person.count_rows(), "row"), format_count(person.runs.len() as u64, "run"));
    let mut text = StyledText::new();
    let found = match person.count_rows() {
        0 if selective => "no messages match this selection".to_owned(),
        0 => "not in any run".to_owned(),
        _ => format!("{rows} in {runs}"),
    };
    text.add_line(0, [strong(format!("+{phone}")), plain(format!(": {found}"))]);
    for RecipientInRun { run, known, .. } in &person.runs {
        for row in known {
            text.push(StyledLine::new(message_spans(row, run.live)).with_indent(2));
        }
    }
    for opt_out in opt_outs {
        text.add_line(0, [caution("on the suppression list: "), plain(suppress::describe_opt_out(opt_out).trim_end())]);
    }
    for UnreadableRun { run, why } in &person.unreadable {
        text.add_line(0, [bad(format!("cannot search {run}: ")), plain(why.as_str())]);
    }
    if person.purged > 0 {
        let runs = format_count(person.purged, "purged run");
        text.add_line(0, [plain(format!("{runs} cannot be searched, because the recipients were erased"))]);
    }
    let last = person.runs.iter().filter_map(|run| Some((run.run.name(), run.rows.max()?))).next_back();
    text.push(StyledLine::next_step(match last {
        Some((run, row)) => context.output.command(format!("show {run} --row {row}")),
        None => context.output.command("status"),
    }));
    text
}

/// A message from the columns of the results: where it is, its state and its times.
fn message_spans(row: &Value, live: bool) -> Vec<Span> {
    let told = |name: &str| row[name].as_str().unwrap_or_default();
    let state = RowState::ALL.into_iter().find(|state| state.name() == told("state")).map(states::state_span);
    let channel = match told("delivered_by") {
        "" => told("operation").to_owned(),
        channel => format!("{} by {channel}", told("operation")),
    };
    let mut parts = vec![
        vec![strong(told("run")), plain(format!(" row {}", row["row"]))],
        vec![state.unwrap_or_else(|| plain(told("state")))],
    ];
    if !channel.is_empty() {
        parts.push(vec![plain(channel)]);
    }
    if !live {
        parts.push(vec![plain("rehearsal")]);
    }
    let delivered = match told("delivered_at_is") {
        "at_latest" => "delivered no later than",
        "uncertain" => "delivery time uncertain, reported as",
        _ => "delivered",
    };
    for (name, what) in [("submitted_at", "sent"), ("delivered_at", delivered), ("updated_at", "last update")] {
        if !told(name).is_empty() {
            parts.push(vec![dim(format!("{what} {}", clock::format_program_time(told(name)))).unbroken()]);
        }
    }
    let reasons = ["reason", "error"].map(told).into_iter().filter(|text| !text.is_empty());
    parts.extend(reasons.map(|text| vec![plain(text)]));
    join_spans(parts, " · ")
}
