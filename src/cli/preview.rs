//! `campaign preview`: messages as recipients see them, or the operations that would be sent.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::json;

use super::args::{PreviewArgs, PreviewedRows};
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::page;
use super::suggested::{file, through};
use crate::check::RunStart;
use crate::domain::{Row, RowSet};
use crate::finding::one_line;
use crate::report::{self, RowPreview, cost_words, preview_rows};
use crate::runs::{Error, Inputs, ListSurvey, OwnFiles, blocking, check_campaign, survey_list};
use crate::web::files::{PreviewPage, Shown, preview_page};

/// How many messages are shown when no rows are named.
const SHOWN: usize = 3;

/// How many messages a page shows when no rows are named, and at most.
const ON_PAGE: usize = 20;
const MOST_ON_PAGE: usize = 1000;

pub(super) async fn preview(context: &Context, args: PreviewArgs) -> Result<u8, Failure> {
    if let Some(path) = args.html.clone() {
        return as_page(context, args, path).await;
    }
    let inputs = context.load(&args.file, args.gateway.as_deref())?;
    let ledger = context.existing_ledger().await?;
    let inputs = context.listed(inputs, args.list.fetch, ledger.as_deref()).await?;
    let waiting = context.output.waiting("Reading the list…");
    let surveyed = survey_list(&inputs, ledger.as_deref(), &context.observer).await?;
    drop(waiting);
    if !context.output.json {
        let mut findings = inputs.warnings.clone();
        findings.extend(surveyed.warnings(&inputs, RunStart::of(&inputs.campaign, Timestamp::now())));
        context.output.findings(&findings);
    }
    let output = context.output.clone();
    blocking(move || show(&output, &inputs, &surveyed, &args)).await??;
    Ok(exit::FINE)
}

/// Writes the first messages, and what `check` finds, as a page.
async fn as_page(context: &Context, args: PreviewArgs, path: PathBuf) -> Result<u8, Failure> {
    page::check_place(&path)?;
    let inputs = context.load(&args.file, args.gateway.as_deref())?;
    let ledger = context.existing_ledger().await?;
    let inputs = context.listed(inputs, args.list.fetch, ledger.as_deref()).await?;
    let (state, profiles, now) = (context.state()?, context.profiles(), Timestamp::now());
    let files = OwnFiles { state: &state, profiles: &profiles };
    let waiting = context.output.waiting("Reading the list…");
    let mut checked = check_campaign(&inputs, ledger.as_deref(), files, (&context.observer, now)).await?;
    drop(waiting);
    context.output.add_hint(&mut checked);
    let rows = named_rows(&args.which, &checked.list)?;
    let (opens, gateway) = (args.page.open, args.gateway.clone());
    let (file, place) = (args.file.clone(), path.clone());
    let shown = blocking(move || {
        let (findings, list, cost) = (checked.findings.as_slice(), &checked.list, checked.cost.as_ref());
        let most = if rows.is_some() { MOST_ON_PAGE } else { ON_PAGE };
        let shown = Shown { rows: rows.as_ref(), most, unmasked: args.page.unmasked };
        let page = PreviewPage { inputs: &inputs, list, findings, cost, shown, now };
        let (html, shown) = preview_page(&page, args.page.language())?;
        page::write(&path, &html).map(|()| shown)
    });
    let shown: usize = shown.await??;
    if context.output.json {
        context.output.object(&json!({ "html": place, "rows": shown, "exit": exit::FINE }));
    } else {
        let next = context.output.command(through(format_args!("run {}", self::file(&file)), gateway.as_deref()));
        let rows = report::plural(shown as u64, "row");
        context.output.done(format!("{rows} written to {}\nnext: {next}\n", place.display()), exit::FINE);
    }
    if opens {
        page::open(&context.output, &place).await;
    }
    Ok(exit::FINE)
}

/// The rows that `--rows` names, or those of the first messages for `--first`. `None` without either.
///
/// # Errors
/// When the list has no such rows.
fn named_rows(which: &PreviewedRows, list: &ListSurvey) -> Result<Option<RowSet>, Failure> {
    if let Some(first) = which.first {
        let planned = list.survey.planned_rows();
        return Ok(Some(planned.iter().take(first as usize).collect()));
    }
    let (rows, last) = (which.rows.clone(), list.survey.last_row);
    match rows.as_ref().filter(|rows| rows.last() > last) {
        Some(rows) => Err(Error::NoSuchRow { row: rows.last(), last }.into()),
        None => Ok(rows),
    }
}

/// Shows the chosen rows in the order of the file.
fn show(output: &Output, inputs: &Inputs, surveyed: &ListSurvey, args: &PreviewArgs) -> Result<(), Failure> {
    let (rows, gateway) = (named_rows(&args.which, surveyed)?, args.gateway.as_deref());
    let most = if rows.is_none() && !output.json { SHOWN } else { usize::MAX };
    let show = |row, preview: RowPreview<'_>| match output.json {
        true => output.object(&report::preview_json(row, preview)),
        false => output.result(text(row, &preview)),
    };
    let shown = preview_rows(&mut inputs.open()?, &surveyed.survey.left_out, rows.as_ref(), most, show);
    let shown = shown.map_err(|finding| Error::Findings(vec![*finding]))?;
    if !output.json {
        let rows = report::plural(surveyed.survey.recipients, "row");
        let next = output.command(through(format_args!("run {}", file(&inputs.campaign.file)), gateway));
        let cost = surveyed.cost(inputs, &surveyed.survey.planned_rows());
        let currency = inputs.destination.profile().and_then(|profile| profile.currency.as_deref());
        let costs =
            cost.map(|cost| format!(" · sending all of them {}", cost_words(&cost, currency))).unwrap_or_default();
        output.summary(format!("{shown} of {rows}{costs}\nnext: {next}\n"));
    }
    Ok(())
}

fn text(row: Row, preview: &RowPreview<'_>) -> String {
    match preview {
        RowPreview::Message { phone, content } => format!("{}\n", report::preview(row, *phone, content)),
        RowPreview::LeftOut { state, reason } => format!("row {row} · {state}: {}\n\n", one_line(reason)),
    }
}
