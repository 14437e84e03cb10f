//! `campaign find`: every message to a person.

use serde_json::{Value, json};

use super::args::FindArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::number::number;
use super::suppress;
use crate::domain::Phone;
use crate::finding::one_line;
use crate::ledger::OptOut;
use crate::report::{Person, PersonInRun, UnreadRun, opt_out_json, plural};

pub(super) async fn find(context: &Context, args: &FindArgs) -> Result<u8, Failure> {
    let phone = number(&args.phone, args.region.as_deref())?;
    let (person, opt_outs) = match context.existing_ledger().await? {
        None => (Person::default(), Vec::new()),
        Some(ledger) => (Person::find(ledger.as_ref(), phone).await?, ledger.opt_outs_of(phone).await?),
    };
    // Who reads "nothing" where something could not be read takes it for all that there is.
    let code = if person.unread.is_empty() { exit::FINE } else { exit::STORAGE };
    match context.output.json {
        true => context.output.object(&object(phone, &person, &opt_outs, code)),
        false => context.output.result(&text(context, phone, &person, &opt_outs)),
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
        object["error"] = "some runs could not be looked through".into();
    }
    object
}

fn text(context: &Context, phone: Phone, person: &Person, opt_outs: &[OptOut]) -> String {
    let (rows, runs) = (plural(person.rows(), "row"), plural(person.runs.len() as u64, "run"));
    let mut text = match person.rows() {
        0 => format!("+{phone}: no run has it\n"),
        _ => format!("+{phone}: {rows} in {runs}\n"),
    };
    for PersonInRun { run, known, .. } in &person.runs {
        let rehearsal = if run.live { "" } else { " · a rehearsal" };
        for row in known {
            text += &format!("  {}{rehearsal}\n", one_line(&line(row)));
        }
    }
    for opt_out in opt_outs {
        text += &format!("on the suppression list: {}", suppress::about(opt_out));
    }
    for UnreadRun { run, why } in &person.unread {
        text += &format!("{run} could not be looked through: {}\n", one_line(why));
    }
    if person.purged > 0 {
        text += &format!("{} purged: nothing is known any more of whom they sent to\n", were(person.purged));
    }
    let last = person.runs.iter().filter_map(|run| Some((run.run.name(), run.rows.max()?))).next_back();
    text + &match last {
        Some((run, row)) => format!("next: {}\n", context.output.command(format!("show {run} --row {row}"))),
        None => format!("next: {}\n", context.output.command("status".to_owned())),
    }
}

fn were(runs: u64) -> String {
    format!("{} {}", plural(runs, "run"), if runs == 1 { "was" } else { "were" })
}

/// A message by the columns of the results: where it stands, what became of it and when.
fn line(row: &Value) -> String {
    let told = |name: &str| row[name].as_str().unwrap_or_default();
    let mut words = vec![
        told("run").to_owned(),
        format!("row {}", row["row"]),
        told("state").replace('_', " "),
        match told("delivered_by") {
            "" => told("operation").to_owned(),
            channel => format!("{} by {channel}", told("operation")),
        },
    ];
    let delivered = match told("delivered_at_is") {
        "at_latest" => "delivered at the latest",
        "uncertain" => "delivered at an uncertain time, reported as",
        _ => "delivered",
    };
    for (name, what) in [("submitted_at", "sent"), ("delivered_at", delivered), ("updated_at", "last word")] {
        if !told(name).is_empty() {
            words.push(format!("{what} {}", told(name)));
        }
    }
    words.extend(["reason", "error"].map(told).into_iter().filter(|text| !text.is_empty()).map(str::to_owned));
    words.join(" · ")
}
