//! `campaign outcome`: purchases after a message, compared with the holdout group.

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::args::OutcomeArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::number::region;
use super::table::Table;
use super::text::{Line, Meaning, Text, caution, plain, span, strong};
use crate::delivery::FrozenInputs;
use crate::domain::Row;
use crate::report::{Arm, Effect, PurchaseFile, Purchases, Verdict, duration, plural, thousands};
use crate::runs::{self, Error};

/// The name of the row of the holdout group.
const HOLDOUT: &str = "holdout";

pub(super) async fn outcome(context: &Context, args: OutcomeArgs) -> Result<u8, Failure> {
    let (ledger, run) = context.named_run(&args.run).await?;
    let frozen = FrozenInputs::of_run(ledger.as_ref(), &run).await.map_err(Error::from)?;
    let zone = match &frozen.brief.timezone {
        Some(name) => TimeZone::get(name).map_err(|error| Failure::wrong(error.to_string()))?,
        None => TimeZone::system(),
    };
    let zone_name = zone.iana_name().unwrap_or("this computer's time zone").to_owned();
    let file = PurchaseFile {
        path: args.file.clone(),
        phone: args.phone.clone(),
        at: args.at.clone(),
        amount: args.amount.clone(),
        region: region(args.region.as_deref())?.or(frozen.brief.region),
        zone,
    };
    let waiting = context.output.waiting("Reading the purchases…");
    let reading = tokio::task::spawn_blocking(move || Purchases::read(&file)).await;
    let purchases = reading.map_err(|error| Failure::new(exit::BUG, error.to_string()))?.map_err(Error::Findings)?;
    let edition = runs::edition_of(ledger.as_ref(), &run).await?;
    let effect = Effect::of(ledger.as_ref(), &edition, &purchases, args.within).await.map_err(Error::from)?;
    drop(waiting);
    if context.output.json {
        let within = args.within.as_secs();
        context.output.object(&object((&run.name(), within), &effect, &purchases, args.amount.is_some()));
    } else {
        let head = format!(
            "{}: {} in `{}`; purchases count within {} after the message; times in the file are in {zone_name}\n",
            run.name(),
            plural(purchases.len() as u64, "purchase"),
            args.file.display(),
            duration(args.within.unsigned_abs())
        );
        let mut text = Text::from(head);
        text.extend(words(&effect, &purchases, args.amount.is_some()));
        context.output.done(text, exit::FINE);
    }
    Ok(exit::FINE)
}

fn words(effect: &Effect, purchases: &Purchases, has_amounts: bool) -> Text {
    let holdout = effect.holdout.as_ref();
    let mut text = Text::new();
    for (why, (rows, first)) in &purchases.unusable {
        text.line(2, [caution(format!("skipped: {} with {why}, the first in row {first}", plural(*rows, "row")))]);
    }
    if effect.waiting > 0 {
        text.line(2, [plain(format!("not counted, because not sent yet: {}", plural(effect.waiting, "message")))]);
    }
    let sent = effect.sent.iter().map(|(variant, arm)| (variant.as_deref().unwrap_or("sent"), arm));
    let rows = sent.clone().chain(holdout.map(|arm| (HOLDOUT, arm)));
    let rows = rows.map(|(name, arm)| {
        let against = holdout.filter(|holdout| !std::ptr::eq(*holdout, arm));
        let above = against.map_or_else(String::new, |holdout| {
            let difference = arm.bought.above(holdout.bought);
            let middle = arm.bought.share() - holdout.bought.share();
            format!("{} ({} to {})", points(middle), points(difference.low), points(difference.high))
        });
        let interval = arm.bought.interval();
        let amount = if has_amounts { arm.amount.shortest().digits() } else { String::new() };
        [
            name.to_owned(),
            thousands(arm.bought.people),
            thousands(arm.bought.did),
            percent(arm.bought.share()),
            format!("{} to {}", percent(interval.low), percent(interval.high)),
            above,
            thousands(arm.purchases),
            amount,
        ]
    });
    let paid = if has_amounts { "amount" } else { "" };
    let header = ["", "people", "bought", "share", "95 % interval", "points above the holdout", "purchases", paid];
    text.extend(Table::new(header, rows));
    match holdout {
        None => text.push(Line::prose(
            "there was no holdout group, so the effect of the messages cannot be measured; to have one, set `holdout: 10%`",
        )),
        Some(holdout) => sent.for_each(|(name, arm)| text.push(judged(name, arm, holdout))),
    }
    text
}

/// The verdict about the recipients of a message.
fn judged(name: &str, arm: &Arm, holdout: &Arm) -> Line {
    let (meaning, what) = match Verdict::of(arm.bought, holdout.bought) {
        Verdict::More => (Meaning::Good, "a higher share of recipients made a purchase than in the holdout group"),
        Verdict::Fewer => (Meaning::Bad, "a lower share of recipients made a purchase than in the holdout group"),
        Verdict::Unproven => {
            (Meaning::Caution, "not enough data: the difference from the holdout group might be due to chance")
        }
        Verdict::TooFew => (Meaning::Caution, "not enough data: at least 30 people are needed in each group"),
    };
    Line::new([strong(name), plain(": "), span(meaning, what)])
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn points(difference: f64) -> String {
    format!("{:+.1}", difference * 100.0)
}

fn object((run, within): (&str, i64), effect: &Effect, purchases: &Purchases, has_amounts: bool) -> Value {
    let arm = |variant: Option<&str>, arm: &Arm| {
        let interval = arm.bought.interval();
        let mut object = json!({
            "people": arm.bought.people, "bought": arm.bought.did, "share": arm.bought.share(),
            "low": interval.low, "high": interval.high, "purchases": arm.purchases,
            "amount": has_amounts.then(|| arm.amount.shortest()),
        });
        if let (Some(holdout), true) = (&effect.holdout, variant != Some(HOLDOUT)) {
            let above = arm.bought.above(holdout.bought);
            object["above_holdout"] = json!({ "low": above.low, "high": above.high });
            object["verdict"] = Verdict::of(arm.bought, holdout.bought).word().into();
        }
        object["variant"] = json!(variant.filter(|name| *name != HOLDOUT));
        object
    };
    let unusable = purchases.unusable.iter();
    let unusable: Vec<Value> = unusable
        .map(|(why, (rows, first)): (_, &(u64, Row))| json!({ "why": why, "rows": rows, "first": first.get() }))
        .collect();
    json!({
        "run": run,
        "within": within,
        "sent": effect.sent.iter().map(|(variant, sent)| arm(variant.as_deref(), sent)).collect::<Vec<_>>(),
        "holdout": effect.holdout.as_ref().map(|holdout| arm(Some(HOLDOUT), holdout)),
        "waiting": effect.waiting,
        "unusable": unusable,
        "exit": exit::FINE,
    })
}
