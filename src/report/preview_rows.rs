//! The rows of a campaign as they would go out, in the order of its list.

use std::borrow::Cow;
use std::io::Read;

use crate::audience::{Chunk, RecipientReader, RecordRef, ValidNumber};
use crate::check::{CompiledCampaign, ComposedMessage, Recipe};
use crate::domain::{MessageContent, Phone, Row, RowSet};
use crate::finding::Finding;
use crate::ledger::{ExcludedRows, RowState};
use crate::message::{MarkedText, Marker};

/// A row as it would go out, or why it would not.
#[derive(Clone, Debug)]
pub enum RowPreview<'r> {
    /// Its message.
    Message {
        /// To whom.
        phone: Phone,
        /// What.
        content: MessageContent<Cow<'r, str>>,
    },
    /// It is never sent.
    LeftOut {
        /// Its state: skipped or invalid.
        state: RowState,
        /// Why.
        reason: &'r str,
    },
}

/// A message, and what of it came from the recipient's row.
#[derive(Clone, Debug)]
pub struct MarkedMessage {
    /// To whom.
    pub phone: Phone,
    /// Which of the variants it is, counted from 0; 0 where there are none.
    pub arm: usize,
    /// What it says.
    pub content: MessageContent<MarkedText>,
}

/// Shows at most so many rows of a list, of which these are left out; only some rows where they are named.
///
/// Tells how many were shown.
///
/// # Errors
/// When the list is damaged.
pub fn preview_rows<R: Read>(
    prepared: &mut CompiledCampaign<R>,
    left_out: &ExcludedRows,
    rows: Option<&RowSet>,
    most: usize,
    mut show: impl FnMut(Row, RowPreview<'_>),
) -> Result<usize, Box<Finding>> {
    let CompiledCampaign { reader, recipe, .. } = prepared;
    for_each_row((reader, recipe), left_out, rows, most, |record, row| match row {
        Ok(ComposedMessage { number: ValidNumber { phone, .. }, message, .. }) => {
            show(record.row, RowPreview::Message { phone, content: message.content() });
        }
        Err((state, reason)) => show(record.row, RowPreview::LeftOut { state, reason }),
    })
}

/// The same with what came from the rows marked.
///
/// # Errors
/// When the list is damaged.
pub fn preview_marked_rows<R: Read>(
    prepared: &mut CompiledCampaign<R>,
    left_out: &ExcludedRows,
    rows: Option<&RowSet>,
    most: usize,
    mut show: impl FnMut(Row, Result<MarkedMessage, (RowState, &str)>),
) -> Result<usize, Box<Finding>> {
    let CompiledCampaign { reader, recipe, .. } = prepared;
    let mut markers: Vec<Marker<'_>> = recipe.markers().collect();
    for_each_row((reader, recipe), left_out, rows, most, |record, row| {
        let marked = row.map(|ComposedMessage { number, arm, message }| {
            let content = markers[arm].mark_content(
                record.row,
                |column| recipe.cell_text(record.fields, column),
                &message.content(),
            );
            MarkedMessage { phone: number.phone, arm, content }
        });
        show(record.row, marked);
    })
}

fn for_each_row<R: Read>(
    (reader, recipe): (&mut RecipientReader<R>, &Recipe),
    left_out: &ExcludedRows,
    rows: Option<&RowSet>,
    most: usize,
    mut show: impl FnMut(RecordRef<'_>, Result<ComposedMessage<'_>, (RowState, &str)>),
) -> Result<usize, Box<Finding>> {
    let mut composer = recipe.composer();
    let mut left_out = left_out.iter_by_row().peekable();
    let (mut chunk, mut shown) = (Chunk::new(), 0);
    while shown < most && reader.read_chunk(&mut chunk)? {
        let chosen = chunk.iter().filter(|record| rows.is_none_or(|rows| rows.contains(record.row)));
        for record in chosen.take(most - shown) {
            let row = record.row;
            while left_out.next_if(|(before, ..)| *before < row).is_some() {}
            if let Some((_, state, reason)) = left_out.next_if(|(out, ..)| *out == row) {
                show(record, Err((state, reason)));
            } else if let Ok(composed) = composer.compose(record) {
                show(record, Ok(composed));
            }
            shown += 1;
        }
    }
    Ok(shown)
}
