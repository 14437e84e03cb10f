//! `campaign init`: creates a campaign file, its texts and a list, ready for a rehearsal.

use jiff::Timestamp;
use serde_json::json;

use super::args::InitArgs;
use super::context::Context;
use super::exit::{CommandFailure, SUCCESS};
use super::text::{StyledLine, StyledText, plain, strong};
use campaign_core::domain::{ListFormat, Region};
use campaign_core::finding::{escape_to_one_line, join_names, quote_for_shell};
use campaign_engine::report::{format_count, format_thousands};
use campaign_manifest::{is_slug, to_slug};
use campaign_runs::draft::{
    DraftError, DraftFile, DraftList, InvalidRows, draft_campaign, draft_example, write_drafts,
};

pub(super) fn create_campaign(context: &Context, args: &InitArgs) -> Result<u8, CommandFailure> {
    let name = &args.name;
    if !is_slug(name) {
        let from = args.from.as_ref().map(|list| format!(" --from {}", quote_for_shell(list))).unwrap_or_default();
        let example = args.example.map(|example| format!(" --example {}", example.name)).unwrap_or_default();
        let init = context.output.command(format!("init {}{from}{example}", to_slug(name)));
        return Err(CommandFailure::invalid(format!(
            "`{name}` is not a valid campaign name: use 1 to 64 characters from a-z, 0-9 and `-`"
        ))
        .with_help(format!("use `{init}`")));
    }
    let format = ListFormat { sheet: args.sheet.clone(), header_row: args.header_row, ..ListFormat::default() };
    let list = args.from.as_deref().map(|path| DraftList::read(path, &format)).transpose()?;
    let drafts = match args.example {
        Some(example) => draft_example(name, example, Timestamp::now()),
        None => draft_campaign(name, list.as_ref()),
    };
    write_drafts(&drafts)?;
    let next = context.output.command(format!("check {name}.yaml"));
    if context.output.json {
        let files: Vec<_> = drafts.iter().map(|draft| &draft.path).collect();
        context.output.print_object(&json!({ "files": files, "exit": SUCCESS, "next": next }));
        return Ok(SUCCESS);
    }
    let width = drafts.iter().map(|draft| draft.path.len()).max().unwrap_or_default();
    let mut text = StyledText::new();
    for DraftFile { path, description, .. } in &drafts {
        text.push(
            StyledLine::success([strong(format!("{path:width$}")), plain(format!("  {description}"))])
                .with_hang(width + 4),
        );
    }
    text.extend(list.as_ref().map(describe_list).unwrap_or_default());
    text.push(StyledLine::next_step(next));
    context.output.print_done(text, SUCCESS);
    Ok(SUCCESS)
}

/// Describes how the list was interpreted.
fn describe_list(list: &DraftList) -> String {
    let region = list.region.map(|region| format!(" (national numbers: {region})")).unwrap_or_default();
    let names: Vec<&str> = list.columns.iter().map(|(name, _)| name.as_str()).collect();
    let texts = if names.is_empty() { String::new() } else { format!("; columns for templates: {}", names.join(", ")) };
    let (path, phone) = (escape_to_one_line(&list.path), escape_to_one_line(&list.phone));
    let mut summary = format!("{path}: phone numbers in `{phone}`{region}{texts}\n");
    if let Some(region) = list.region.filter(|_| !list.other_regions.is_empty()) {
        let others: Vec<String> = list.other_regions.iter().map(Region::to_string).collect();
        let others = join_names(others.iter().map(String::as_str));
        summary += &format!(
            "  `region: {region}` is a guess: these numbers would also be valid in {others}. Set their country before you \
             send anything\n"
        );
    }
    if let [other, ..] = &list.other_phones[..] {
        let others = join_names(list.other_phones.iter().map(String::as_str));
        summary += &format!(
            "  phone numbers also in {others}. To use another column, write `phone: {}` under `columns`. To use a second \
             column when the first one is empty, write `phone: […, …]`\n",
            escape_to_one_line(other)
        );
    }
    if let Some(InvalidRows { rows, total: all, first }) = &list.invalid {
        let (rows, all) = (format_thousands(*rows), format_count(*all, "row"));
        summary += &format!("  no valid number in {rows} of {all}, first in row {first}; `campaign check` shows why\n");
    }
    summary
}

impl From<DraftError> for CommandFailure {
    fn from(error: DraftError) -> Self {
        let message = error.to_string();
        match error {
            DraftError::ListRefused(findings) => Self::with_findings(message, findings),
            DraftError::CannotWrite { .. } => Self::storage_failure(message),
            DraftError::ProfileRefused(findings) => Self::with_findings(message, findings),
            DraftError::ListName(_)
            | DraftError::ListUnreadable { .. }
            | DraftError::ProfilesUnreadable { .. }
            | DraftError::AlreadyExists(_) => Self::invalid(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_list(text: &str) -> Result<DraftList, DraftError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, text).unwrap();
        DraftList::read(&path, &ListFormat::default())
    }

    #[test]
    fn summary_names_other_phone_columns_and_invalid_rows() {
        let list = "Телефон,Телефон 2,name\n+380501234567 +380671234567,+380671234567,Olena\n,+380671234568,Ivan\n\
                    +380501234568,+380671234569,Taras\n+380501234569,,Maria\n";
        let summary = super::describe_list(&read_list(list).unwrap());
        assert!(summary.contains("phone numbers in `Телефон`;"), "{summary}");
        assert!(summary.contains("phone numbers also in `Телефон 2`"), "{summary}");
        assert!(summary.contains("no valid number in 2 of 4 rows, first in row 2;"), "{summary}");
        let ambiguous = super::describe_list(&read_list("phone,name\n0501234567,Olena\n").unwrap());
        assert!(ambiguous.contains("`region: UA` is a guess: these numbers would also be valid in"), "{ambiguous}");
        let valid = read_list("phone,name\n+380501234567,Olena\n").unwrap();
        assert_eq!((super::describe_list(&valid).lines().count(), valid.invalid), (1, None));
    }
}
