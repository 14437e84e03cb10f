//! A campaign's message as a test sends it: what a row says, to whomever it is sent.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Error, Inputs, ListSurvey, RunObserver, run_blocking, survey_list};
use crate::domain::{MessageContent, ParseRowsError, Row, RowSet};
use crate::ledger::{ExcludedRows, Ledger, RowState};
use crate::manifest::CampaignBrief;
use crate::report::{RowPreview, preview_rows};

/// What a row says.
#[derive(Debug)]
pub struct TestMessage {
    /// The row.
    pub row: Row,
    /// What it says.
    pub content: MessageContent<Cow<'static, str>>,
    /// The campaign's edition; empty if it has none.
    pub(super) edition: String,
    /// What was found in the list.
    pub(super) list: ListSurvey,
}

/// What the shared runs of a campaign's tests have as their edition: its name, and the edition if it has one.
pub(super) fn test_edition(brief: &CampaignBrief, edition: &str) -> String {
    match edition {
        "" => brief.name.clone(),
        // No name of a campaign has a colon.
        edition => format!("{}:{edition}", brief.name),
    }
}

/// The message of a row, whether or not its recipient has it already; without a row that of the first that would be sent.
///
/// # Errors
/// When the inputs are wrong, the row has no message, or none would be sent.
pub async fn load_test_message(
    inputs: &Arc<Inputs>,
    row: Option<u32>,
    ledger: Option<&dyn Ledger>,
    observer: &RunObserver,
) -> Result<TestMessage, Error> {
    let rows = row.map(|row| row.to_string().parse::<RowSet>()).transpose();
    let rows = rows.map_err(|error: ParseRowsError| Error::Input(error.to_string()))?;
    let list = survey_list(inputs, ledger, observer).await?;
    let (survey, opened) = (&list.survey, Arc::clone(inputs));
    let edition = run_blocking(move || Ok::<_, Error>(opened.compile_campaign()?.edition)).await??;
    let Some(rows) = rows else {
        let first = survey.examples.first().ok_or_else(|| {
            Error::Input("no row gets a message now; add `--row N` to choose the row to test".to_owned())
        })?;
        let (row, content) = (first.row, first.content.clone());
        return Ok(TestMessage { row, content, edition, list });
    };
    let row = rows.last_row();
    if row > survey.last_row {
        return Err(Error::NoSuchRow { row, last: survey.last_row });
    }
    if let Some((RowState::Invalid, reason)) = survey.left_out.find_reason(row) {
        return Err(Error::Input(format!("row {row} has no message: {reason}")));
    }
    let opened = Arc::clone(inputs);
    let content = run_blocking(move || render_row(&opened, &rows)).await??;
    let content = content.ok_or_else(|| Error::Input(format!("row {row} is blank, so it has no message")))?;
    Ok(TestMessage { row, content, edition, list })
}

fn render_row(inputs: &Inputs, rows: &RowSet) -> Result<Option<MessageContent<Cow<'static, str>>>, Error> {
    let mut found = None;
    let keep = |_, preview: RowPreview<'_>| {
        if let RowPreview::Message { content, .. } = preview {
            found = Some(content.to_owned_texts());
        }
    };
    // Who is skipped has a message all the same.
    preview_rows(&mut inputs.compile_campaign()?, &ExcludedRows::default(), Some(rows), 1, keep)
        .map_err(|finding| Error::Findings(vec![*finding]))?;
    Ok(found)
}
