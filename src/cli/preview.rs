//! `campaign preview`: messages as people will see them, or the operations as they would be sent.

use std::collections::HashMap;

use serde_json::json;

use super::args::PreviewArgs;
use super::context::Context;
use super::exit;
use super::failure::Failure;
use super::output::Output;
use super::suggested::file;
use crate::audience::Chunk;
use crate::check::row_of;
use crate::domain::{MessageId, Operation, Row, RowSet};
use crate::finding::one_line;
use crate::ledger::State;
use crate::report;
use crate::runs::{Error, Inputs, ListSurvey, blocking, survey_list};

/// How many messages are shown when no rows are named.
const SHOWN: usize = 3;

pub(super) async fn preview(context: &Context, args: PreviewArgs) -> Result<u8, Failure> {
    let inputs = context.load(&args.file, None)?;
    let ledger = context.existing_ledger().await?;
    let surveyed = survey_list(&inputs, ledger.as_deref(), &context.observer).await?;
    if !context.output.json {
        context.output.findings(&inputs.warnings);
    }
    let output = context.output.clone();
    blocking(move || show(&output, &inputs, &surveyed, args.rows.as_ref())).await??;
    Ok(exit::FINE)
}

/// Shows the chosen rows in the order of the file.
fn show(output: &Output, inputs: &Inputs, surveyed: &ListSurvey, rows: Option<&RowSet>) -> Result<(), Failure> {
    let last = surveyed.survey.last_row;
    if let Some(rows) = rows.filter(|rows| rows.last() > last) {
        return Err(Error::NoSuchRow { row: rows.last(), last }.into());
    }
    let left_out: HashMap<Row, (State, &str)> = surveyed
        .survey
        .left_out
        .in_order()
        .filter(|(row, ..)| rows.is_none_or(|rows| rows.contains(*row)))
        .map(|(row, state, reason)| (row, (state, reason)))
        .collect();
    let most = if rows.is_none() && !output.json { SHOWN } else { usize::MAX };
    let mut prepared = inputs.open()?;
    let phone_column = prepared.reader.header().phone();
    let mut renderer = prepared.messages.renderer();
    let mut chunk = Chunk::new();
    let mut shown = 0;
    while shown < most && prepared.reader.read_chunk(&mut chunk).map_err(|finding| Error::Findings(vec![*finding]))? {
        let chosen = chunk.iter().filter(|record| rows.is_none_or(|rows| rows.contains(record.row)));
        for record in chosen {
            if shown == most {
                break;
            }
            let row = record.row;
            if let Some((state, reason)) = left_out.get(&row) {
                left_out_row(output, row, *state, reason);
            } else if let Ok((phone, content)) = row_of(&mut renderer, phone_column, prepared.region, record) {
                if output.json {
                    let Some(id) = MessageId::new(0) else { continue };
                    output.object(&report::preview_json(row, &Operation { id, phone, content }));
                } else {
                    output.result(&report::preview(row, phone, &content));
                    output.result("\n");
                }
            }
            shown += 1;
        }
    }
    if !output.json {
        let (rows, file) = (report::thousands(surveyed.survey.recipients), file(&inputs.campaign.file));
        let next = output.command(format!("run {file}"));
        output.result(&format!("{shown} of {rows} rows\nnext: {next}\n"));
    }
    Ok(())
}

fn left_out_row(output: &Output, row: Row, state: State, reason: &str) {
    if output.json {
        output.object(&json!({ "row": row.get(), "state": state.name(), "reason": reason }));
    } else {
        output.result(&format!("row {row} · {state}: {}\n\n", one_line(reason)));
    }
}
