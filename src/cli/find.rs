//! `campaign find`: every message to a phone number.

use serde_json::{Value, json};

use super::args::FindArgs;
use super::clock;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::region::number_of_campaigns;
use super::states;
use super::suppress;
use super::text::{Line, Span, Text, bad, caution, dim, joined, plain, strong};
use crate::domain::Phone;
use crate::ledger::{OptOut, State};
use crate::report::{Person, PersonInRun, UnreadRun, opt_out_json, plural};

pub(super) async fn find(context: &Context, args: &FindArgs) -> Result<u8, Failure> {
    let region = args.region.region.as_deref();
    let typed = args.phone.as_ref().or(args.selection.to.as_ref());
    let typed = typed.ok_or_else(|| Failure::wrong("specify a phone number"))?;
    let phone = number_of_campaigns(context, typed, (region, None)).await?;
    args.selection.refuse_contradiction()?;
    let selection = args.selection.without_number();
    let (person, opt_outs) = match context.existing_ledger().await? {
        None => (Person::default(), Vec::new()),
        Some(ledger) => (Person::find(ledger.as_ref(), phone, &selection).await?, ledger.opt_outs_of(phone).await?),
    };
    // An empty answer about an unreadable run must not look complete.
    let code = if person.unread.is_empty() { exit::FINE } else { exit::STORAGE };
    match context.output.json {
        true => context.output.object(&object(phone, &person, &opt_outs, code)),
        false => context.output.result(text(context, (phone, !selection.is_everything()), &person, &opt_outs)),
    }
    Ok(code)
}

fn object(phone: Phone, person: &Person, opt_outs: &[OptOut], code: u8) -> Value {
    let run = |PersonInRun { run, known, .. }: &PersonInRun| {
        json!({
            "run": run.name(), "live": run.live, "gateway": run.gateway, "began_at": format!("{:.3}", run.began_at),
            "rows": known,
        })
    };
    let unread = |UnreadRun { run, why }: &UnreadRun| json!({ "run": run, "why": why });
    let mut object = json!({
        "phone": phone.to_string(), "runs": person.runs.iter().map(run).collect::<Vec<_>>(),
        "suppressed": opt_outs.iter().map(opt_out_json).collect::<Vec<_>>(),
        "unread": person.unread.iter().map(unread).collect::<Vec<_>>(), "exit": code,
    });
    if person.purged > 0 {
        object["purged"] = person.purged.into();
    }
    if !person.unread.is_empty() {
        object["error"] = "some runs could not be searched".into();
    }
    object
}

fn text(context: &Context, (phone, selective): (Phone, bool), person: &Person, opt_outs: &[OptOut]) -> Text {
    let (rows, runs) = (plural(person.rows(), "row"), plural(person.runs.len() as u64, "run"));
    let mut text = Text::new();
    let found = match person.rows() {
        0 if selective => "no messages match this selection".to_owned(),
        0 => "not in any run".to_owned(),
        _ => format!("{rows} in {runs}"),
    };
    text.line(0, [strong(format!("+{phone}")), plain(format!(": {found}"))]);
    for PersonInRun { run, known, .. } in &person.runs {
        for row in known {
            text.push(Line::new(line(row, run.live)).indented(2));
        }
    }
    for opt_out in opt_outs {
        text.line(0, [caution("on the suppression list: "), plain(suppress::about(opt_out).trim_end())]);
    }
    for UnreadRun { run, why } in &person.unread {
        text.line(0, [bad(format!("cannot search {run}: ")), plain(why.as_str())]);
    }
    if person.purged > 0 {
        let runs = plural(person.purged, "purged run");
        text.line(0, [plain(format!("{runs} cannot be searched, because the recipients were erased"))]);
    }
    let last = person.runs.iter().filter_map(|run| Some((run.run.name(), run.rows.max()?))).next_back();
    text.push(Line::next(match last {
        Some((run, row)) => context.output.command(format!("show {run} --row {row}")),
        None => context.output.command("status"),
    }));
    text
}

/// A message from the columns of the results: where it is, its state and its times.
fn line(row: &Value, live: bool) -> Vec<Span> {
    let told = |name: &str| row[name].as_str().unwrap_or_default();
    let state = State::ALL.into_iter().find(|state| state.name() == told("state")).map(states::state);
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
            parts.push(vec![dim(format!("{what} {}", clock::shown(told(name)))).whole()]);
        }
    }
    let reasons = ["reason", "error"].map(told).into_iter().filter(|text| !text.is_empty());
    parts.extend(reasons.map(|text| vec![plain(text)]));
    joined(parts, " · ")
}
