//! Compiled messages: what all rows share.

use std::fmt;

use tera::value::Key;
use tera::{Context, Tera};

use super::metered_text::MeteredTexts;
use super::render::Renderer;
use crate::domain::Content;

/// The messages of a campaign, ready to be filled row by row.
#[derive(Clone)]
pub struct Messages {
    pub(super) tera: Tera,
    pub(super) content: Content<Piece>,
    pub(super) metered: MeteredTexts,
    /// What is the same for all rows.
    pub(super) context: Context,
    pub(super) cells: Cells,
    pub(super) includes: Vec<(String, String)>,
}

/// A text of a message.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    /// It has no tags: everybody gets it as it stands.
    Constant(String),
    /// Tera's name of the template, and the author's of the text.
    Template { key: String, name: String },
}

/// Columns whose cells the texts use.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// Columns that have a bare name: the column and the name.
    pub(super) by_name: Vec<(usize, &'static str)>,
    /// Columns in `recipient`: the column and the header.
    pub(super) by_header: Vec<(usize, Key<'static>)>,
    /// Whether the row's number is used.
    pub(super) row: bool,
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("content", &self.content).field("cells", &self.cells).finish_non_exhaustive()
    }
}

impl Messages {
    /// A renderer with buffers of its own; make one for a run, not one for a row.
    #[must_use]
    pub fn renderer(&self) -> Renderer<'_> {
        Renderer::new(self)
    }

    /// The texts that were loaded for `include` and `extends`: name and source, by name.
    #[must_use]
    pub fn includes(&self) -> &[(String, String)] {
        &self.includes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Messages>();
        shared::<Renderer<'static>>();
    }
}
