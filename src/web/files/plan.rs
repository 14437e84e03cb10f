//! The page of `plan`: what a second person looks at before approving.

use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::Value;

use super::messages::{CampaignMessages, MessageSelection, MessageView, collect_messages};
use super::shared::{CampaignFigures, LeftOutTable, describe_destination};
use crate::domain::{Row, RowSet};
use crate::ledger::Plan;
use crate::manifest::{InDoubtPolicy, Resource};
use crate::runs::{CreatedPlan, Error, Inputs, short_digest};
use crate::web::html::{FindingView, PageFormat, render};
use crate::web::words::{PageLanguage, PageWords};

/// What the page of a plan is made of.
pub struct PlanPage<'c> {
    /// The campaign.
    pub inputs: &'c Inputs,
    /// The plan.
    pub made: &'c CreatedPlan,
    /// Which messages are shown.
    pub shown: MessageSelection<'c>,
    /// The command that approves it; nothing where it needs no approval.
    pub approve: Option<String>,
    /// The command that sends it.
    pub run: String,
    /// When it was made.
    pub now: Timestamp,
}

#[derive(Serialize)]
struct PlanPageView {
    name: String,
    way: String,
    file: String,
    made: String,
    digest: String,
    short: String,
    days: u32,
    rows: u64,
    figures: CampaignFigures,
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
pub fn render_plan_page(page: &PlanPage<'_>, language: PageLanguage) -> Result<(String, usize), Error> {
    let PlanPage { inputs, made, shown, approve, run, now } = page;
    let (words, brief, planned, survey) =
        (PageWords::in_language(language), &inputs.campaign.brief, &made.planned, &made.list.survey);
    let first = first_rows(&survey.planned_rows(), *shown);
    // Who is left out is in the table; where nobody is sent to, nothing is shown.
    let most = if first.is_some() { shown.most } else { 0 };
    let first = MessageSelection { rows: first.as_ref(), most, ..*shown };
    let CampaignMessages { shown: messages, other_findings } =
        collect_messages(inputs, &survey.left_out, &made.findings, first, words)?;
    let (shown, left_out) = (messages.len(), LeftOutTable::from_left_out(words, &survey.left_out));
    let view = PlanPageView {
        name: brief.name.clone(),
        way: describe_destination(words, inputs),
        file: inputs.campaign.file.display().to_string(),
        made: words.format_moment_in_zone(&now.to_zoned(brief.home_zone())),
        digest: made.digest.clone(),
        short: short_digest(&made.digest).to_owned(),
        days: Plan::KEPT_DAYS,
        rows: planned.rows,
        figures: CampaignFigures {
            rows: planned.rows,
            messages: planned.messages,
            parts: planned.parts,
            left_out: left_out.all,
            cost: made.cost.as_ref().map(|cost| words.format_cost(cost, planned.currency.as_deref())),
        },
        later: survey.count_planned().saturating_sub(planned.messages),
        hours: planned.options.hours.clone(),
        resources: made.resources.iter().map(Resource::to_json).collect(),
        on_in_doubt: planned.options.on_in_doubt.map(InDoubtPolicy::name),
        left_out,
        findings: other_findings,
        messages,
        shown,
        approve: approve.clone(),
        run: run.clone(),
    };
    let html =
        render(language, PageFormat::File, "plan.html", &view).map_err(|error| Error::Input(error.to_string()))?;
    Ok((html, shown))
}

/// The first rows that get a message, of those that are meant; nothing where none does.
fn first_rows(planned: &RoaringBitmap, shown: MessageSelection<'_>) -> Option<RowSet> {
    let meant = |row: &u32| shown.rows.is_none_or(|rows| rows.contains(Row::new(*row)));
    let first: Vec<String> = planned.iter().filter(meant).take(shown.most).map(|row| row.to_string()).collect();
    first.join(",").parse().ok()
}
