//! The page of `plan`: what a second person looks at before approving.

use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::Value;

use super::messages::{MessageView, Messages, Shown, messages};
use super::shared::{Figures, LeftOutTable, way};
use crate::domain::{Row, RowSet};
use crate::ledger::Plan;
use crate::manifest::{OnInDoubt, Resource};
use crate::runs::{Error, Inputs, MadePlan, short};
use crate::web::html::{FindingView, Form, render};
use crate::web::words::{Language, Words};

/// What the page of a plan is made of.
pub struct PlanPage<'c> {
    /// The campaign.
    pub inputs: &'c Inputs,
    /// The plan.
    pub made: &'c MadePlan,
    /// Which messages are shown.
    pub shown: Shown<'c>,
    /// The command that approves it; nothing where it needs no approval.
    pub approve: Option<String>,
    /// The command that sends it.
    pub run: String,
    /// When it was made.
    pub now: Timestamp,
}

#[derive(Serialize)]
struct View {
    name: String,
    way: String,
    file: String,
    made: String,
    digest: String,
    short: String,
    days: u32,
    rows: u64,
    figures: Figures,
    /// Rows that are left, and that this plan does not send to.
    later: u64,
    hours: Option<String>,
    /// Programs, addresses and sources, as programs get them.
    resources: Vec<Value>,
    /// The policy for rows in doubt, unless they stay in doubt.
    on_in_doubt: Option<&'static str>,
    left_out: LeftOutTable,
    findings: Vec<FindingView>,
    messages: Vec<MessageView>,
    shown: usize,
    approve: Option<String>,
    run: String,
}

/// Makes the page, and tells how many rows it shows.
///
/// # Errors
/// When the inputs cannot be read.
pub fn plan_page(page: &PlanPage<'_>, language: Language) -> Result<(String, usize), Error> {
    let PlanPage { inputs, made, shown, approve, run, now } = page;
    let (words, brief, planned, survey) =
        (Words::of(language), &inputs.campaign.brief, &made.planned, &made.list.survey);
    let first = first_rows(&survey.planned_rows(), *shown);
    // Who is left out is in the table; where nobody is sent to, nothing is shown.
    let most = if first.is_some() { shown.most } else { 0 };
    let first = Shown { rows: first.as_ref(), most, ..*shown };
    let Messages { shown: messages, other_findings } =
        messages(inputs, &survey.left_out, &made.findings, first, words)?;
    let (shown, left_out) = (messages.len(), LeftOutTable::of(words, &survey.left_out));
    let view = View {
        name: brief.name.clone(),
        way: way(words, inputs),
        file: inputs.campaign.file.display().to_string(),
        made: words.moment_in_zone(&now.to_zoned(brief.home())),
        digest: made.digest.clone(),
        short: short(&made.digest).to_owned(),
        days: Plan::KEPT_DAYS,
        rows: planned.rows,
        figures: Figures {
            rows: planned.rows,
            messages: planned.messages,
            parts: planned.parts,
            left_out: left_out.all,
            cost: made.cost.as_ref().map(|cost| words.cost(cost, planned.currency.as_deref())),
        },
        later: survey.planned().saturating_sub(planned.messages),
        hours: planned.options.hours.clone(),
        resources: made.resources.iter().map(Resource::json).collect(),
        on_in_doubt: planned.options.on_in_doubt.map(OnInDoubt::name),
        left_out,
        findings: other_findings,
        messages,
        shown,
        approve: approve.clone(),
        run: run.clone(),
    };
    let html = render(language, Form::File, "plan.html", &view).map_err(|error| Error::Input(error.to_string()))?;
    Ok((html, shown))
}

/// The first rows that get a message, of those that are meant; nothing where none does.
fn first_rows(planned: &RoaringBitmap, shown: Shown<'_>) -> Option<RowSet> {
    let meant = |row: &u32| shown.rows.is_none_or(|rows| rows.contains(Row::new(*row)));
    let first: Vec<String> = planned.iter().filter(meant).take(shown.most).map(|row| row.to_string()).collect();
    first.join(",").parse().ok()
}
