//! Sections of the forecast that `check`, `plan` and `run --dry-run` share: recipients, messages, cost and samples.

use super::text::{Span, StyledLine, StyledText, caution, dim, plain, strong};
use campaign_core::domain::{Channel, choose_plural};
use campaign_core::finding::{escape_to_one_line, join_names};
use campaign_engine::check::describe_abroad;
use campaign_engine::report::{ChannelForecast, Forecast, LeftOutRows, format_count, format_thousands};
use campaign_runs::{Inputs, Sample};

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
/// The maximum width of the column of reasons. A longer reason is not aligned.
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

/// Adds the number of recipients who get a message and the number of skipped rows. These two counts add up to all rows
/// in the list.
pub(super) fn add_recipients(text: &mut StyledText, forecast: &Forecast, inputs: &Inputs) {
    add_heading(text, "Recipients");
    let format =
        inputs.list_format().and_then(|format| describe_list_format(&format)).map(|format| format!(", {format}"));
    let list = format!(
        "{} in {}{}",
        choose_plural(forecast.rows, "row", "rows"),
        inputs.campaign.recipients,
        format.unwrap_or_default()
    );
    let (listed, others) = forecast.left_out.split_at(forecast.left_out.len().min(MAX_REASONS));
    let reasons: Vec<String> =
        listed.iter().map(|skipped| format!("{}: {}", skipped.state, escape_to_one_line(&skipped.reason))).collect();
    let numbers: Vec<String> = listed.iter().map(|skipped| format!("−{}", format_thousands(skipped.rows))).collect();
    let columns = |text: &str| text.chars().count();
    let later = (forecast.later > 0).then(|| format!("−{}", format_thousands(forecast.later)));
    let width =
        numbers.iter().chain(&later).chain([&format_thousands(forecast.rows)]).map(|number| columns(number)).max();
    let width = width.unwrap_or_default();
    let reason_width = reasons.iter().map(|reason| columns(reason)).filter(|columns| *columns <= REASON_WIDTH).max();
    let reason_width = reason_width.unwrap_or_default();
    let mut add = |number: String, rest: Vec<Span>| {
        let number = strong(format!("{number:>width$}"));
        text.push(StyledLine::new([number, plain("  ")].into_iter().chain(rest)).with_indent(4).with_hang(width + 2));
    };
    add(format_thousands(forecast.rows), vec![plain(list)]);
    for ((skipped, reason), number) in listed.iter().zip(reasons).zip(numbers) {
        add(number, vec![plain(format!("{reason:<reason_width$}  ")), dim(format_rows(skipped))]);
    }
    if !others.is_empty() {
        let rows = others.iter().map(|skipped| skipped.rows).sum();
        add(format!("−{}", format_thousands(rows)), vec![plain(format_count(others.len() as u64, "other reason"))]);
    }
    if let Some(later) = later {
        add(later, vec![plain("not selected now")]);
    }
    let phrase = if forecast.messages == 1 { "gets a message" } else { "get a message" };
    add(format_thousands(forecast.messages), vec![plain(phrase)]);
    let home = inputs.destination.profile().and_then(|profile| profile.home.as_ref());
    if let Some(abroad) = home.and_then(|home| describe_abroad(&forecast.abroad, home)) {
        add(String::new(), vec![caution(abroad)]);
    }
}

/// Formats the rows that are skipped for a reason, such as `rows 12, 64`.
fn format_rows(LeftOutRows { rows, first, .. }: &LeftOutRows) -> String {
    let numbers: Vec<String> = first.iter().take(MAX_ROWS).map(u32::to_string).collect();
    let more = rows - numbers.len() as u64;
    let more = if more > 0 { format!(" and {} more", format_thousands(more)) } else { String::new() };
    format!("{} {}{more}", choose_plural(*rows, "row", "rows"), numbers.join(", "))
}

/// Describes the format of a list. The only sheet of a workbook is not named.
pub(super) fn describe_list_format(format: &str) -> Option<String> {
    let Some((sheet, rest)) = format.strip_prefix("the sheet `").and_then(|rest| rest.split_once('`')) else {
        return Some(format.to_owned());
    };
    if rest.starts_with(", one of ") {
        return Some(format!("sheet \"{sheet}\"{rest}"));
    }
    let rest = rest.trim_start_matches(", ");
    (!rest.is_empty()).then(|| rest.to_owned())
}

/// Adds the messages of each channel with their parts, and then the cost and the time.
pub(super) fn add_messages(text: &mut StyledText, forecast: &Forecast) {
    for ChannelForecast { channel, messages, parts, fallback } in &forecast.channels {
        let at_most = if *fallback { " at most" } else { "" };
        let is_billed_by_part =
            Channel::ALL.iter().any(|known| known.name() == *channel && known.facts().billed_by_part);
        let parts = match (is_billed_by_part, forecast.sms_parts.first_key_value()) {
            (true, Some((parts_each, _))) if forecast.sms_parts.len() == 1 => {
                format!(", {} each", format_count((*parts_each).into(), "part"))
            }
            _ if parts == messages => String::new(),
            _ => format!(", {}", format_count(*parts, "part")),
        };
        add_labelled(text, channel, [strong(format_thousands(*messages)), plain(format!("{at_most}{parts}"))]);
    }
    let part_counts = forecast.sms_parts.iter().map(|(parts, messages)| {
        format!("{} with {}", format_thousands(*messages), format_count((*parts).into(), "part"))
    });
    if forecast.sms_parts.len() > 1 {
        add_labelled(text, "", [plain(part_counts.collect::<Vec<_>>().join(" · "))]);
    }
    if let Some(cost) = forecast.cost {
        let currency = forecast.currency.as_deref().unwrap_or_default();
        let amount = |amount| format!("{amount} {currency}").trim_end().to_owned();
        let likely = forecast.likely_cost.filter(|likely| *likely != cost);
        let likely = likely.map(|likely| format!("{} likely, ", amount(likely)));
        add_labelled(text, "cost", [plain(likely.unwrap_or_default()), strong(amount(cost)), plain(" at most")]);
    }
    if let Some(time) = forecast.describe_duration() {
        add_labelled(text, "time", [time.into()]);
    }
}

/// Describes why the cost is unknown.
pub(super) fn describe_unknown_cost(channels: &[Channel]) -> String {
    format!("unknown: the profile has no `prices` for {}", join_names(channels.iter().map(|channel| channel.name())))
}

/// Adds sample messages with a line for each channel, truncated to `columns` columns.
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
            let message_width = columns.saturating_sub(start.chars().count() + 4).max(MIN_MESSAGE_WIDTH);
            let message = escape_to_one_line(message);
            let shortened = console::truncate_str(&message, message_width, "…").into_owned();
            text.push(StyledLine::new([dim(start), plain(shortened)]).with_indent(4).unbroken());
            row = String::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_sheet_of_a_workbook_is_not_named() {
        assert_eq!(describe_list_format("the sheet `Sheet1`"), None);
        assert_eq!(
            describe_list_format("the sheet `Sheet1`, the headers in row 3").as_deref(),
            Some("the headers in row 3")
        );
        assert_eq!(
            describe_list_format("the sheet `Клієнти`, one of 2").as_deref(),
            Some("sheet \"Клієнти\", one of 2")
        );
        assert_eq!(
            describe_list_format("in the encoding windows-1251").as_deref(),
            Some("in the encoding windows-1251")
        );
    }
}
