//! The rows of a campaign as they would go out, in the order of its list.

use std::borrow::Cow;
use std::io::Read;

use crate::audience::{Chunk, Number};
use crate::check::{CompiledCampaign, Composed};
use crate::domain::{Content, Phone, Row, RowSet};
use crate::finding::Finding;
use crate::ledger::{LeftOut, State};

/// A row as it would go out, or why it would not.
#[derive(Clone, Debug)]
pub enum RowPreview<'r> {
    /// Its message.
    Message {
        /// To whom.
        phone: Phone,
        /// What.
        content: Content<Cow<'r, str>>,
    },
    /// It is never sent.
    LeftOut {
        /// Its state: skipped or invalid.
        state: State,
        /// Why.
        reason: &'r str,
    },
}

/// Shows at most so many rows of a list, of which these are left out; only some rows where they are named.
///
/// Tells how many were shown.
///
/// # Errors
/// When the list is damaged.
pub fn preview_rows<R: Read>(
    prepared: &mut CompiledCampaign<R>,
    left_out: &LeftOut,
    rows: Option<&RowSet>,
    most: usize,
    mut show: impl FnMut(Row, RowPreview<'_>),
) -> Result<usize, Box<Finding>> {
    let mut composer = prepared.recipe.composer();
    let mut left_out = left_out.in_order().peekable();
    let (mut chunk, mut shown) = (Chunk::new(), 0);
    while shown < most && prepared.reader.read_chunk(&mut chunk)? {
        let chosen = chunk.iter().filter(|record| rows.is_none_or(|rows| rows.contains(record.row)));
        for record in chosen.take(most - shown) {
            let row = record.row;
            while left_out.next_if(|(before, ..)| *before < row).is_some() {}
            if let Some((_, state, reason)) = left_out.next_if(|(out, ..)| *out == row) {
                show(row, RowPreview::LeftOut { state, reason });
            } else if let Ok(Composed { number: Number { phone, .. }, content, .. }) = composer.compose(record) {
                show(row, RowPreview::Message { phone, content });
            }
            shown += 1;
        }
    }
    Ok(shown)
}
