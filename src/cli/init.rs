//! `campaign init`: creates a campaign file, its text and a list, ready for a rehearsal.

use serde_json::json;

use super::args::InitArgs;
use super::context::Context;
use super::exit::FINE;
use super::failure::Failure;
use super::text::{Line, Text, plain, strong};
use crate::domain::ListForm;
use crate::draft::{Draft, DraftError, Invalid, List, drafts, write_all};
use crate::finding::{list_all, one_line, quoted};
use crate::manifest::{is_slug, slug};
use crate::report::{plural, thousands};

pub(super) fn init(context: &Context, args: &InitArgs) -> Result<u8, Failure> {
    let name = &args.name;
    if !is_slug(name) {
        let from = args.from.as_ref().map(|list| format!(" --from {}", quoted(list))).unwrap_or_default();
        let init = context.output.command(format!("init {}{from}", slug(name)));
        return Err(Failure::wrong(format!(
            "`{name}` is not a valid campaign name: use 1 to 64 characters from a-z, 0-9 and `-`"
        ))
        .with_help(format!("use `{init}`")));
    }
    let form = ListForm { sheet: args.sheet.clone(), header_row: args.header_row, ..ListForm::default() };
    let list = args.from.as_deref().map(|path| List::read(path, &form)).transpose()?;
    let drafts = drafts(name, list.as_ref());
    write_all(&drafts)?;
    let next = context.output.command(format!("check {name}.yaml"));
    if context.output.json {
        let files: Vec<_> = drafts.iter().map(|draft| &draft.path).collect();
        context.output.object(&json!({ "files": files, "exit": FINE, "next": next }));
        return Ok(FINE);
    }
    let width = drafts.iter().map(|draft| draft.path.len()).max().unwrap_or_default();
    let mut text = Text::new();
    for Draft { path, what, .. } in &drafts {
        text.push(Line::success([strong(format!("{path:width$}")), plain(format!("  {what}"))]).hanging(width + 4));
    }
    text.extend(list.as_ref().map(summary).unwrap_or_default());
    text.push(Line::next(next));
    context.output.done(text, FINE);
    Ok(FINE)
}

/// How the list was understood.
fn summary(list: &List) -> String {
    let region = list.region.map(|region| format!(" (national numbers: {region})")).unwrap_or_default();
    let names: Vec<&str> = list.columns.iter().map(|(name, _)| name.as_str()).collect();
    let texts = if names.is_empty() { String::new() } else { format!("; columns for templates: {}", names.join(", ")) };
    let (path, phone) = (one_line(&list.path), one_line(&list.phone));
    let mut summary = format!("{path}: phone numbers in `{phone}`{region}{texts}\n");
    if let [other, ..] = &list.other_phones[..] {
        let others = list_all(list.other_phones.iter().map(String::as_str));
        summary += &format!(
            "  phone numbers also in {others}. To use another column, write `phone: {}` under `columns`. To use a second \
             column when the first one is empty, write `phone: […, …]`\n",
            one_line(other)
        );
    }
    if let Some(Invalid { rows, of, first }) = &list.invalid {
        let (rows, of) = (thousands(*rows), plural(*of, "row"));
        summary +=
            &format!("  no valid number in {rows} of {of}, the first in row {first}; `campaign check` shows why\n");
    }
    summary
}

impl From<DraftError> for Failure {
    fn from(error: DraftError) -> Self {
        let message = error.to_string();
        match error {
            DraftError::ListRefused(findings) => Self::with_findings(message, findings),
            DraftError::Unwritten { .. } => Self::storage(message),
            DraftError::ProfileRefused(findings) => Self::with_findings(message, findings),
            DraftError::ListName(_)
            | DraftError::ListUnreadable { .. }
            | DraftError::ProfilesUnreadable { .. }
            | DraftError::InTheWay(_) => Self::wrong(message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<List, DraftError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list.csv");
        std::fs::write(&path, text).unwrap();
        List::read(&path, &ListForm::default())
    }

    #[test]
    fn summary_names_other_phone_columns_and_invalid_rows() {
        let list = "Телефон,Телефон 2,name\n+380501234567 +380671234567,+380671234567,Olena\n,+380671234568,Ivan\n\
                    +380501234568,+380671234569,Taras\n+380501234569,,Maria\n";
        let summary = super::summary(&read(list).unwrap());
        assert!(summary.contains("phone numbers in `Телефон`;"), "{summary}");
        assert!(summary.contains("phone numbers also in `Телефон 2`"), "{summary}");
        assert!(summary.contains("no valid number in 2 of 4 rows, the first in row 2;"), "{summary}");
        let sound = read("phone,name\n+380501234567,Olena\n").unwrap();
        assert_eq!((super::summary(&sound).lines().count(), sound.invalid), (1, None));
    }
}
