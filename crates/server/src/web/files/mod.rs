//! Pages as self-contained files: previews, plans, reports and evidence.
//!
//! A file loads nothing, contains no script, and masks the recipients' numbers unless numbers were requested. This
//! module does not write files, read a clock or make decisions.

mod messages;

use std::io::Read;

use jiff::Timestamp;
use roaring::RoaringBitmap;
use serde::Serialize;
use serde_json::Value;

use crate::web::html::{PageFormat, embed_json, render};
use crate::web::run_page::{RunPage, RunPageView};
use crate::web::words::{PageLanguage, PageWords};
use campaign_core::domain::{Row, RowSet};
use campaign_core::finding::Finding;
use campaign_engine::check::CompiledCampaign;
use campaign_engine::check::online::Cost;
use campaign_engine::report::Evidence;
use campaign_ledger::{ExcludedRows, Plan, RowState};
use campaign_manifest::{CampaignBrief, InDoubtPolicy, Resource};
use campaign_runs::{CreatedPlan, Error, Inputs, ListSurvey, short_digest};
use messages::{CampaignMessages, MessageView, SkipReasonView, collect_messages, collect_run_messages};

pub use messages::{FindingView, MessageSelection, PhoneView};

/// The data of a preview.
pub struct PreviewPage<'c> {
    /// The campaign.
    pub inputs: &'c Inputs,
    /// The survey of the campaign's list.
    pub list: &'c ListSurvey,
    /// The findings of `check`.
    pub findings: &'c [Finding],
    /// The cost of the messages, if known.
    pub cost: Option<&'c Cost>,
    /// The messages to show.
    pub selection: MessageSelection<'c>,
    /// The time at which the page is created.
    pub now: Timestamp,
}

/// The contents of the preview page.
#[derive(Serialize)]
pub struct PreviewView {
    name: String,
    destination: String,
    file: String,
    created: String,
    rows: u64,
    figures: CampaignFigures,
    /// The findings and the skipped rows in one line; `None` if there are neither.
    problems: Option<String>,
    skipped: SkippedRowsTable,
    findings: Vec<FindingView>,
    messages: Vec<MessageView>,
    shown: usize,
}

/// Renders the preview page, and returns the HTML and the number of rows shown.
///
/// # Errors
/// If the inputs cannot be read.
pub fn render_preview_page(page: &PreviewPage<'_>, language: PageLanguage) -> Result<(String, usize), Error> {
    let view = build_preview_view(page, language)?;
    let html =
        render(language, PageFormat::File, "preview.html", &view).map_err(|error| Error::Input(error.to_string()))?;
    Ok((html, view.shown))
}

/// Builds the view that the template of the preview page renders.
///
/// # Errors
/// If the inputs cannot be read.
pub fn build_preview_view(page: &PreviewPage<'_>, language: PageLanguage) -> Result<PreviewView, Error> {
    let PreviewPage { inputs, list, findings, cost, selection, now } = page;
    let (words, brief, survey) = (PageWords::in_language(language), &inputs.campaign.brief, &list.survey);
    let CampaignMessages { messages, other_findings } =
        collect_messages(inputs, &survey.left_out, findings, *selection, words)?;
    let currency = inputs.destination.profile().and_then(|profile| profile.currency.as_deref());
    let (shown, skipped) = (messages.len(), SkippedRowsTable::from_excluded(words, &survey.left_out));
    Ok(PreviewView {
        name: brief.name.clone(),
        destination: describe_destination(words, inputs),
        file: inputs.campaign.file.display().to_string(),
        created: words.format_moment_in_zone(&now.to_zoned(brief.home_zone())),
        rows: survey.recipients,
        figures: CampaignFigures {
            rows: survey.recipients,
            messages: survey.count_planned(),
            parts: survey.parts,
            skipped: skipped.all,
            cost: cost.map(|cost| words.format_cost(cost, currency)),
        },
        problems: describe_problems(words, &skipped, &other_findings),
        skipped,
        findings: other_findings,
        messages,
        shown,
    })
}

/// Summarizes findings and skipped rows in one line, such as `2 warnings · 4 invalid rows`. Returns `None` if there are
/// neither findings nor skipped rows.
fn describe_problems(words: &PageWords, skipped: &SkippedRowsTable, findings: &[FindingView]) -> Option<String> {
    // Findings about single rows are counted as rows.
    let count_findings =
        |severity: &str| findings.iter().filter(|finding| finding.is_counted_as(severity)).count() as u64;
    let texts = [
        describe_nonzero(count_findings("error"), |count| words.count("problems.error", count, &[])),
        describe_nonzero(count_findings("warning"), |count| words.count("problems.warning", count, &[])),
        describe_nonzero(count_findings("note"), |count| words.count("problems.note", count, &[])),
        describe_nonzero(skipped.invalid, |count| words.count("problems.invalid", count, &[])),
        describe_nonzero(skipped.all - skipped.invalid, |count| words.count("problems.skipped", count, &[])),
    ];
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    (!texts.is_empty()).then(|| texts.join(" · "))
}

/// Describes a count in words, or returns `None` if the count is 0.
fn describe_nonzero(count: u64, in_words: impl FnOnce(u64) -> String) -> Option<String> {
    (count > 0).then(|| in_words(count))
}

/// The data of a plan's page.
pub struct PlanPage<'c> {
    /// The campaign.
    pub inputs: &'c Inputs,
    /// The plan that was just created from `inputs`.
    pub plan: &'c CreatedPlan,
    /// The messages to show.
    pub selection: MessageSelection<'c>,
    /// The command that approves the plan; `None` if the plan needs no approval.
    pub approve: Option<String>,
    /// The command that sends the campaign.
    pub run: String,
    /// The time at which the page is created.
    pub now: Timestamp,
}

#[derive(Serialize)]
struct PlanPageView {
    name: String,
    destination: String,
    file: String,
    created: String,
    digest: String,
    short: String,
    days: u32,
    rows: u64,
    figures: CampaignFigures,
    /// The number of messages that are not part of this plan, for example because of a limit.
    later: u64,
    hours: Option<String>,
    /// Programs, addresses and sources, as JSON.
    resources: Vec<Value>,
    /// The policy for rows in doubt, unless they remain in doubt.
    on_in_doubt: Option<&'static str>,
    skipped: SkippedRowsTable,
    findings: Vec<FindingView>,
    messages: Vec<MessageView>,
    shown: usize,
    approve: Option<String>,
    run: String,
}

/// Renders the plan page, and returns the HTML and the number of rows shown.
///
/// # Errors
/// If the inputs cannot be read.
pub fn render_plan_page(page: &PlanPage<'_>, language: PageLanguage) -> Result<(String, usize), Error> {
    let PlanPage { inputs, plan, selection, approve, run, now } = page;
    let (words, brief, planned, survey) =
        (PageWords::in_language(language), &inputs.campaign.brief, &plan.planned, &plan.list.survey);
    let sample_rows = first_rows(&survey.planned_rows(), *selection);
    // Skipped rows are already in the table, so without recipients no messages are shown.
    let max = if sample_rows.is_some() { selection.max } else { 0 };
    let samples = MessageSelection { rows: sample_rows.as_ref(), max, ..*selection };
    let CampaignMessages { messages, other_findings } =
        collect_messages(inputs, &survey.left_out, &plan.findings, samples, words)?;
    let (shown, skipped) = (messages.len(), SkippedRowsTable::from_excluded(words, &survey.left_out));
    let view = PlanPageView {
        name: brief.name.clone(),
        destination: describe_destination(words, inputs),
        file: inputs.campaign.file.display().to_string(),
        created: words.format_moment_in_zone(&now.to_zoned(brief.home_zone())),
        digest: plan.digest.clone(),
        short: short_digest(&plan.digest).to_owned(),
        days: Plan::KEPT_DAYS,
        rows: planned.rows,
        figures: CampaignFigures {
            rows: planned.rows,
            messages: planned.messages,
            parts: planned.parts,
            skipped: skipped.all,
            cost: plan.cost.as_ref().map(|cost| words.format_cost(cost, planned.currency.as_deref())),
        },
        later: survey.count_planned().saturating_sub(planned.messages),
        hours: planned.options.hours.clone(),
        resources: plan.resources.iter().map(Resource::to_json).collect(),
        on_in_doubt: planned.options.on_in_doubt.map(InDoubtPolicy::name),
        skipped,
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

/// Returns up to `selection.max` selected rows that get a message, or `None` if no selected row gets a message.
fn first_rows(planned: &RoaringBitmap, selection: MessageSelection<'_>) -> Option<RowSet> {
    let is_selected = |row: &u32| selection.rows.is_none_or(|rows| rows.contains(Row::new(*row)));
    let mut first = planned.iter().filter(is_selected).take(selection.max).peekable();
    first.peek().is_some().then(|| first.collect())
}

/// The data of a report.
pub struct ReportPage<'r> {
    /// The run.
    pub page: RunPage<'r>,
    /// The first messages; `None` if the data was removed.
    pub first: Option<&'r FirstMessages>,
}

/// Some messages of a run.
#[derive(Debug, Serialize)]
pub struct FirstMessages {
    messages: Vec<MessageView>,
}

#[derive(Serialize)]
struct ReportPageView<'v> {
    run: RunPageView,
    messages: &'v [MessageView],
    /// The figures as JSON.
    data: String,
}

impl FirstMessages {
    /// Reads up to `max` messages, skipping excluded rows and stopping after row `last`. Phone numbers are masked
    /// unless `unmasked` is set.
    ///
    /// # Errors
    /// If the list is damaged.
    pub fn read_first<R: Read>(
        brief: &CampaignBrief,
        mut prepared: CompiledCampaign<R>,
        excluded: &RoaringBitmap,
        last: Row,
        max: usize,
        unmasked: bool,
    ) -> Result<Self, Error> {
        let planned = (Row::FIRST.get()..=last.get()).filter(|row| !excluded.contains(*row));
        let rows: Vec<String> = planned.take(max).map(|row| row.to_string()).collect();
        let messages = match rows.join(",").parse() {
            Ok(rows) => collect_run_messages(&mut prepared, brief, &rows, max, unmasked)?,
            // No row gets a message.
            Err(_) => Vec::new(),
        };
        Ok(Self { messages })
    }

    /// Reads the message of one row, if the row has a message. Phone numbers are masked unless `unmasked` is set.
    ///
    /// # Errors
    /// If the list is damaged.
    pub fn read_row<R: Read>(
        brief: &CampaignBrief,
        mut prepared: CompiledCampaign<R>,
        row: Row,
        unmasked: bool,
    ) -> Result<Self, Error> {
        Ok(Self { messages: collect_run_messages(&mut prepared, brief, &row.into(), 1, unmasked)? })
    }

    /// Reads the messages of these rows. Phone numbers are masked unless `unmasked` is set.
    ///
    /// # Errors
    /// If the list is damaged.
    pub fn read_rows<R: Read>(
        brief: &CampaignBrief,
        mut prepared: CompiledCampaign<R>,
        rows: &RowSet,
        unmasked: bool,
    ) -> Result<Self, Error> {
        Ok(Self { messages: collect_run_messages(&mut prepared, brief, rows, usize::MAX, unmasked)? })
    }
}

/// Renders the report page.
///
/// # Errors
/// If the template cannot be filled, which is a bug.
pub fn render_report_page(report: &ReportPage<'_>, language: PageLanguage) -> Result<String, Error> {
    let view = ReportPageView {
        run: report.page.to_view(language),
        messages: report.first.map_or(&[], |first| &first.messages),
        data: embed_json(&report.page.report.to_report_json()),
    };
    render(language, PageFormat::File, "run/report.html", &view).map_err(|error| Error::Input(error.to_string()))
}

/// The data of a page with evidence about a phone number, for an authority.
pub struct EvidencePage<'e> {
    /// The facts about the phone number, with their digest.
    pub evidence: &'e Evidence,
    /// The signature, if the evidence is signed.
    pub signature: Option<&'e EvidenceSignature>,
}

/// The signature of the digest of evidence, made with a private approval key.
#[derive(Clone, Debug, Serialize)]
pub struct EvidenceSignature {
    /// The public key of the author.
    pub key: String,
    /// The signature of the digest, in Base64 for URLs.
    pub signature: String,
}

#[derive(Serialize)]
struct EvidencePageView<'e> {
    facts: &'e Value,
    /// The facts as the digest covers them.
    text: &'e str,
    digest: &'e str,
    signature: Option<&'e EvidenceSignature>,
}

/// Renders the evidence page.
///
/// # Errors
/// If the template cannot be filled, which is a bug.
pub fn render_evidence_page(page: &EvidencePage<'_>, language: PageLanguage) -> Result<String, Error> {
    let EvidencePage { evidence: Evidence { facts, text, digest }, signature } = page;
    let view = EvidencePageView { facts, text, digest, signature: *signature };
    render(language, PageFormat::File, "evidence.html", &view).map_err(|error| Error::Input(error.to_string()))
}

/// The maximum number of listed reasons. The others are counted together.
const MAX_REASONS: usize = 12;

/// The number of rows skipped for one reason.
#[derive(Clone, Debug, Serialize)]
struct SkipReasonCount {
    #[serde(flatten)]
    why: SkipReasonView,
    rows: u64,
}

/// Skipped rows by reason.
#[derive(Clone, Debug, Default, Serialize)]
struct SkippedRowsTable {
    reasons: Vec<SkipReasonCount>,
    /// The number of rows with other reasons.
    others: u64,
    /// The total number of skipped rows.
    all: u64,
    /// The number of invalid rows among the skipped rows.
    invalid: u64,
}

impl SkippedRowsTable {
    fn from_excluded(words: &PageWords, excluded: &ExcludedRows) -> Self {
        let sets = excluded.sets().filter(|(_, _, rows)| !rows.is_empty());
        let count = |(state, reason, rows): (_, &str, &RoaringBitmap)| SkipReasonCount {
            why: SkipReasonView::from_reason(words, state, reason),
            rows: rows.len(),
        };
        let mut reasons: Vec<SkipReasonCount> = sets.map(count).collect();
        reasons.sort_by_key(|count| std::cmp::Reverse(count.rows));
        let all = reasons.iter().map(|count| count.rows).sum();
        let named = reasons.iter().take(MAX_REASONS).map(|count| count.rows).sum::<u64>();
        reasons.truncate(MAX_REASONS);
        Self { reasons, others: all - named, all, invalid: excluded.count_rows(RowState::Invalid) }
    }
}

/// The figures at the top of a page.
#[derive(Clone, Debug, Serialize)]
struct CampaignFigures {
    rows: u64,
    messages: u64,
    parts: u64,
    skipped: u64,
    cost: Option<String>,
}

/// Names the gateway that a campaign is sent through, or says that the campaign is rehearsed.
fn describe_destination(words: &PageWords, inputs: &Inputs) -> String {
    match inputs.destination.profile() {
        Some(profile) => {
            words.say_with("destination.live", &[("gateway", &profile.name), ("host", &profile.format_hosts())])
        }
        None => words.say("destination.rehearsal").to_owned(),
    }
}
