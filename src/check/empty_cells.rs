//! The empty cells that messages show, counted by text and column.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use crate::domain::{Channel, Row};
use crate::message::{EmptyCellFinder, EmptyCellPlace, EmptyCellUse};

/// Rows whose messages show an empty cell of one column in one text.
#[derive(Clone, Debug)]
pub struct EmptyCells {
    /// The first use of the column in the text.
    pub place: EmptyCellPlace,
    /// The channels and keys whose messages the text is part of.
    pub messages: Vec<(Channel, &'static str)>,
    /// The rows.
    pub rows: RoaringBitmap,
}

/// The rows of each use, by variant.
#[derive(Debug, Default)]
pub(super) struct EmptyUses(BTreeMap<(usize, EmptyCellUse), RoaringBitmap>);

impl EmptyUses {
    /// Takes the uses of a row in.
    pub(super) fn add_row(&mut self, row: Row, arm: usize, uses: Vec<EmptyCellUse>) {
        for of in uses {
            self.0.entry((arm, of)).or_default().insert(row.get());
        }
    }

    /// The rows by text and column, in the order of the texts; `finders` are those of the variants.
    pub(super) fn group_by_text(&self, finders: &[EmptyCellFinder<'_>]) -> Vec<EmptyCells> {
        let mut cells: Vec<EmptyCells> = Vec::new();
        for ((arm, of), rows) in &self.0 {
            let Some(place) = finders.get(*arm).and_then(|finder| finder.find_place(*of)) else { continue };
            let message = (place.channel, place.key);
            let same =
                |known: &&mut EmptyCells| known.place.name == place.name && known.place.text.name == place.text.name;
            match cells.iter_mut().find(same) {
                Some(known) => {
                    known.rows |= rows;
                    if !known.messages.contains(&message) {
                        known.messages.push(message);
                    }
                    if place.span.start < known.place.span.start {
                        known.place = place;
                    }
                }
                None => cells.push(EmptyCells { place, messages: vec![message], rows: rows.clone() }),
            }
        }
        cells
    }
}
