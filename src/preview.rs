//! `campaign preview`: messages as recipients see them, or the operations that would be sent.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::json;

use super::args::{PreviewArgs, PreviewedCells, PreviewedRows};
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::Output;
use super::page_file::{check_page_path, open_page, write_page};
use super::suggested::send_arguments;
use campaign_core::domain::{Row, RowSet};
use campaign_core::finding::{escape_to_one_line, join_names};
use campaign_engine::check::{MadeUpMessage, RunStart};
use campaign_engine::report::{
    RowPreview, describe_cost, format_count, preview_json, preview_rows, render_message_preview, render_preview,
};
use campaign_runs::{
    Error, Inputs, ListSurvey, ProtectedFiles, check_campaign, compose_made_up_messages, run_blocking, survey_list,
};
use campaign_server::web::files::{MessageSelection, PreviewPage, render_preview_page};

/// The number of rows that are shown without `--rows` and `--first`.
const DEFAULT_SAMPLES: usize = 3;

/// The number of rows on a page without `--rows` and `--first`.
const DEFAULT_PAGE_SAMPLES: usize = 20;
/// The maximum number of rows on a page.
const MAX_PAGE_SAMPLES: usize = 1000;

pub(super) async fn preview_messages(context: &Context, args: PreviewArgs) -> Result<u8, CommandFailure> {
    if let Some(path) = args.html.clone() {
        return write_preview_page(context, args, path).await;
    }
    let inputs = context.load_campaign(&args.file, args.gateway.as_deref())?;
    if let Some(PreviewedCells(cells)) = args.selection.given {
        let messages = run_blocking(move || compose_made_up_messages(&inputs, &cells)).await??;
        show_made_up_messages(&context.output, &messages);
        return Ok(exit::SUCCESS);
    }
    let ledger = context.open_existing_ledger().await?;
    let inputs = context.fetch_list(inputs, args.list.fetch, ledger.as_deref()).await?;
    let spinner = context.output.show_spinner("Reading the list…");
    let list = survey_list(&inputs, ledger.as_deref(), &context.observer).await?;
    drop(spinner);
    if !context.output.json {
        let mut findings = inputs.warnings.clone();
        findings.extend(list.warnings(&inputs, RunStart::for_campaign(&inputs.campaign, Timestamp::now())));
        context.output.print_findings(&findings);
    }
    let output = context.output.clone();
    run_blocking(move || show_rows(&output, &inputs, &list, &args)).await??;
    Ok(exit::SUCCESS)
}

/// Writes the selected messages, or else the first ones, and the findings of `check` as a page.
async fn write_preview_page(context: &Context, args: PreviewArgs, path: PathBuf) -> Result<u8, CommandFailure> {
    check_page_path(&path)?;
    let inputs = context.load_campaign(&args.file, args.gateway.as_deref())?;
    let ledger = context.open_existing_ledger().await?;
    let inputs = context.fetch_list(inputs, args.list.fetch, ledger.as_deref()).await?;
    let (state, profiles, now) = (context.state_folder()?, context.profiles(), Timestamp::now());
    let files = ProtectedFiles { state: &state, profiles: &profiles };
    let spinner = context.output.show_spinner("Reading the list…");
    let mut checked = check_campaign(&inputs, ledger.as_deref(), files, &context.observer, now).await?;
    drop(spinner);
    context.output.add_hint(&mut checked);
    let rows = select_rows(&args.selection, &checked.list)?;
    let (must_open, page_path) = (args.page.open, path.clone());
    let next = context.output.command(send_arguments(&inputs.campaign, args.gateway.as_deref()));
    let rendering = run_blocking(move || {
        let (findings, list, cost) = (checked.findings.as_slice(), &checked.list, checked.cost.as_ref());
        let max_samples = if rows.is_some() { MAX_PAGE_SAMPLES } else { DEFAULT_PAGE_SAMPLES };
        let selection = MessageSelection { rows: rows.as_ref(), max: max_samples, unmasked: args.page.unmasked };
        let page = PreviewPage { inputs: &inputs, list, findings, cost, selection, now };
        let (html, row_count) = render_preview_page(&page, args.page.page_language())?;
        write_page(&path, &html).map(|()| row_count)
    });
    let row_count: usize = rendering.await??;
    if context.output.json {
        context.output.print_object(&json!({ "html": page_path, "rows": row_count, "exit": exit::SUCCESS }));
    } else {
        let rows = format_count(row_count as u64, "row");
        context.output.print_done(format!("{rows} written to {}\nnext: {next}\n", page_path.display()), exit::SUCCESS);
    }
    if must_open {
        open_page(&context.output, &page_path).await;
    }
    Ok(exit::SUCCESS)
}

/// Returns the rows of `--rows`, or the rows of the first messages for `--first`. Returns `None` if neither option is
/// given.
///
/// # Errors
/// If the list has no such rows.
fn select_rows(selection: &PreviewedRows, list: &ListSurvey) -> Result<Option<RowSet>, CommandFailure> {
    if let Some(first) = selection.first {
        let planned = list.survey.planned_rows();
        return Ok(Some(planned.iter().take(first as usize).collect()));
    }
    let (rows, last) = (selection.rows.clone(), list.survey.last_row);
    match rows.as_ref().filter(|rows| rows.last_row() > last) {
        Some(rows) => Err(Error::NoSuchRow { row: rows.last_row(), last }.into()),
        None => Ok(rows),
    }
}

/// Prints the selected rows in the order of the list.
fn show_rows(output: &Output, inputs: &Inputs, list: &ListSurvey, args: &PreviewArgs) -> Result<(), CommandFailure> {
    let rows = select_rows(&args.selection, list)?;
    let max_rows = if rows.is_none() && !output.json { DEFAULT_SAMPLES } else { usize::MAX };
    let show = |row, preview: RowPreview<'_>| match output.json {
        true => output.print_object(&preview_json(row, preview)),
        false => output.print_result(describe_row(row, &preview)),
    };
    let preview_count =
        preview_rows(&mut inputs.compile_campaign()?, &list.survey.left_out, rows.as_ref(), max_rows, show);
    let preview_count = preview_count.map_err(|finding| Error::Findings(vec![*finding]))?;
    if !output.json {
        let rows = format_count(list.survey.recipients, "row");
        let next = output.command(send_arguments(&inputs.campaign, args.gateway.as_deref()));
        let cost = list.compute_cost(inputs, &list.survey.planned_rows());
        let currency = inputs.destination.profile().and_then(|profile| profile.currency.as_deref());
        let costs =
            cost.map(|cost| format!(" · sending all of them {}", describe_cost(&cost, currency))).unwrap_or_default();
        output.print_result(format!("{preview_count} of {rows}{costs}\nnext: {next}\n"));
    }
    Ok(())
}

/// Prints the messages of a made-up recipient, one for each variant.
fn show_made_up_messages(output: &Output, messages: &[MadeUpMessage]) {
    let missing: BTreeSet<&str> = messages.iter().flat_map(|message| &message.missing).map(String::as_str).collect();
    if !missing.is_empty() {
        let are_empty = if missing.len() == 1 { "it is empty" } else { "they are empty" };
        let missing = join_names(missing);
        output.print_warning(&format!("`--given` has no cell for {missing}, so {are_empty} in the message"));
    }
    for MadeUpMessage { variant, outcome, .. } in messages {
        if output.json {
            let preview = match outcome {
                Ok((phone, content)) => RowPreview::Message { phone: *phone, content: content.clone() },
                Err((state, reason)) => RowPreview::LeftOut { state: *state, reason },
            };
            let mut object = preview_json(Row::new(0), preview);
            object["row"] = serde_json::Value::Null;
            object["variant"] = json!(variant);
            output.print_object(&object);
            continue;
        }
        let variant = variant.as_ref().map(|variant| format!("variant {variant} · ")).unwrap_or_default();
        output.print_result(match outcome {
            Ok((phone, content)) => format!("{variant}{}\n", render_message_preview(*phone, content)),
            Err((state, reason)) => format!("{variant}{state}: {}\n", escape_to_one_line(reason)),
        });
    }
}

fn describe_row(row: Row, preview: &RowPreview<'_>) -> String {
    match preview {
        RowPreview::Message { phone, content } => format!("{}\n", render_preview(row, *phone, content)),
        RowPreview::LeftOut { state, reason } => format!("row {row} · {state}: {}\n\n", escape_to_one_line(reason)),
    }
}
