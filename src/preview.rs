//! `campaign preview`: messages as recipients see them, or the operations that would be sent. Also the forecast sections
//! that `check`, `plan` and `run --dry-run` share.

use std::path::PathBuf;

use jiff::Timestamp;
use serde_json::json;

use super::args::{PreviewArgs, PreviewedRows};
use super::context::Context;
use super::exit;
use super::exit::CommandFailure;
use super::output::Output;
use super::report::{check_place, open_page, write_page};
use super::suggested::{shell_path, with_gateway};
use super::text::{Span, StyledLine, StyledText, dim, plain, strong};
use campaign_core::domain::{Channel, Row, RowSet, choose_plural};
use campaign_core::finding::{escape_to_one_line, join_names};
use campaign_engine::check::RunStart;
use campaign_engine::report;
use campaign_engine::report::{
    ChannelForecast, Forecast, LeftOutRows, RowPreview, describe_cost, format_count, format_thousands, preview_rows,
};
use campaign_runs::{Error, Inputs, ListSurvey, ProtectedFiles, Sample, check_campaign, run_blocking, survey_list};
use campaign_server::web::files::{MessageSelection, PreviewPage, render_preview_page};

/// The number of messages without `--rows`.
const DEFAULT_SAMPLES: usize = 3;

/// The number of messages on a page without `--rows`, and the maximum.
const DEFAULT_PAGE_SAMPLES: usize = 20;
const MAX_PAGE_SAMPLES: usize = 1000;

pub(super) async fn preview_messages(context: &Context, args: PreviewArgs) -> Result<u8, CommandFailure> {
    if let Some(path) = args.html.clone() {
        return write_preview_page(context, args, path).await;
    }
    let inputs = context.load_campaign(&args.file, args.gateway.as_deref())?;
    let ledger = context.open_existing_ledger().await?;
    let inputs = context.fetch_list(inputs, args.list.fetch, ledger.as_deref()).await?;
    let waiting = context.output.show_spinner("Reading the list…");
    let surveyed = survey_list(&inputs, ledger.as_deref(), &context.observer).await?;
    drop(waiting);
    if !context.output.json {
        let mut findings = inputs.warnings.clone();
        findings.extend(surveyed.warnings(&inputs, RunStart::for_campaign(&inputs.campaign, Timestamp::now())));
        context.output.print_findings(&findings);
    }
    let output = context.output.clone();
    run_blocking(move || show_rows(&output, &inputs, &surveyed, &args)).await??;
    Ok(exit::SUCCESS)
}

/// Writes the first messages and the findings of `check` as a page.
async fn write_preview_page(context: &Context, args: PreviewArgs, path: PathBuf) -> Result<u8, CommandFailure> {
    check_place(&path)?;
    let inputs = context.load_campaign(&args.file, args.gateway.as_deref())?;
    let ledger = context.open_existing_ledger().await?;
    let inputs = context.fetch_list(inputs, args.list.fetch, ledger.as_deref()).await?;
    let (state, profiles, now) = (context.state_folder()?, context.profiles(), Timestamp::now());
    let files = ProtectedFiles { state: &state, profiles: &profiles };
    let waiting = context.output.show_spinner("Reading the list…");
    let mut checked = check_campaign(&inputs, ledger.as_deref(), files, &context.observer, now).await?;
    drop(waiting);
    context.output.add_hint(&mut checked);
    let rows = named_rows(&args.which, &checked.list)?;
    let (opens, gateway) = (args.page.open, args.gateway.clone());
    let (file, place) = (args.file.clone(), path.clone());
    let shown = run_blocking(move || {
        let (findings, list, cost) = (checked.findings.as_slice(), &checked.list, checked.cost.as_ref());
        let most = if rows.is_some() { MAX_PAGE_SAMPLES } else { DEFAULT_PAGE_SAMPLES };
        let shown = MessageSelection { rows: rows.as_ref(), most, unmasked: args.page.unmasked };
        let page = PreviewPage { inputs: &inputs, list, findings, cost, shown, now };
        let (html, shown) = render_preview_page(&page, args.page.page_language())?;
        write_page(&path, &html).map(|()| shown)
    });
    let shown: usize = shown.await??;
    if context.output.json {
        context.output.print_object(&json!({ "html": place, "rows": shown, "exit": exit::SUCCESS }));
    } else {
        let next =
            context.output.command(with_gateway(format_args!("run {}", self::shell_path(&file)), gateway.as_deref()));
        let rows = report::format_count(shown as u64, "row");
        context.output.print_done(format!("{rows} written to {}\nnext: {next}\n", place.display()), exit::SUCCESS);
    }
    if opens {
        open_page(&context.output, &place).await;
    }
    Ok(exit::SUCCESS)
}

/// The rows of `--rows`, or of the first messages for `--first`. `None` without either.
///
/// # Errors
/// If the list has no such rows.
fn named_rows(which: &PreviewedRows, list: &ListSurvey) -> Result<Option<RowSet>, CommandFailure> {
    if let Some(first) = which.first {
        let planned = list.survey.planned_rows();
        return Ok(Some(planned.iter().take(first as usize).collect()));
    }
    let (rows, last) = (which.rows.clone(), list.survey.last_row);
    match rows.as_ref().filter(|rows| rows.last_row() > last) {
        Some(rows) => Err(Error::NoSuchRow { row: rows.last_row(), last }.into()),
        None => Ok(rows),
    }
}

/// Prints the chosen rows in the order of the file.
fn show_rows(
    output: &Output,
    inputs: &Inputs,
    surveyed: &ListSurvey,
    args: &PreviewArgs,
) -> Result<(), CommandFailure> {
    let (rows, gateway) = (named_rows(&args.which, surveyed)?, args.gateway.as_deref());
    let most = if rows.is_none() && !output.json { DEFAULT_SAMPLES } else { usize::MAX };
    let show = |row, preview: RowPreview<'_>| match output.json {
        true => output.print_object(&report::preview_json(row, preview)),
        false => output.print_result(describe_row(row, &preview)),
    };
    let shown = preview_rows(&mut inputs.compile_campaign()?, &surveyed.survey.left_out, rows.as_ref(), most, show);
    let shown = shown.map_err(|finding| Error::Findings(vec![*finding]))?;
    if !output.json {
        let rows = report::format_count(surveyed.survey.recipients, "row");
        let next = output.command(with_gateway(format_args!("run {}", shell_path(&inputs.campaign.file)), gateway));
        let cost = surveyed.compute_cost(inputs, &surveyed.survey.planned_rows());
        let currency = inputs.destination.profile().and_then(|profile| profile.currency.as_deref());
        let costs =
            cost.map(|cost| format!(" · sending all of them {}", describe_cost(&cost, currency))).unwrap_or_default();
        output.print_summary(format!("{shown} of {rows}{costs}\nnext: {next}\n"));
    }
    Ok(())
}

fn describe_row(row: Row, preview: &RowPreview<'_>) -> String {
    match preview {
        RowPreview::Message { phone, content } => format!("{}\n", report::render_preview(row, *phone, content)),
        RowPreview::LeftOut { state, reason } => format!("row {row} · {state}: {}\n\n", escape_to_one_line(reason)),
    }
}

/// The width of samples without a terminal.
pub(super) const SAMPLE_WIDTH: usize = 160;
/// The maximum number of rows that are listed for a reason.
const MAX_ROWS: usize = 8;
/// The maximum number of reasons that are listed. The others are counted together.
const MAX_REASONS: usize = 12;
/// The width of the label of a line about messages.
const LABEL_WIDTH: usize = 10;
/// The minimum width of a message.
const MIN_MESSAGE_WIDTH: usize = 20;
/// The maximum width of a reason for the alignment of the others.
const REASON_WIDTH: usize = 44;

/// Adds the heading of a section.
pub(super) fn add_heading(text: &mut StyledText, title: &str) {
    text.add_blank();
    text.add_line(2, [strong(title)]);
}

/// Adds an indented line: a label and its value.
pub(super) fn add_labelled(text: &mut StyledText, label: &str, value: impl IntoIterator<Item = Span>) {
    let label = dim(format!("{label:<LABEL_WIDTH$}"));
    text.push(StyledLine::new([label].into_iter().chain(value)).with_indent(4).with_hang(LABEL_WIDTH));
}

/// Adds how many recipients get a message and how many rows are skipped. Together these are all rows in the list.
pub(super) fn add_recipients(text: &mut StyledText, forecast: &Forecast, inputs: &Inputs) {
    add_heading(text, "Recipients");
    let form = inputs.list_form().and_then(|form| describe_list_form(&form)).map(|form| format!(", {form}"));
    let list = format!(
        "{} in {}{}",
        choose_plural(forecast.rows, "row", "rows"),
        inputs.campaign.recipients,
        form.unwrap_or_default()
    );
    let (named, others) = forecast.left_out.split_at(forecast.left_out.len().min(MAX_REASONS));
    let reasons: Vec<String> =
        named.iter().map(|left| format!("{}: {}", left.state, escape_to_one_line(&left.reason))).collect();
    let numbers: Vec<String> = named.iter().map(|left| format!("−{}", format_thousands(left.rows))).collect();
    let columns = |text: &str| text.chars().count();
    let width = numbers.iter().map(|number| columns(number)).chain([columns(&format_thousands(forecast.rows))]).max();
    let width = width.unwrap_or_default();
    let reason_width = reasons.iter().map(|reason| columns(reason)).filter(|columns| *columns <= REASON_WIDTH).max();
    let reason_width = reason_width.unwrap_or_default();
    let mut add = |number: String, rest: Vec<Span>| {
        let number = strong(format!("{number:>width$}"));
        text.push(StyledLine::new([number, plain("  ")].into_iter().chain(rest)).with_indent(4).with_hang(width + 2));
    };
    add(format_thousands(forecast.rows), vec![plain(list)]);
    for ((left, reason), number) in named.iter().zip(reasons).zip(numbers) {
        add(number, vec![plain(format!("{reason:<reason_width$}  ")), dim(format_rows(left))]);
    }
    if !others.is_empty() {
        let rows = others.iter().map(|left| left.rows).sum();
        add(format!("−{}", format_thousands(rows)), vec![plain(format_count(others.len() as u64, "other reason"))]);
    }
    if forecast.later > 0 {
        add(format!("−{}", format_thousands(forecast.later)), vec![plain("not selected now")]);
    }
    let get = if forecast.messages == 1 { "gets a message" } else { "get a message" };
    add(format_thousands(forecast.messages), vec![plain(get)]);
}

/// Formats the rows of a reason: `rows 12, 64`.
fn format_rows(LeftOutRows { rows, first, .. }: &LeftOutRows) -> String {
    let numbers: Vec<String> = first.iter().take(MAX_ROWS).map(u32::to_string).collect();
    let more = rows - numbers.len() as u64;
    let more = if more > 0 { format!(" and {} more", format_thousands(more)) } else { String::new() };
    format!("{} {}{more}", choose_plural(*rows, "row", "rows"), numbers.join(", "))
}

/// Describes the format of a list. The only sheet of a workbook is not named.
pub(super) fn describe_list_form(form: &str) -> Option<String> {
    let Some((sheet, rest)) = form.strip_prefix("the sheet `").and_then(|rest| rest.split_once('`')) else {
        return Some(form.to_owned());
    };
    if rest.starts_with(", one of ") {
        return Some(format!("sheet \"{sheet}\"{rest}"));
    }
    let rest = rest.trim_start_matches(", ");
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// Adds the messages: channels with their parts, cost and time.
pub(super) fn add_messages(text: &mut StyledText, forecast: &Forecast) {
    for ChannelForecast { channel, messages, parts, fallback } in &forecast.channels {
        let at_most = if *fallback { " at most" } else { "" };
        let is_billed_by_part =
            Channel::ALL.iter().any(|known| known.name() == *channel && known.facts().billed_by_part);
        let parts = match (is_billed_by_part, forecast.sms_parts.first_key_value()) {
            (true, Some((each, _))) if forecast.sms_parts.len() == 1 => {
                format!(", {} each", format_count((*each).into(), "part"))
            }
            _ if parts == messages => String::new(),
            _ => format!(", {}", format_count(*parts, "part")),
        };
        add_labelled(text, channel, [strong(format_thousands(*messages)), plain(format!("{at_most}{parts}"))]);
    }
    let each = forecast.sms_parts.iter().map(|(parts, messages)| {
        format!("{} with {}", format_thousands(*messages), format_count((*parts).into(), "part"))
    });
    if forecast.sms_parts.len() > 1 {
        add_labelled(text, "", [plain(each.collect::<Vec<_>>().join(" · "))]);
    }
    if let Some(most) = forecast.cost {
        let currency = forecast.currency.as_deref().unwrap_or_default();
        let amount = |amount| format!("{amount} {currency}").trim_end().to_owned();
        let likely = forecast.likely_cost.filter(|likely| *likely != most);
        let likely = likely.map(|likely| format!("{} likely, ", amount(likely)));
        add_labelled(text, "cost", [plain(likely.unwrap_or_default()), strong(amount(most)), plain(" at most")]);
    }
    if let Some(time) = forecast.describe_duration() {
        add_labelled(text, "time", [time.into()]);
    }
}

/// Describes why the cost is unknown.
pub(super) fn describe_unknown_cost(channels: &[Channel]) -> String {
    format!("unknown: the profile has no `prices` for {}", join_names(channels.iter().map(|channel| channel.name())))
}

/// Adds sample messages, a line for each channel, truncated to a number of columns.
pub(super) fn add_samples(text: &mut StyledText, samples: &[Sample], columns: usize) {
    let has_message = |sample: &Sample| {
        sample.content.stages.iter().any(|stage| stage.texts().any(|(field, _)| field.key == "message"))
    };
    // Lookups and code calls have no text.
    if !samples.iter().any(has_message) {
        return;
    }
    add_heading(text, "Samples");
    let width = samples.iter().map(|sample| sample.row.to_string().len()).max().unwrap_or_default() + 4;
    let names = samples.iter().flat_map(|sample| &sample.content.stages).map(|stage| stage.channel().name().len());
    let name_width = names.max().unwrap_or_default();
    for sample in samples {
        let mut row = format!("row {}", sample.row);
        if let Some(variant) = &sample.variant {
            text.add_line(4, [dim(format!("{row:<width$}  variant {}", escape_to_one_line(variant)))]);
            row = String::new();
        }
        for stage in &sample.content.stages {
            let Some((_, message)) = stage.texts().find(|(field, _)| field.key == "message") else { continue };
            let start = format!("{row:<width$}  {:<name_width$} │ ", stage.channel().name());
            let left = columns.saturating_sub(start.chars().count() + 4).max(MIN_MESSAGE_WIDTH);
            let message = escape_to_one_line(message);
            let shown = console::truncate_str(&message, left, "…").into_owned();
            text.push(StyledLine::new([dim(start), plain(shown)]).with_indent(4).unbroken());
            row = String::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sheet_of_a_workbook_is_not_named() {
        assert_eq!(describe_list_form("the sheet `Sheet1`"), None);
        assert_eq!(
            describe_list_form("the sheet `Sheet1`, the headers in row 3").as_deref(),
            Some("the headers in row 3")
        );
        assert_eq!(describe_list_form("the sheet `Клієнти`, one of 2").as_deref(), Some("sheet \"Клієнти\", one of 2"));
        assert_eq!(describe_list_form("in the encoding windows-1251").as_deref(), Some("in the encoding windows-1251"));
    }
}
