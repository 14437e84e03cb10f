//! The recipients' own columns: of one list, or of the lists of several runs side by side. Pure.

use crate::audience::ListHeader;

/// The columns that the recipients of the listed runs have, each once.
#[derive(Clone, Debug, Default)]
pub(super) struct RecipientColumns {
    columns: Vec<RecipientColumn>,
    /// Whether one of the runs has variants, which stand in a column before those.
    pub(super) has_variants: bool,
}

/// A column of a list.
#[derive(Clone, Debug)]
struct RecipientColumn {
    /// Its header, which may be empty.
    header: String,
    /// What tells it from the others: its header, else its name.
    key: String,
}

impl RecipientColumns {
    /// Adds the columns of a list that are not there yet.
    pub(super) fn add_header(&mut self, header: &ListHeader) {
        let known: Vec<String> = self.columns.iter().map(|own| own.key.clone()).collect();
        let new = header_columns(header).filter(|own| !known.contains(&own.key));
        self.columns.extend(new);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The headers as they stand in the lists; several may be empty.
    pub(super) fn headers(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().map(|own| &own.header)
    }

    /// What tells the columns from each other.
    pub(super) fn keys(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().map(|own| &own.key)
    }

    /// Where a list has each of these columns, if it has.
    pub(super) fn find_positions(&self, header: &ListHeader) -> Vec<Option<usize>> {
        let theirs: Vec<RecipientColumn> = header_columns(header).collect();
        self.columns.iter().map(|own| theirs.iter().position(|other| other.key == own.key)).collect()
    }
}

fn header_columns(header: &ListHeader) -> impl Iterator<Item = RecipientColumn> {
    header.headers().iter().zip(header.names()).map(|(header, name)| RecipientColumn {
        header: header.clone(),
        key: if header.is_empty() { name } else { header }.clone(),
    })
}
