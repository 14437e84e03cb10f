//! `campaign preview`: messages as people will see them, or the operations as they would be sent.

use jiff::Timestamp;

use super::args::PreviewArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::suggested::{file, through};
use crate::domain::Row;
use crate::finding::one_line;
use crate::report::{self, RowPreview, cost_words, preview_rows};
use crate::runs::{Error, Inputs, ListSurvey, blocking, survey_list};

/// How many messages are shown when no rows are named.
const SHOWN: usize = 3;

pub(super) async fn preview(context: &Context, args: PreviewArgs) -> Result<u8, Failure> {
    let inputs = context.load(&args.file, args.gateway.as_deref())?;
    let ledger = context.existing_ledger().await?;
    let inputs = context.listed(inputs, args.fetch, ledger.as_deref()).await?;
    let surveyed = survey_list(&inputs, ledger.as_deref(), &context.observer).await?;
    if !context.output.json {
        let mut findings = inputs.warnings.clone();
        findings.extend(surveyed.warnings(&inputs, Timestamp::now()));
        context.output.findings(&findings);
    }
    let output = context.output.clone();
    blocking(move || show(&output, &inputs, &surveyed, &args)).await??;
    Ok(exit::FINE)
}

/// Shows the chosen rows in the order of the file.
fn show(output: &Output, inputs: &Inputs, surveyed: &ListSurvey, args: &PreviewArgs) -> Result<(), Failure> {
    let (rows, gateway) = (args.rows.as_ref(), args.gateway.as_deref());
    let last = surveyed.survey.last_row;
    if let Some(rows) = rows.filter(|rows| rows.last() > last) {
        return Err(Error::NoSuchRow { row: rows.last(), last }.into());
    }
    let most = if rows.is_none() && !output.json { SHOWN } else { usize::MAX };
    let show = |row, preview: RowPreview<'_>| match output.json {
        true => output.object(&report::preview_json(row, preview)),
        false => output.result(&text(row, &preview)),
    };
    let shown = preview_rows(&mut inputs.open()?, &surveyed.survey.left_out, rows, most, show);
    let shown = shown.map_err(|finding| Error::Findings(vec![*finding]))?;
    if !output.json {
        let rows = report::thousands(surveyed.survey.recipients);
        let next = output.command(through(format_args!("run {}", file(&inputs.campaign.file)), gateway));
        let cost = surveyed.cost(inputs, &surveyed.survey.planned_rows());
        let currency = inputs.destination.profile().and_then(|profile| profile.currency.as_deref());
        let costs = cost.map(|cost| format!(" · sending all {}", cost_words(&cost, currency))).unwrap_or_default();
        output.result(&format!("{shown} of {rows} rows{costs}\nnext: {next}\n"));
    }
    Ok(())
}

fn text(row: Row, preview: &RowPreview<'_>) -> String {
    match preview {
        RowPreview::Message { phone, content } => format!("{}\n", report::preview(row, *phone, content)),
        RowPreview::LeftOut { state, reason } => format!("row {row} · {state}: {}\n\n", one_line(reason)),
    }
}
