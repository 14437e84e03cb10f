//! Compiled messages: what all rows share.

use std::collections::BTreeSet;
use std::fmt;

use tera::value::Key;
use tera::{Context, Tera};

use super::judge::Needs;
use super::metered_text::MeteredTexts;
use super::names::{Names, indexed, lasting};
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
    /// Columns that the texts use as if something always stood there, each as a text names it.
    pub(super) relied_on: Vec<(usize, String)>,
}

impl Cells {
    /// The cells that a row has to bring.
    pub(super) fn of(names: &Names, needs: &Needs) -> Self {
        let by_name = needs.columns.iter().filter_map(|&column| Some((column, lasting(names.names.get(column)?))));
        let headers = names.headers.iter().enumerate();
        let by_header = headers.filter(|(column, _)| needs.all_headers || needs.headers.contains(column));
        Self {
            by_name: by_name.collect(),
            by_header: by_header.map(|(column, header)| (column, header.clone().into())).collect(),
            row: needs.row,
            relied_on: relied_on(names, needs),
        }
    }
}

/// The columns that texts use as if something always stood there, each as a text names it.
fn relied_on(names: &Names, needs: &Needs) -> Vec<(usize, String)> {
    let relied = |name: &String| needs.relied_on.contains(name) && !needs.minded.contains(name);
    let named = |&column: &usize| Some((column, names.names.get(column).filter(|name| relied(name))?.clone()));
    let keyed = |&column: &usize| Some((column, indexed(names.headers.get(column).filter(|header| relied(header))?)));
    needs.columns.iter().filter_map(named).chain(needs.headers.iter().filter_map(keyed)).collect()
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

    /// The columns that the texts use as if something always stood there, each as a text names it.
    #[must_use]
    pub fn relied_on(&self) -> &[(usize, String)] {
        &self.cells.relied_on
    }

    /// The columns whose cells the texts use.
    #[must_use]
    pub fn columns(&self) -> BTreeSet<usize> {
        let Cells { by_name, by_header, .. } = &self.cells;
        by_name.iter().map(|(column, _)| *column).chain(by_header.iter().map(|(column, _)| *column)).collect()
    }

    /// The column that texts call by that bare name, if one of them uses it.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.cells.by_name.iter().find(|(_, known)| *known == name).map(|(column, _)| *column)
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
