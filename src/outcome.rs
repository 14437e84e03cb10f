//! `campaign outcome`: purchases by a campaign's recipients, compared with the holdout group.

use jiff::tz::TimeZone;
use serde_json::{Value, json};

use super::args::OutcomeArgs;
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::numbers::parse_region;
use super::text::{SpanMeaning, StyledLine, StyledText, TerminalTable, caution, plain, span, strong};
use campaign_core::domain::Row;
use campaign_engine::delivery::FrozenInputs;
use campaign_engine::report::{
    ArmFigures, CampaignEffect, EffectVerdict, PurchaseFile, Purchases, format_count, format_duration, format_thousands,
};
use campaign_runs::Error;

/// The label of the holdout group.
const HOLDOUT_NAME: &str = "holdout";

pub(super) async fn show_outcome(context: &Context, args: OutcomeArgs) -> Result<u8, CommandFailure> {
    let (ledger, run) = context.find_run(&args.run).await?;
    let frozen = FrozenInputs::load_for_run(ledger.as_ref(), &run).await.map_err(Error::from)?;
    let zone = match &frozen.brief.timezone {
        Some(name) => TimeZone::get(name).map_err(|error| CommandFailure::invalid(error.to_string()))?,
        None => TimeZone::system(),
    };
    let zone_name = zone.iana_name().unwrap_or("this computer's time zone").to_owned();
    let file = PurchaseFile {
        path: args.file.clone(),
        phone: args.phone.clone(),
        at: args.at.clone(),
        amount: args.amount.clone(),
        region: parse_region(args.region.as_deref())?.or(frozen.brief.region),
        zone,
    };
    let waiting = context.output.show_spinner("Reading the purchases…");
    let reading = tokio::task::spawn_blocking(move || Purchases::read_file(&file)).await;
    let purchases =
        reading.map_err(|error| CommandFailure::new(exit::BUG, error.to_string()))?.map_err(Error::Findings)?;
    let edition = campaign_runs::list_edition_runs(ledger.as_ref(), &run).await?;
    let effect =
        CampaignEffect::measure(ledger.as_ref(), &edition, &purchases, args.within).await.map_err(Error::from)?;
    drop(waiting);
    if context.output.json {
        let within = args.within.as_secs();
        context.output.print_object(&effect_json(&run.name(), within, &effect, &purchases, args.amount.is_some()));
    } else {
        let head = format!(
            "{}: {} in `{}`; purchases count if made within {} after the message; times in the file are in \
             {zone_name}\n",
            run.name(),
            format_count(purchases.len() as u64, "purchase"),
            args.file.display(),
            format_duration(args.within.unsigned_abs())
        );
        let mut text = StyledText::from(head);
        text.extend(describe_effect(&effect, &purchases, args.amount.is_some()));
        context.output.print_done(text, exit::SUCCESS);
    }
    Ok(exit::SUCCESS)
}

fn describe_effect(effect: &CampaignEffect, purchases: &Purchases, has_amounts: bool) -> StyledText {
    let CampaignEffect { sent, holdout, waiting } = effect;
    let holdout = holdout.as_ref();
    let mut text = StyledText::new();
    for (why, (rows, first)) in &purchases.unusable {
        text.add_line(
            2,
            [caution(format!("skipped: {} with {why}, first in row {first}", format_count(*rows, "row")))],
        );
    }
    if *waiting > 0 {
        text.add_line(2, [plain(format!("not sent yet, so not counted: {}", format_count(*waiting, "message")))]);
    }
    let sent = sent.iter().map(|(variant, arm)| (variant.as_deref().unwrap_or("sent"), arm));
    let rows = sent.clone().chain(holdout.map(|arm| (HOLDOUT_NAME, arm)));
    let rows = rows.map(|(name, arm)| {
        let against = holdout.filter(|holdout| !std::ptr::eq(*holdout, arm));
        let above = against.map_or_else(String::new, |holdout| {
            let difference = arm.buyers.difference_interval(holdout.buyers);
            let middle = arm.buyers.share() - holdout.buyers.share();
            format!(
                "{} ({} to {})",
                format_points(middle),
                format_points(difference.low),
                format_points(difference.high)
            )
        });
        let interval = arm.buyers.wilson_interval();
        let amount = if has_amounts { arm.amount.trim_decimals().to_json_digits() } else { String::new() };
        [
            name.to_owned(),
            format_thousands(arm.buyers.total),
            format_thousands(arm.buyers.successes),
            format_percent(arm.buyers.share()),
            format!("{} to {}", format_percent(interval.low), format_percent(interval.high)),
            above,
            format_thousands(arm.purchases),
            amount,
        ]
    });
    let paid = if has_amounts { "amount" } else { "" };
    let header = ["", "people", "bought", "share", "95% interval", "points above the holdout", "purchases", paid];
    text.extend(TerminalTable::new(header, rows));
    match holdout {
        None => text.push(StyledLine::from_prose(
            "there was no holdout group, so the effect of the messages cannot be measured; to add one, set `holdout: \
             10%`",
        )),
        Some(holdout) => sent.for_each(|(name, arm)| text.push(verdict_line(name, arm, holdout))),
    }
    text
}

/// The verdict about a variant, compared with the holdout group.
fn verdict_line(name: &str, arm: &ArmFigures, holdout: &ArmFigures) -> StyledLine {
    let (meaning, what) = match EffectVerdict::from_proportions(arm.buyers, holdout.buyers) {
        EffectVerdict::More => {
            (SpanMeaning::Good, "a higher share of recipients made a purchase than in the holdout group")
        }
        EffectVerdict::Fewer => {
            (SpanMeaning::Bad, "a lower share of recipients made a purchase than in the holdout group")
        }
        EffectVerdict::Unproven => {
            (SpanMeaning::Caution, "not enough data: the difference from the holdout group might be due to chance")
        }
        EffectVerdict::TooFew => (
            SpanMeaning::Caution,
            "not enough data: at least 30 recipients are needed in each \
                                                         group",
        ),
    };
    StyledLine::new([strong(name), plain(": "), span(meaning, what)])
}

fn format_percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn format_points(difference: f64) -> String {
    format!("{:+.1}", difference * 100.0)
}

fn effect_json(run: &str, within: i64, effect: &CampaignEffect, purchases: &Purchases, has_amounts: bool) -> Value {
    let CampaignEffect { sent, holdout, waiting } = effect;
    let arm_json = |variant: Option<&str>, ArmFigures { buyers, purchases, amount }: &ArmFigures| {
        let interval = buyers.wilson_interval();
        let mut object = json!({
            "people": buyers.total, "bought": buyers.successes, "share": buyers.share(),
            "low": interval.low, "high": interval.high, "purchases": purchases,
            "amount": has_amounts.then(|| amount.trim_decimals()),
        });
        if let (Some(holdout), true) = (holdout, variant != Some(HOLDOUT_NAME)) {
            let above = buyers.difference_interval(holdout.buyers);
            object["above_holdout"] = json!({ "low": above.low, "high": above.high });
            object["verdict"] = EffectVerdict::from_proportions(*buyers, holdout.buyers).as_str().into();
        }
        object["variant"] = json!(variant.filter(|name| *name != HOLDOUT_NAME));
        object
    };
    let unusable = purchases.unusable.iter();
    let unusable: Vec<Value> = unusable
        .map(|(why, (rows, first)): (_, &(u64, Row))| json!({ "why": why, "rows": rows, "first": first.get() }))
        .collect();
    json!({
        "run": run,
        "within": within,
        "sent": sent.iter().map(|(variant, arm)| arm_json(variant.as_deref(), arm)).collect::<Vec<_>>(),
        "holdout": holdout.as_ref().map(|holdout| arm_json(Some(HOLDOUT_NAME), holdout)),
        "waiting": waiting,
        "unusable": unusable,
        "exit": exit::SUCCESS,
    })
}
